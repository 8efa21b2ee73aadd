"""Rotation of a whole region in virtual time: its clusters in order, each with its policy, population and journal."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from components.plan.model import ClusterPlan, RegionPlan
from lifecycle.rotation.budget import Ledger, Need, Place
from lifecycle.rotation.calendar import Calendar
from lifecycle.rotation.journal import RunStart
from lifecycle.rotation.journal_records import Target
from lifecycle.rotation.journal_summary import CauseRow, cause_rows
from lifecycle.rotation.model import ENDED, Load, NodeState, RunNode, Step, Transition
from lifecycle.rotation.plan_policy import policy_of
from lifecycle.rotation.policy import Policy
from lifecycle.rotation.rotation import Rotation
from rehearsal.azure.scenario import Throttling
from rehearsal.rotation.lower_bound import LowerBound, lower_bound, node_work
from rehearsal.rotation.memory_journal import MemoryJournal
from rehearsal.rotation.modelled_fleet import ModelledFleet
from rehearsal.rotation.observed_cluster import Blocker, ObservedCluster, population_of
from rehearsal.rotation.population import ConditionsName, Population, populate
from rehearsal.rotation.simulate import Outcome, Strategy, simulate

GANGS_KEPT, SAME_KEPT = 4, 2
"""First starts of gangs that are kept, and first starts of other nodes for each pool and reason."""
MODELLED = "modelled population"
"""Label of every figure about jobs that comes from rehearsal/rotation/population.yaml."""
BOOT_DIGEST = "0" * 64
"""Digest of boot files in the journal of a simulated run, whose machines have none."""

MakeStrategy = Callable[[Sequence[RunNode], Policy, float], Strategy]
Progress = Callable[[str, int, int], None]
"""Callback with a cluster's name, the number of its nodes that have ended, and the number of all."""


@dataclass(frozen=True, slots=True)
class StartedUnit:
    """Nodes that started in one step for one reason: time in seconds since 1970, number, first name, pools, and the reason.

    gang: all nodes of a gang. canary: the first start of a pool.
    """

    at: float
    nodes: int
    name: str
    pools: tuple[str, ...]
    reason: str
    gang: bool = False
    canary: bool = False


@dataclass(frozen=True, slots=True)
class PoolRow:
    """Starts of a pool, and its nodes by contents at the beginning: idle, balloons or low priority, services, gangs; first and last."""

    pool: str
    nodes: int
    idle: int
    low: int
    services: int
    gangs: int
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class UsedWindow:
    """Starts in one window: the first, the last and the window's end in seconds since 1970 (infinite if always open), and their number."""

    first: float
    last: float
    closes: float
    starts: int


@dataclass(frozen=True)
class RegionRun:
    """What is rotated: clusters by name (empty: all), images by name (empty: all), start in whole seconds since 1970, seed, conditions.

    observed: reading of the only cluster, in place of its modelled population.
    """

    started: int
    seed: int = 0
    clusters: tuple[str, ...] = ()
    images: Mapping[str, str] | None = None
    conditions: ConditionsName = "calm"
    observed: ObservedCluster | None = None


@dataclass(frozen=True)
class ClusterRotation:
    """Result of one cluster. bound: at the time of its start. journal: records and bytes."""

    cluster: str
    nodes: int
    policy: Policy
    outcome: Outcome
    bound: LowerBound
    earliest: float
    """Seconds since 1970 before which no order of starts can end, if the clusters before it end at theirs."""
    units: tuple[StartedUnit, ...]
    pools: tuple[PoolRow, ...]
    windows: tuple[UsedWindow, ...]
    blockers: tuple[Blocker, ...]
    waiting: tuple[CauseRow, ...]
    journal: tuple[int, int]

    @property
    def ratio(self) -> float:
        """Duration over its lower bound, 1 without one."""
        return self.outcome.seconds / self.bound.seconds if self.bound.seconds else 1.0


