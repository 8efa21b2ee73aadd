"""gpufleet rotation plan: forecast a rotation of a region, without changing anything."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import click
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from components.errors import GpufleetError
from gpufleet.consoles import is_live, progress_console, result_console
from gpufleet.up_output import span
from stacks.load import IMAGES, PUBLISHED, load_catalog, load_plan

if TYPE_CHECKING:
    from components.plan.model import RegionPlan
    from rehearsal.rotation.forecast import Forecast, SeedResult
    from rehearsal.rotation.observed_cluster import Blocker
    from rehearsal.rotation.region_rotation import ClusterRotation, RegionRotation

SEEDS, MOST_SEEDS = 5, 1_000
NONE = "–"
FIGURES = ("finished", "seconds", "bound", "lost_gpu_hours", "interrupted", "most_unavailable")
"""Figures of a simulation whose percentiles are printed."""
CONTENTS = {
    "load: empty": "no jobs",
    "load: balloon": "only balloons",
    "load: low": "only jobs of low priority",
    "load: normal": "services of normal priority",
    "load: high": "services of high priority",
}
"""Words for the reasons of nodes without a gang."""


class ImageOptionError(GpufleetError):
    """An --image that cannot be planned: value, reason and remedy."""

    def __init__(self, value: str, reason: str, remedy: str) -> None:
        self.value, self.reason, self.remedy = value, reason, remedy
        super().__init__(f"--image {value}: {reason}; {remedy}")


class StartOptionError(GpufleetError):
    """A --start that is no time."""

    def __init__(self, value: str) -> None:
        self.value = value
        super().__init__(
            f"--start {value}: is no time; write 2026-11-30T06:00 in the cluster's time zone, or with an offset: …T12:00+00:00"
        )


@click.command(short_help="Forecast a rotation: order, windows, end, and lost GPU-hours.")
@click.argument("region")
@click.option("--cluster", metavar="NAME", help="Only this cluster.  [default: all, in the order of the region file]")
@click.option("--image", "images", multiple=True, metavar="NAME=VERSION", help="Only pools with this image, to a published version of it.")
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Read nodes, gangs and loads of the live cluster instead of modelling them.",
)
@click.option("--seeds", type=click.IntRange(1, MOST_SEEDS), default=SEEDS, show_default=True, help="Simulations, for the percentiles.")
@click.option("--hard", is_flag=True, help="Let 2 % of the machines fail at first, and 15 % of the jobs ignore the checkpoint signal.")
@click.option("--compare", is_flag=True, help="Also simulate barrier waves and node order.")
@click.option("--start", metavar="TIME", help="Start at a time instead of now: 2026-11-30T06:00.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON. Times are in seconds since 1970.")
def plan(
    region: str,
    cluster: str | None,
    images: tuple[str, ...],
    kubeconfig: Path | None,
    seeds: int,
    hard: bool,
    compare: bool,
    start: str | None,
    as_json: bool,
) -> None:
    """Forecast a rotation of REGION's nodes: order and reasons, windows, end, blockers, lost GPU-hours, interrupted jobs.

    \b
    The production decisions rotate the nodes in virtual time; hours take seconds. Nothing is changed, in Azure or in a
    cluster. Jobs are a modelled population (rehearsal/rotation/population.yaml), drawn from a seed: every figure about
    jobs is an assumption until that file contains measurements of your fleet. Each further seed is another draw.
    p10, p50 and p90: 10, 50 and 90 percent of the simulations end by then. The lower bound is the time that no order of
    starts can beat under the same policy.
      gpufleet rotation plan dev
      gpufleet rotation plan southcentralus --cluster frontier --image nd-h100=2026.11.0
      gpufleet rotation plan southcentralus --hard --compare --seeds 20
      gpufleet rotation plan southcentralus --cluster frontier --kubeconfig frontier.kubeconfig
    With --kubeconfig, the command reads the cluster's nodes, gangs, loads and last checkpoints, and rotates only nodes that
    differ from their image and boot files. The remaining run times of jobs, and all durations, are still modelled.

    Exit status: 0 if the run reaches its end; 1 if it stops, or leaves nodes that are not ready; 2 if the region file or an option is
    invalid; 130 after Ctrl-C.
    """
    found = load_plan(region)
    chosen = _clusters(found, cluster)
    targets = checked_images(found, chosen, images)
    started = _start(found, chosen, start)
    if kubeconfig is not None and len(chosen) > 1:
        raise click.UsageError(f"--kubeconfig reads one cluster; add --cluster, one of {', '.join(chosen)}")
    # The model of Azure takes a moment to import.
    from rehearsal.rotation.forecast import COMPARED, OWN, forecast
    from rehearsal.rotation.region_rotation import RegionRun
    from rehearsal.rotation.simulate import StalledError

    observed = None
    if kubeconfig is not None:
        from gpufleet.rotation_cluster import read_observed

        live = next(one for one in found.clusters if one.name == chosen[0])
        observed = read_observed(kubeconfig, found, live, targets)
    run = RegionRun(math.ceil(started), 1, chosen, targets, "hard" if hard else "calm", observed)
    try:
        with _progress() as done:
            result = forecast(found, run, seeds, (OWN, *COMPARED) if compare else (OWN,), done)
    except StalledError as error:
        click.echo(f"{found.name}: {error}; raise the budget that it names, or correct the region file", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(_as_json(result), indent=2))
    else:
        _print(found, result)
    sys.exit(1 if result.first.stopped or result.first.ready < result.first.nodes else 0)


def _clusters(region: RegionPlan, name: str | None) -> tuple[str, ...]:
    """Return the chosen clusters; raise UnknownClusterError."""
    from lifecycle.rotation.plan_policy import UnknownClusterError

    known = [cluster.name for cluster in region.clusters]
    if name is not None and name not in known:
        raise UnknownClusterError(region.name, name, known)
    return (name,) if name is not None else tuple(known)


def checked_images(region: RegionPlan, clusters: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """Return version by image name; raise ImageOptionError, with the nearest name or version."""
    from components.plan.invalid_value import nearest

    published = load_catalog().published
    used = {pool.spec.image.partition("@")[0] for cluster in region.clusters if cluster.name in clusters for pool in cluster.pools}
    found: dict[str, str] = {}
    for option in options:
        name, equals, version = option.partition("=")
        if not equals or not version:
            raise ImageOptionError(option, "is not NAME=VERSION", f"write for example --image {min(used)}=2026.11.0")
        if name not in published:
            raise ImageOptionError(option, f"{name} is no image in {_catalog()}", nearest(name, tuple(published)))
        versions = {entry.version: entry for entry in published[name]}
        if version not in versions:
            raise ImageOptionError(option, f"{name} has no version {version} in {_catalog()}", nearest(version, tuple(versions)))
        if region.spec.location not in versions[version].captures:
            reason = f"{name}@{version} has no capture in {region.spec.location}"
            raise ImageOptionError(option, reason, f"build it there, and add the capture to {_catalog()}")
        if name not in used:
            raise ImageOptionError(option, f"no pool of {', '.join(clusters)} uses {name}", nearest(name, tuple(sorted(used))))
        if found.setdefault(name, version) != version:
            raise ImageOptionError(option, f"{name}={found[name]} is given too", "give one version for each image")
    return found


def _catalog() -> str:
    return f"{IMAGES.name}/{PUBLISHED}"


def _start(region: RegionPlan, clusters: Sequence[str], text: str | None) -> float:
    """Return a start in seconds since 1970; a time without offset is in the time zone of the first cluster's windows."""
    if text is None:
        return time.time()
    zone = next(cluster.spec.rotation.time_zone for cluster in region.clusters if cluster.name == clusters[0])
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise StartOptionError(text) from None
    return (at if at.tzinfo is not None else at.replace(tzinfo=ZoneInfo(zone))).timestamp()


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show progress on standard error; yield a callback of the number of simulations that have ended, and of all."""
    console = progress_console()
    if not is_live(console):
        yield lambda done, count: None if done else console.print(f"rotation plan: {count} simulation{'s' * (count > 1)}", markup=False)
        return
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task("rotation plan", total=None)
        yield lambda done, count: bars.update(task, description=f"rotation plan: {done} of {count} simulations")


def _print(region: RegionPlan, result: Forecast) -> None:
    from rehearsal.rotation.forecast import OWN

    console = result_console()
    zones = {cluster.name: ZoneInfo(cluster.spec.rotation.time_zone) for cluster in region.clusters}
    zone = zones[result.first.clusters[0].cluster]
    for line in _head(result, zone):
        console.print(line, soft_wrap=True, markup=False)
    console.print(_percentile_table(result, zone))
    for line in (
        *_unfinished(result, OWN),
        *(line for one in result.first.clusters for line in _cluster_lines(one, zones[one.cluster])),
        *_blocker_lines(result.first),
    ):
        console.print(line, soft_wrap=True, markup=False)
    strategies = list(dict.fromkeys(one.strategy for one in result.results))
    if len(strategies) > 1:
        console.print("\ncompared, medians of the same populations:", markup=False)
        console.print(_compare_table(result, strategies))
        for name in strategies[1:]:
            for line in _unfinished(result, name):
                console.print(line, soft_wrap=True, markup=False)
    console.print("nothing was changed", markup=False)


def _head(result: Forecast, zone: ZoneInfo) -> Iterator[str]:
    from rehearsal.rotation.region_rotation import MODELLED

    first, run = result.first, result.first.run
    clusters = f"{len(first.clusters)} cluster{'s' * (len(first.clusters) > 1)}"
    at_once = f", {first.at_once} at once" if len(first.clusters) > 1 else ""
    yield f"{first.region}: rotation of {first.nodes:,} nodes in {clusters}{at_once}, from {_day(run.started, zone)}"
    for name, version in (run.images or {}).items():
        yield f"  image {name}@{version}, on the pools that use {name}"
    seeds = len({one.seed for one in result.results})
    if run.observed is not None:
        machines, gangs = len(run.observed.machines), len(run.observed.gangs)
        jobs = f"{machines:,} nodes and {gangs:,} gangs read from the cluster, run times from a {MODELLED}"
    else:
        jobs = MODELLED
    yield f"  {jobs} (rehearsal/rotation/population.yaml), {run.conditions} conditions, {seeds} seed{'s' * (seeds > 1)}"


def _percentile_table(result: Forecast, zone: ZoneInfo) -> Table:
    """Return the table of percentiles over the seeds."""
    from rehearsal.rotation.forecast import OWN, PERCENTILES, percentile

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("")
    for head in ("end", "duration", "lower bound", "GPU-hours lost", "jobs interrupted", "most unavailable"):
        table.add_column(head, justify="right", no_wrap=True)
    rows = result.of(OWN)
    for percent in PERCENTILES if rows else ():
        values = [percentile([getattr(one, name) for one in rows], percent) for name in ("finished", "seconds", "bound")]
        losses = [
            percentile([getattr(one, name) for one in rows], percent) for name in ("lost_gpu_hours", "interrupted", "most_unavailable")
        ]
        table.add_row(f"  p{percent}", _day(values[0], zone), span(values[1]), span(values[2]), *(f"{value:,.0f}" for value in losses))
    return table


def _cluster_lines(one: ClusterRotation, zone: ZoneInfo) -> Iterator[str]:
    """Yield the lines of one cluster in the first simulation."""
    ratio = f", {one.ratio:.2f} times the lower bound of {span(one.bound.seconds)} ({one.bound.reason})" if one.bound.seconds else ""
    yield ""
    yield f"{one.cluster}: {one.nodes:,} nodes, at most {one.policy.machines:,} unavailable; {span(one.outcome.seconds)}{ratio}"
    for row in one.windows:
        closes = "always open" if math.isinf(row.closes) else f"closes {_clock(row.closes, zone)}"
        yield f"  window: {row.starts:,} starts from {_day(row.first, zone)} to {_clock(row.last, zone)}; {closes}"
    yield "  order:"
    for unit in one.units:
        canary, reason = "canary; " if unit.canary else "", CONTENTS.get(unit.reason, unit.reason)
        nodes = f"{unit.nodes:,} node{'s' * (unit.nodes > 1)} of {', '.join(unit.pools)}"
        yield f"    {_clock(unit.at, zone)}  {nodes}, {unit.name}{' and others' if unit.nodes > 1 else ''}: {canary}{reason}"
    for pool in one.pools:
        contents = f"{pool.idle:,} idle, {pool.low:,} balloons or low priority, {pool.services:,} services, {pool.gangs:,} in gangs"
        times = "none started" if math.isnan(pool.first) else f"from {_clock(pool.first, zone)} to {_clock(pool.last, zone)}"
        yield f"    pool {pool.pool}: {pool.nodes:,} nodes ({contents}), {times}"
    if one.outcome.stopped:
        yield f"  the run stops: {one.outcome.stopped}; nodes in rotation continue, and the run can be continued"


def _blocker_lines(first: RegionRotation) -> Iterator[str]:
    """Yield what prevents nodes from starting, or left them failed or blocked, with the owner."""
    rows = [(one.cluster, blocker) for one in first.clusters for blocker in all_blockers(one)]
    yield ""
    if not rows:
        yield "blockers: none"
        return
    yield "blockers:"
    yield from (f"  {cluster}: {row.reason}{_nodes(row.nodes)}; owner: {row.owner}" for cluster, row in rows)


def _nodes(count: int) -> str:
    return f" ({count:,} node{'s' * (count != 1)})" if count else ""


def all_blockers(one: ClusterRotation) -> tuple[Blocker, ...]:
    """Return the blockers of a cluster: those known before the start, and nodes that failed or were blocked."""
    from rehearsal.rotation.observed_cluster import Blocker

    ended = (Blocker("operator of the run", f"{row.state}: {row.cause}", len(row.nodes)) for row in one.waiting)
    return (*one.blockers, *ended)


def _unfinished(result: Forecast, strategy: str) -> Iterator[str]:
    rows = result.unfinished(strategy)
    if rows:
        seeds = len({one.seed for one in result.results})
        reason = rows[0].stalled or rows[0].stopped[0]
        yield f"  {strategy}: {len(rows)} of {seeds} simulations do not reach the end, and are in no percentile: {reason}"


def _compare_table(result: Forecast, strategies: Sequence[str]) -> Table:
    """Return the medians of the strategies."""
    from rehearsal.rotation.forecast import percentile

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("  strategy")
    for head in ("duration", "GPU-hours lost", "jobs interrupted", "interruptions", "most unavailable"):
        table.add_column(head, justify="right", no_wrap=True)
    for name in strategies:
        rows: Sequence[SeedResult] = result.of(name)
        if not rows:
            table.add_row(f"  {name}", *[NONE] * 5)
            continue
        figures = ("lost_gpu_hours", "interrupted", "interruptions", "most_unavailable")
        values = (f"{percentile([getattr(one, figure) for one in rows], 50):,.0f}" for figure in figures)
        table.add_row(f"  {name}", span(percentile([one.seconds for one in rows], 50)), *values)
    return table


def _day(at: float, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at, zone):%a %Y-%m-%d %H:%M %Z}"


def _clock(at: float, zone: ZoneInfo) -> str:
    return f"{datetime.fromtimestamp(at, zone):%a %H:%M}"


def _as_json(result: Forecast) -> Mapping[str, object]:
    from rehearsal.rotation.forecast import OWN, PERCENTILES, percentile

    first, run, rows = result.first, result.first.run, result.of(OWN)
    return {
        "region": first.region,
        "started": run.started,
        "images": run.images or {},
        "jobs": "modelled population" if run.observed is None else "read from the cluster; run times from a modelled population",
        "conditions": run.conditions,
        "nodes": first.nodes,
        "clusters_at_once": first.at_once,
        "percentiles": {
            f"p{percent}": {name: percentile([getattr(one, name) for one in rows], percent) for name in FIGURES} for percent in PERCENTILES
        }
        if rows
        else {},
        "clusters": [_cluster_json(one) for one in first.clusters],
        "simulations": [
            {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in dataclasses.asdict(one).items()}
            for one in result.results
        ],
    }


def _cluster_json(one: ClusterRotation) -> Mapping[str, object]:
    return {
        "cluster": one.cluster,
        "nodes": one.nodes,
        "budget": one.policy.machines,
        "started": one.outcome.started,
        "finished": one.outcome.finished,
        "bound_seconds": one.bound.seconds,
        "bound_reason": one.bound.reason,
        "bounds": dict(one.bound.parts),
        "states": {state: count for state, count in one.outcome.states.items() if count},
        "stopped": one.outcome.stopped,
        "lost_gpu_hours": one.outcome.losses.gpu_hours,
        "interrupted": len(one.outcome.losses.interruptions),
        "most_unavailable": one.outcome.most_unavailable,
        "first_starts": [dataclasses.asdict(unit) for unit in one.units],
        "pools": [_finite(dataclasses.asdict(row)) for row in one.pools],
        "windows": [_finite(dataclasses.asdict(row)) for row in one.windows],
        "blockers": [dataclasses.asdict(row) for row in all_blockers(one)],
    }


def _finite(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return a row with null for numbers that JSON does not have."""
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()}
