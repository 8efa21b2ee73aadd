"""Population of a cluster at the start of a simulated rotation: the machines of its plan, and the jobs that run on them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from components.plan.model import ClusterPlan, PoolPlan
from components.spec.types import Model
from lifecycle.rotation.model import Load
from lifecycle.rotation.plan_policy import allocation_key
from rehearsal.azure.compute.instances import base36
from rehearsal.azure.durations import Duration
from stacks.load import read_model

FILE = Path(__file__).with_name("population.yaml")
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=604_800)]
ConditionsName = Literal["calm", "hard"]


class Contents(Model):
    """Shares of machines by their contents; the rest is idle."""

    gangs: Share
    services: Share
    low: Share
    balloons: Share

    @model_validator(mode="after")
    def shares_are_at_most_all(self) -> Contents:
        """Reject shares of more than all machines."""
        if (total := self.gangs + self.services + self.low + self.balloons) > 1 + 1e-9:
            raise ValueError(f"has shares with a sum of {total:g}; write at most 1 in total")
        return self


class GangSize(Model):
    """One size of a gang, and the share of gangs that have it."""

    machines: Annotated[int, Field(ge=2, le=100_000)]
    share: Share


class GangFigures(Model):
    """Sizes, priorities and times of gangs."""

    sizes: tuple[GangSize, ...]
    large_sizes: tuple[GangSize, ...]
    large_share: Share
    high_share: Share
    run_time: Duration
    checkpoint_interval: Duration
    queue: Duration


class PodFigures(Model):
    """Evictable pods of a machine by its contents."""

    gang: int
    services: int
    low: int
    balloons: int


class EvictionFigures(Model):
    """Seconds from the eviction of a machine's pods to the end of the last one."""

    pod_seconds: Seconds
    balloon_seconds: Seconds
    services: Duration


class Conditions(Model):
    """Reaction of jobs to a checkpoint signal, and share of machines whose rotation fails at first."""

    honours_signal: Share
    checkpoint: Duration
    failing_share: Share
    hardware_share: Share


