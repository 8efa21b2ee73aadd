"""Selection of the machines that leave when a pool shrinks or a scale set leaves the plan.

The run drains and deletes instances, and Azure lowers the capacity of the scale set itself. A smaller capacity is never written, because
Azure would then choose the instances to delete, with the jobs on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from components.plan.model import ClusterPlan
from lifecycle.rotation.model import ROTATION, Gang, Load, NodeObservation, RunNode, Task, Verdict
from lifecycle.rotation.pending import SERVICES_FROM
from lifecycle.rotation.selection import Candidate, ExcludedNode, Selection, cordon_notes, exclusion

NO_NODE = "Azure instance without a node, of the {surplus} instances to remove: delete it in Azure"


def planned_capacities(cluster: ClusterPlan) -> dict[str, int]:
    """Return the capacity of each scale set in the plan."""
    return {one.name: one.capacity for pool in cluster.pools for one in pool.scale_sets}


def select_removals(planned: Mapping[str, int], candidates: Iterable[Candidate], gangs: Iterable[Gang], now: float) -> Selection:
    """Return the nodes to remove so that each scale set has its planned number of instances; a set without a plan loses all.

    planned: capacity by scale set. now: seconds since 1970. The order within a scale set: failed or NotReady nodes, empty ones, those with
    balloons, with pods of low priority; then gangs, of low priority first, those that lose the least work together, whole where
    they fit. Instances without a node count as live, and are excluded: only a person can delete them.
    """
    by_set: dict[str, list[Candidate]] = {}
    for one in candidates:
        if one.in_azure and not one.deleting:
            by_set.setdefault(one.seen.scale_set, []).append(one)
    known = {gang.id: gang for gang in gangs}
    interrupted: set[str] = set()
    nodes: list[RunNode] = []
    excluded: list[ExcludedNode] = []
    notes: list[str] = []
    for scale_set in sorted(by_set):
        live = by_set[scale_set]
        surplus = len(live) - planned.get(scale_set, 0)
        if surplus <= 0:
            continue
        why = f"{len(live)} instances, planned {planned[scale_set]}" if scale_set in planned else "its scale set is not in the plan"
        orphans = [one for one in live if exclusion(one)][:surplus]
        excluded += [ExcludedNode(one.name, scale_set, NO_NODE.format(surplus=surplus)) for one in orphans]
        choice = _Choice(surplus - len(orphans), known, interrupted, now)
        choice.take([one.seen for one in live if not exclusion(one)])
        nodes += [RunNode(seen.name, scale_set, seen.pool, f"{why}; {reason}", Task.REMOVE) for seen, reason in choice.taken]
        notes += choice.notes
        chosen = {seen.name for seen, _ in choice.taken}
        notes += cordon_notes(one for one in live if one.name in chosen)
    return Selection(tuple(nodes), tuple(excluded), tuple(notes))


@dataclass
class _Choice:
    """Nodes of one scale set that are removed, and how many more are needed; interrupted gangs are shared by all scale sets."""

    wanted: int
    gangs: Mapping[str, Gang]
    interrupted: set[str]
    now: float
    taken: list[tuple[NodeObservation, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, machines: list[NodeObservation]) -> None:
        """Take nodes in the order of the work that their removal loses, until enough are taken."""
        machines = sorted(machines, key=lambda seen: (seen.cordoned_by not in ("", ROTATION), seen.name))
        broken = [seen for seen in machines if _is_broken(seen)]
        whole = [seen for seen in machines if not _is_broken(seen)]
        self._take(broken, "failed or NotReady")
        for load in (Load.EMPTY, Load.BALLOON, Load.LOW):
            self._take([seen for seen in whole if seen.load is load and not seen.gangs], f"load: {load.name.lower()}")
        in_gangs = [seen for seen in whole if seen.gangs]
        self._take_gangs([seen for seen in in_gangs if seen.load < SERVICES_FROM])
        for load in (Load.NORMAL, Load.HIGH):
            self._take([seen for seen in whole if seen.load is load and not seen.gangs], f"load: {load.name.lower()}")
        self._take_gangs([seen for seen in in_gangs if seen.load >= SERVICES_FROM])

    def _take(self, machines: list[NodeObservation], reason: str) -> None:
        for seen in machines[: self.wanted]:
            self.wanted -= 1
            self.taken.append((seen, reason))
            self.interrupted.update(seen.gangs)

    def _take_gangs(self, machines: list[NodeObservation]) -> None:
        """Take groups of gangs that share nodes: whole ones that lose the least work, or a part of one where none fit the number."""
        self._take([seen for seen in machines if self.interrupted.issuperset(seen.gangs)], "its gang is interrupted already")
        units = sorted(
            _units([seen for seen in machines if not self.interrupted.issuperset(seen.gangs)]),
            key=lambda unit: (self._lost(unit), unit[0].name),
        )
        if not units or not self.wanted:
            return
        sizes, costs = list(map(len, units)), list(map(self._lost, units))
        chosen = cheapest_cover(sizes, costs, self.wanted, exact=True) or cheapest_cover(sizes, costs, self.wanted, exact=False)
        # The largest is taken last, so that it is the one of which a part remains.
        for index in sorted(range(len(units)) if chosen is None else chosen, key=lambda index: sizes[index]):
            unit, names = units[index], ", ".join(sorted({gang for seen in units[index] for gang in seen.gangs}))
            if len(unit) > self.wanted:
                what = f"{self.wanted} of {len(unit)} nodes of gang {names} in one scale set are removed"
                self.notes.append(f"{what}: no gangs fit the number; the whole gang is interrupted")
            self._take(unit, f"gang {names}, {costs[index]:.1f} GPU-hours since its checkpoint")

    def _lost(self, unit: list[NodeObservation]) -> float:
        """Return the GPU-hours that the removal of a unit loses; infinite for a gang that was not read."""
        names = {gang for seen in unit for gang in seen.gangs} - self.interrupted
        if any(name not in self.gangs for name in names):
            return float("inf")
        return sum(self.gangs[name].lost_gpu_hours(self.now) for name in names)


def cheapest_cover(sizes: Sequence[int], costs: Sequence[float], wanted: int, *, exact: bool) -> list[int] | None:
    """Return the indexes of items with the least total cost whose sizes add up to a number: exactly, or at least; None if there are none.

    This is the knapsack problem, solved exactly over all sums up to the number.
    """
    best: dict[int, tuple[float, _Taken | None]] = {0: (0.0, None)}
    for index, (size, cost) in enumerate(zip(sizes, costs, strict=True)):
        for have, (spent, taken) in list(best.items()):
            total = have + size
            if have == wanted or (exact and total > wanted):
                continue
            known = best.get(min(total, wanted))
            if known is None or spent + cost < known[0]:
                best[min(total, wanted)] = (spent + cost, _Taken(index, taken))
    if wanted not in best:
        return None
    found, link = [], best[wanted][1]
    while link is not None:
        found.append(link.index)
        link = link.before
    return found


@dataclass(frozen=True, slots=True)
class _Taken:
    """One item of a choice, and the items before it."""

    index: int
    before: _Taken | None


def _is_broken(seen: NodeObservation) -> bool:
    return not (seen.exists and seen.ready) or seen.verdict in (Verdict.HARDWARE, Verdict.CONFIGURATION, Verdict.TRANSIENT)


def _units(machines: list[NodeObservation]) -> list[list[NodeObservation]]:
    """Return the nodes in groups that share gangs, directly or through another node."""
    groups: list[tuple[set[str], list[NodeObservation]]] = []
    for seen in machines:
        gangs, nodes = set(seen.gangs), [seen]
        apart = []
        for group in groups:
            if group[0].isdisjoint(gangs):
                apart.append(group)
            else:
                gangs |= group[0]
                nodes = group[1] + nodes
        groups = [*apart, (gangs, nodes)]
    return [nodes for _, nodes in groups]