@dataclass(frozen=True)
class RegionRotation:
    """Result of a region; clusters are in the order of their starts."""

    region: str
    run: RegionRun
    at_once: int
    clusters: tuple[ClusterRotation, ...]

    @property
    def finished(self) -> float:
        """Time of the last node's end, in seconds since 1970."""
        return max((one.outcome.finished for one in self.clusters), default=float(self.run.started))

    @property
    def seconds(self) -> float:
        """Seconds from the start to the end."""
        return self.finished - self.run.started

    @property
    def bound(self) -> float:
        """Seconds that clusters in this order need at least."""
        return max((one.earliest for one in self.clusters), default=float(self.run.started)) - self.run.started

    @property
    def nodes(self) -> int:
        """Nodes of the run."""
        return sum(one.nodes for one in self.clusters)

    @property
    def ready(self) -> int:
        """Nodes that are ready at the end."""
        return sum(one.outcome.states[NodeState.READY] for one in self.clusters)

    @property
    def lost_gpu_hours(self) -> float:
        """GPU-hours that jobs repeat or wait."""
        return sum(one.outcome.losses.gpu_hours for one in self.clusters)

    @property
    def interrupted(self) -> int:
        """Gangs that were interrupted."""
        return sum(len(one.outcome.losses.interruptions) for one in self.clusters)

    @property
    def interruptions(self) -> int:
        """Interruptions of gangs."""
        return sum(sum(one.outcome.losses.interruptions.values()) for one in self.clusters)

    @property
    def interrupted_twice(self) -> int:
        """Gangs that were interrupted more than once."""
        return sum(count > 1 for one in self.clusters for count in one.outcome.losses.interruptions.values())

    @property
    def most_unavailable(self) -> int:
        """Largest number of unavailable machines; of clusters that rotate at the same time, the sum of their largest numbers."""
        rows = [(one.outcome.started, one.outcome.finished, one.outcome.most_unavailable) for one in self.clusters]
        return max((sum(most for began, ended, most in rows if began <= at < max(ended, began + 1)) for at, _, _ in rows), default=0)

    @property
    def stopped(self) -> tuple[str, ...]:
        """Clusters whose run stopped, with the reason."""
        return tuple(f"{one.cluster}: {one.outcome.stopped}" for one in self.clusters if one.outcome.stopped)


def next_opening(calendar: Calendar, now: float) -> int:
    """Return the time at which starts are allowed next, in whole seconds since 1970; now if the calendar never opens."""
    is_open, changes = calendar.span(now)
    return math.ceil(now if is_open or math.isinf(changes) else changes)


def first_whole_window(region: RegionPlan, now: float) -> int:
    """Return the time at which the next whole window of any cluster begins, in whole seconds since 1970; now if one is always open."""
    openings = []
    for cluster in region.clusters:
        calendar = policy_of(region, cluster).calendar
        is_open, changes = calendar.span(now)
        openings.append(next_opening(calendar, changes if is_open and math.isfinite(changes) else now))
    return min(openings)


def rotate_region(
    region: RegionPlan, run: RegionRun, progress: Progress = lambda *_: None, make: MakeStrategy = Rotation
) -> RegionRotation:
    """Rotate clusters in the order of the region file, at most clusters_rotating_at_once at the same time.

    A cluster starts when the one before it in its lane has ended. Raises StalledError of the simulation.
    """
    chosen = [one for one in region.clusters if not run.clusters or one.name in run.clusters]
    at_once = max(1, min(region.spec.clusters_rotating_at_once, len(chosen)))
    ends, earliest = [float(run.started)] * at_once, [float(run.started)] * at_once
    results = []
    for cluster in chosen:
        started, bound_from = math.ceil(heapq.heappop(ends)), heapq.heappop(earliest)
        done = rotate_cluster(region, cluster, run, started, bound_from, progress, make, sharing=at_once)
        heapq.heappush(ends, done.outcome.finished)
        heapq.heappush(earliest, done.earliest)
        results.append(done)
    return RegionRotation(region.name, run, at_once, tuple(results))