class Figures(Model):
    """All figures of population.yaml, which documents each of them."""

    gpu_machines: Contents
    cpu_machines: Contents
    gangs: GangFigures
    pods: PodFigures
    eviction: EvictionFigures
    preflight_minutes: tuple[float, float]
    kubelet_seconds: Seconds
    request_seconds: Seconds
    conditions: Mapping[ConditionsName, Conditions]


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of the cluster, and its evictable pods other than those of a gang. team is the key of its allocation.

    join_seconds: time over which the machines of its pool join. serving: its pods are of services, which do not react to a signal.
    """

    name: str
    scale_set: str
    pool: str
    team: str
    gpus: int
    join_seconds: int
    load: Load = Load.EMPTY
    pods: int = 0
    serving: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """One gang that runs at the start, on machines given by index. Times are in seconds.

    remaining: until its end. checkpoint_age: since its last checkpoint. checkpoint_every: between two checkpoints.
    """

    id: str
    machines: tuple[int, ...]
    load: Load
    gpus: int
    remaining: float
    checkpoint_age: float
    checkpoint_every: float


@dataclass(frozen=True)
class Population:
    """Machines of a cluster and its gangs at the start; a machine is in at most one gang."""

    cluster: str
    seed: int
    machines: tuple[Machine, ...]
    jobs: tuple[Job, ...]
    figures: Figures


def load_figures(path: Path = FILE) -> Figures:
    """Return the figures of a population file; raise InvalidFileError with all its problems."""
    return read_model(path, Figures)


@lru_cache(maxsize=1)
def shipped_figures() -> Figures:
    """Return the figures of population.yaml."""
    return load_figures()


def populate(cluster: ClusterPlan, seed: int, figures: Figures | None = None) -> Population:
    """Return the population of a cluster; the same plan, seed and figures give the same one."""
    figures = figures or shipped_figures()
    draw = random.Random(f"{seed}/{cluster.name}")  # noqa: S311 (no secret)
    machines: list[Machine] = []
    jobs: list[Job] = []
    for pool in cluster.pools:
        empty = list(_empty_machines(cluster, pool))
        _Pool(draw, figures, pool, len(machines), empty).fill(jobs)
        machines += empty
    return Population(cluster.name, seed, tuple(machines), tuple(jobs), figures)


def _empty_machines(cluster: ClusterPlan, pool: PoolPlan) -> Iterator[Machine]:
    """Yield the machines of a pool in the order of their names, the allocations of teams one after the other."""
    allocations = [one for one in cluster.spec.tenancy.allocations if one.pool == pool.name]
    teams = itertools.chain(
        *(itertools.repeat(allocation_key(cluster, one.team, pool.name), one.nodes) for one in allocations), itertools.repeat("")
    )
    for scale_set in pool.scale_sets:
        for number in range(scale_set.capacity):
            name = f"{scale_set.computer_name_prefix}{base36(number)}".lower()
            yield Machine(name, scale_set.name, pool.name, next(teams), pool.size.gpus, pool.join_seconds)


class _Pool:
    """Contents of one pool; its machines are replaced in place. first is the index of its first machine in the cluster."""

    def __init__(self, draw: random.Random, figures: Figures, pool: PoolPlan, first: int, machines: list[Machine]) -> None:
        self._draw = draw
        self._figures = figures
        self._name = pool.name
        self._first = first
        self._machines = machines
        self._contents = figures.gpu_machines if pool.size.gpus else figures.cpu_machines
        self._sizes, self._large_sizes = (
            _at_most(sizes, pool.spec.largest_gang) for sizes in (figures.gangs.sizes, figures.gangs.large_sizes)
        )
        self._unused: dict[tuple[str, str], list[int]] = {}
        for number, machine in enumerate(machines):
            self._unused.setdefault((machine.team, machine.scale_set), []).append(number)
        for numbers in self._unused.values():
            # Machines become free in any order, so that neighbours by name are rarely in the same gang.
            draw.shuffle(numbers)

    def fill(self, jobs: list[Job]) -> None:
        """Place gangs, which are appended to jobs, and then single pods on what they leave."""
        target = round(self._contents.gangs * len(self._machines))
        placed = self._place_large(jobs, target)
        self._place_small(jobs, target - placed)
        self._place_single_pods()

    def _place_large(self, jobs: list[Job], target: int) -> int:
        """Place gangs over several scale sets of a team; return their machines."""
        figures, placed, available = self._figures.gangs, 0, {team: 0 for team, _ in self._unused}
        for (team, _), numbers in self._unused.items():
            available[team] += len(numbers)
        while True:
            sizes = [one for one in self._large_sizes if placed + one.machines <= figures.large_share * target]
            teams = [team for team, number in available.items() if any(2 * one.machines <= number for one in sizes)]
            if not teams:
                return placed
            team = self._draw.choice(teams)
            size = self._one_of([one for one in sizes if 2 * one.machines <= available[team]])
            numbers = self._take_over_sets(team, size)
            jobs.append(self._job(numbers, len(jobs)))
            available[team] -= size
            placed += size

    def _take_over_sets(self, team: str, size: int) -> list[int]:
        """Take machines of a team from as few scale sets as possible, in the order of their names from a random one."""
        sets = [numbers for (owner, _), numbers in self._unused.items() if owner == team and numbers]
        start = self._draw.randrange(len(sets))
        taken: list[int] = []
        for numbers in sets[start:] + sets[:start]:
            count = min(len(numbers), size - len(taken))
            taken += numbers[:count]
            del numbers[:count]
        return taken

    def _place_small(self, jobs: list[Job], target: int) -> None:
        """Place gangs, each in one scale set with space for it; the last one has the size that is left."""
        while target > 1:
            most = min(target, max(map(len, self._unused.values())))
            size = self._one_of([one for one in self._sizes if one.machines <= most] or [GangSize(machines=most, share=1.0)])
            numbers = self._draw.choice([numbers for numbers in self._unused.values() if len(numbers) >= size])
            jobs.append(self._job(numbers[:size], len(jobs)))
            del numbers[:size]
            target -= size

    def _place_single_pods(self) -> None:
        """Place services, low-priority pods and balloons on the machines that are in no gang."""
        numbers = [number for numbers in self._unused.values() for number in numbers]
        self._draw.shuffle(numbers)
        contents, pods = self._contents, self._figures.pods
        rows = (
            (contents.services, Load.NORMAL, pods.services),
            (contents.low, Load.LOW, pods.low),
            (contents.balloons, Load.BALLOON, pods.balloons),
        )
        for share, load, count in rows:
            used = round(share * len(self._machines))
            for number in numbers[:used]:
                one = self._machines[number]
                serving = load is Load.NORMAL
                self._machines[number] = Machine(
                    one.name, one.scale_set, one.pool, one.team, one.gpus, one.join_seconds, load, count, serving
                )
            del numbers[:used]

    def _job(self, numbers: Sequence[int], count: int) -> Job:
        figures, draw = self._figures.gangs, self._draw
        every = lognormal(draw, figures.checkpoint_interval)
        return Job(
            id=f"{self._name}-job-{count:04d}",
            machines=tuple(sorted(self._first + number for number in numbers)),
            load=Load.HIGH if draw.random() < figures.high_share else Load.NORMAL,
            gpus=self._machines[numbers[0]].gpus,
            remaining=residual(draw, figures.run_time),
            checkpoint_age=draw.random() * every,
            checkpoint_every=every,
        )

    def _one_of(self, sizes: Sequence[GangSize]) -> int:
        return self._draw.choices([one.machines for one in sizes], [one.share for one in sizes])[0]


def _at_most(sizes: Sequence[GangSize], largest: int | None) -> list[GangSize]:
    """Return the sizes that a pool's largest gang allows; all without one."""
    return [one for one in sizes if not largest or one.machines <= largest]


def lognormal(draw: random.Random, duration: Duration) -> float:
    """Return the seconds of one draw of a duration."""
    return duration.median_seconds * draw.lognormvariate(0.0, duration.sigma)


def residual(draw: random.Random, duration: Duration) -> float:
    """Return the seconds that a job has left which runs at an arbitrary moment.

    Long jobs are more likely to be running then: their durations are lognormal too, with a median larger by exp(sigma²), and the moment
    is anywhere within them.
    """
    whole = duration.median_seconds * draw.lognormvariate(duration.sigma**2, duration.sigma)
    return whole * draw.random()
