"""Forecast of a region's rotation: one simulation per seed and strategy, and percentiles of their results."""

from __future__ import annotations

import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace

from components.plan.model import RegionPlan
from lifecycle.rotation.rotation import Rotation
from rehearsal.rotation.region_rotation import MakeStrategy, RegionRotation, RegionRun, rotate_region
from rehearsal.rotation.simulate import StalledError
from rehearsal.rotation.strategies import BarrierWaves, NodeOrder

OWN, COMPARED = "rotation", ("barrier waves", "node order")
STRATEGIES: Mapping[str, MakeStrategy] = {OWN: Rotation, COMPARED[0]: BarrierWaves, COMPARED[1]: NodeOrder}
"""Strategies by name: the production core, and those that it is compared with."""
ONE_PROCESS_NODES = 10_000
"""Nodes of all simulations together up to which the start of further processes would take longer than it saves."""
MOST_PROCESSES = 8
PERCENTILES = (10, 50, 90)

Done = Callable[[int, int], None]
"""Callback with the number of simulations that have ended, and of all."""


@dataclass(frozen=True)
class SeedResult:
    """Figures of one simulation; stalled is the reason why a strategy cannot finish, "" if it can. Times are in seconds since 1970."""

    strategy: str
    seed: int
    finished: float = math.nan
    seconds: float = math.nan
    bound: float = math.nan
    lost_gpu_hours: float = math.nan
    interrupted: int = 0
    interruptions: int = 0
    most_unavailable: int = 0
    not_ready: int = 0
    stopped: tuple[str, ...] = ()
    stalled: str = ""


@dataclass(frozen=True)
class Forecast:
    """Simulations of one region: the whole result of the first seed, and the figures of all."""

    first: RegionRotation
    results: tuple[SeedResult, ...]

    def of(self, strategy: str) -> tuple[SeedResult, ...]:
        """Return the results of a strategy whose run neither stopped nor stalled."""
        return tuple(one for one in self.results if one.strategy == strategy and not one.stopped and not one.stalled)

    def unfinished(self, strategy: str) -> tuple[SeedResult, ...]:
        """Return the results of a strategy whose run stopped or stalled."""
        return tuple(one for one in self.results if one.strategy == strategy and (one.stopped or one.stalled))


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest value that is at least as large as this percentage of all (nearest rank); NaN without values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)] if ordered else math.nan


def forecast(region: RegionPlan, run: RegionRun, seeds: int, strategies: Sequence[str] = (OWN,), done: Done = lambda *_: None) -> Forecast:
    """Simulate a region with the seeds from run.seed on, for each strategy; in several processes if that is faster.

    Raises StalledError if the production core cannot finish with the first seed.
    """
    tasks = [(strategy, replace(run, seed=run.seed + number)) for strategy in strategies for number in range(seeds)]
    done(0, len(tasks))
    first = rotate_region(region, run, make=STRATEGIES[tasks[0][0]])
    results = [_figures(tasks[0][0], first)]
    done(1, len(tasks))
    for result in _simulated(region, tasks[1:], first.nodes):
        results.append(result)
        done(len(results), len(tasks))
    order = {name: place for place, name in enumerate(strategies)}
    return Forecast(first, tuple(sorted(results, key=lambda one: (order[one.strategy], one.seed))))


def _simulated(region: RegionPlan, tasks: Sequence[tuple[str, RegionRun]], nodes: int) -> Iterator[SeedResult]:
    """Yield the results of simulations as they end."""
    processes = min(len(tasks), os.cpu_count() or 1, MOST_PROCESSES)
    if processes < 2 or nodes * len(tasks) <= ONE_PROCESS_NODES:
        yield from (simulate_seed(region, strategy, run) for strategy, run in tasks)
        return
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
    try:
        futures = [pool.submit(simulate_seed, region, strategy, run) for strategy, run in tasks]
        yield from (future.result() for future in as_completed(futures))
    finally:
        pool.shutdown(cancel_futures=True)


def simulate_seed(region: RegionPlan, strategy: str, run: RegionRun) -> SeedResult:
    """Return the figures of one simulation."""
    try:
        return _figures(strategy, rotate_region(region, run, make=STRATEGIES[strategy]))
    except StalledError as error:
        return SeedResult(strategy, run.seed, stalled=str(error))


def _figures(strategy: str, result: RegionRotation) -> SeedResult:
    return SeedResult(
        strategy,
        result.run.seed,
        result.finished,
        result.seconds,
        result.bound,
        result.lost_gpu_hours,
        result.interrupted,
        result.interruptions,
        result.most_unavailable,
        result.nodes - result.ready,
        result.stopped,
    )