def rotate_cluster(
    region: RegionPlan,
    cluster: ClusterPlan,
    run: RegionRun,
    started: int,
    bound_from: float,
    progress: Progress = lambda *_: None,
    make: MakeStrategy = Rotation,
    population: Population | None = None,
    policy: Policy | None = None,
    sharing: int = 1,
) -> ClusterRotation:
    """Rotate one cluster from a time; bound_from is the time from which its lower bound counts in the region's.

    population, policy: by default the modelled one, and that of the region file. sharing: clusters that divide the calls to Azure.
    """
    policy = policy or policy_of(region, cluster)
    if population is None:
        population = population_of(run.observed, cluster, run.seed) if run.observed else populate(cluster, run.seed)
    fleet = ModelledFleet(
        population, population.figures.conditions[run.conditions], started, Throttling(compute=1 / sharing, arm=1 / sharing)
    )
    targets = {pool.name: Target(image=_pin(pool.spec.image, run.images), boot_digest=BOOT_DIGEST) for pool in cluster.pools}
    pools = rotated_pools(cluster, run.images)
    if run.observed:
        nodes = [one for one in run.observed.nodes if one.pool in pools]
        fleet.take_out(run.observed.unavailable)
    else:
        nodes = [RunNode(one.name, one.scale_set, one.pool, "older image") for one in population.machines if one.pool in pools]
    start = RunStart(f"rehearsal-{run.seed}", cluster.name, region.name, started, "rehearsal", targets, policy, tuple(nodes))
    recorder = _Recorder(MemoryJournal(start), cluster.name, len(nodes), progress)
    first = fleet.all()
    places = {one.name: Place(one.scale_set, one.pool, one.team) for one in first.nodes}
    blockers = tuple(oversized_gangs(((gang.owner or gang.id, gang.nodes) for gang in first.gangs), places, policy, population.cluster))
    outcome = simulate(make(nodes, policy, started), nodes, fleet, started, policy.machines, recorder.record)
    rotated = {one.name for one in nodes}
    work = [one for one in node_work(population, outcome.work, policy) if one.name in rotated]
    bound = lower_bound(work, policy, started)
    chained = bound if bound_from == started else lower_bound(work, policy, bound_from)
    loads = {one.name: (one.load, bool(one.gangs)) for one in first.nodes}
    return ClusterRotation(
        cluster=cluster.name,
        nodes=len(nodes),
        policy=policy,
        outcome=outcome,
        bound=bound,
        earliest=bound_from + chained.seconds,
        units=tuple(recorder.units),
        pools=tuple(_pool_rows(nodes, outcome.started_at, loads)),
        windows=tuple(_used_windows(policy.calendar, sorted(outcome.started_at.values()))),
        blockers=(*(run.observed.blockers if run.observed else ()), *blockers),
        waiting=tuple(cause_rows(recorder.journal.journal)),
        journal=(recorder.journal.journal.records, recorder.journal.length),
    )


def rotated_pools(cluster: ClusterPlan, images: Mapping[str, str] | None) -> Collection[str]:
    """Return the pools whose nodes are rotated: those that use one of the images, all without images."""
    return {pool.name for pool in cluster.pools if not images or _image_name(pool.spec.image) in images}


def oversized_gangs(
    gangs: Iterable[tuple[str, Sequence[str]]], places: Mapping[str, Place], policy: Policy, cluster: str
) -> Iterator[Blocker]:
    """Yield a blocker for each budget that is smaller than gangs, each an owner and its nodes: they are rotated only when idle.

    The owner of a blocker is that of the region file, with the number of such gangs and the largest one.
    """
    empty = Ledger(policy, dict(places))
    found: dict[str, list[int]] = {}
    for _, nodes in gangs:
        need = Need.of(places, (name for name in nodes if name in places))
        shortage = next((one for one in empty.shortages(need, gang=True) if one.requested > one.bound), None)
        if shortage is not None:
            found.setdefault(f"the budget of {shortage.bound} of {shortage.what}", []).append(len(nodes))
    for budget, sizes in found.items():
        one = f"1 gang of {sizes[0]:,} machines exceeds {budget}; it starts when idle"
        more = f"{len(sizes)} gangs of up to {max(sizes):,} machines exceed {budget}; they start when idle"
        yield Blocker(f"region file, rotation.budget of {cluster}", one if len(sizes) == 1 else more, sum(sizes))


class _Recorder:
    """Records the steps of a simulation: its journal, its first units, and its progress."""

    def __init__(self, journal: MemoryJournal, cluster: str, nodes: int, progress: Progress) -> None:
        self.journal, self._cluster, self._nodes, self._progress = journal, cluster, nodes, progress
        self._pool_of = {one.name: one.pool for one in journal.journal.start.nodes}
        self._ended = 0
        self._kept: Counter[str] = Counter()
        self._pools: set[str] = set()
        self.units: list[StartedUnit] = []
        progress(cluster, 0, nodes)

    def record(self, step: Step) -> None:
        """Record one step with transitions."""
        self.journal.record(step)
        ended = sum(one.to in ENDED for one in step.transitions)
        if ended:
            self._ended += ended
            self._progress(self._cluster, self._ended, self._nodes)
        self._keep(_units(step.transitions, self._pool_of))

    def _keep(self, units: Iterable[StartedUnit]) -> None:
        """Keep the first starts of each pool and reason."""
        for unit in units:
            key, most = ("gangs", GANGS_KEPT) if unit.gang else (" ".join((*unit.pools, unit.reason)), SAME_KEPT)
            if self._kept[key] < most:
                self._kept[key] += 1
                canary = not self._pools.issuperset(unit.pools)
                self.units.append(replace(unit, canary=canary))
            self._pools.update(unit.pools)


def _units(transitions: Iterable[Transition], pool_of: Mapping[str, str]) -> Iterator[StartedUnit]:
    """Yield the gangs that start in one step, and the other nodes by reason."""
    found: dict[tuple[str, ...], list[Transition]] = {}
    for one in transitions:
        if one.to is NodeState.CORDONED:
            found.setdefault(one.gangs or (pool_of[one.node], one.cause), []).append(one)
    for same in found.values():
        pools = tuple(sorted({pool_of[one.node] for one in same}))
        yield StartedUnit(same[0].at, len(same), same[0].node, pools, same[0].cause, bool(same[0].gangs))


def _pool_rows(nodes: Iterable[RunNode], started_at: Mapping[str, float], loads: Mapping[str, tuple[Load, bool]]) -> Iterator[PoolRow]:
    """Yield the pools in the order of their first start; loads are those of the beginning, and whether the node is in a gang."""
    counts: dict[str, Counter[str]] = {}
    times: dict[str, list[float]] = {}
    for node in nodes:
        load, gang = loads[node.name]
        kind = "gangs" if gang else "services" if load >= Load.NORMAL else "low" if load > Load.EMPTY else "idle"
        counts.setdefault(node.pool, Counter())[kind] += 1
        if node.name in started_at:
            times.setdefault(node.pool, []).append(started_at[node.name])
    for pool in sorted(counts, key=lambda name: min(times.get(name, [math.inf]))):
        row, at = counts[pool], times.get(pool, [math.nan])
        yield PoolRow(pool, row.total(), row["idle"], row["low"], row["services"], row["gangs"], min(at), max(at))


def _used_windows(calendar: Calendar, starts: Sequence[float]) -> Iterator[UsedWindow]:
    """Yield the windows in which nodes started, from the sorted times of the starts."""
    same: list[float] = []
    closes = -math.inf
    for at in starts:
        if at >= closes:
            if same:
                yield UsedWindow(same[0], same[-1], closes, len(same))
            same, closes = [], calendar.span(at)[1]
        same.append(at)
    if same:
        yield UsedWindow(same[0], same[-1], closes, len(same))


def _pin(image: str, images: Mapping[str, str] | None) -> str:
    """Return the image that a pool's nodes get."""
    name = _image_name(image)
    return f"{name}@{images[name]}" if images and name in images else image


def _image_name(pin: str) -> str:
    return pin.partition("@")[0]
