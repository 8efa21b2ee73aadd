"""Bounds of rotation as numbers of machines, and notes on bounds that a pool's gangs exceed and on freezes that outlast a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from components.plan.closed_days import closed_days
from components.plan.model import ClusterPlan, PoolPlan, RegionPlan
from components.spec.tenancy import Allocation

MOST_PERCENT = 50
"""Largest budget.percent."""
MOST_GIVE_UP_DAYS = 60
"""Largest give_up_after_days."""
Path = tuple[str | int, ...]


def share(machines: int, percent: int) -> int:
    """Return a percentage of machines, rounded down, but at least one machine."""
    return max(1, machines * percent // 100)


def cluster_bound(cluster: ClusterPlan) -> int:
    """Return the number of machines of a cluster that may be unavailable."""
    budget = cluster.spec.rotation.budget
    return min(share(cluster.nodes, budget.percent), budget.machines)


def pool_bound(cluster: ClusterPlan, pool: PoolPlan) -> int | None:
    """Return the number of machines of a pool that may be unavailable; None without a bound of its own."""
    percent = cluster.spec.rotation.budget.per_pool_percent
    return None if percent is None else share(pool.spec.nodes, percent)


def allocation_bound(cluster: ClusterPlan, allocation: Allocation) -> int | None:
    """Return the number of machines of an allocation that may be unavailable; None without a bound of its own."""
    percent = cluster.spec.rotation.budget.per_team_percent
    return None if percent is None else share(allocation.nodes, percent)


def starts_per_day(cluster: ClusterPlan) -> int:
    """Return the number of machines of a cluster on which rotation may start per calendar day."""
    return share(cluster.nodes, cluster.spec.rotation.share_per_day_percent)


@dataclass(frozen=True)
class RotationNote:
    """A consequence of a valid rotation policy: the path in the region file, and the text with value, bound, reason and remedy."""

    path: Path
    text: str


@dataclass(frozen=True)
class _Bound:
    """A bound on unavailable machines: the key of the budget, its value, the machines it allows, those that it is a share of, and whose.

    of is 0 for a bound in machines; most is the largest value of the key.
    """

    key: str
    value: int
    allows: int
    of: int
    whose: str
    most: int

    def remedy(self, gang: int) -> str:
        """Return the value of the key that allows a gang."""
        needed = math.ceil(gang * 100 / self.of) if self.of else gang
        if needed > self.most:
            return f"{self.key} is at most {self.most}, so lower largest_gang to {share(self.of, self.most)}"
        return f"raise {self.key} to at least {needed}"


def rotation_notes(plan: RegionPlan) -> Iterator[RotationNote]:
    """Yield the notes of all clusters: budgets smaller than the largest gang of a pool, and freezes longer than give_up_after_days."""
    for index, cluster in enumerate(plan.clusters):
        path: Path = ("clusters", index, "rotation")
        for pool in cluster.pools:
            yield from _gang_notes(path, cluster, pool)
        yield from _freeze_notes(path, cluster)


def _gang_notes(path: Path, cluster: ClusterPlan, pool: PoolPlan) -> Iterator[RotationNote]:
    """Yield one note for the bounds of the cluster and the pool, and one for each allocation, that are smaller than the largest gang."""
    gang = pool.spec.largest_gang
    if not gang:
        return
    budget = cluster.spec.rotation.budget
    bounds = [
        _Bound("percent", budget.percent, share(cluster.nodes, budget.percent), cluster.nodes, f"cluster {cluster.name}", MOST_PERCENT),
        _Bound("machines", budget.machines, budget.machines, 0, f"cluster {cluster.name}", cluster.nodes),
    ]
    allowed = pool_bound(cluster, pool)
    if budget.per_pool_percent is not None and allowed is not None:
        bounds.append(_Bound("per_pool_percent", budget.per_pool_percent, allowed, pool.spec.nodes, f"pool {pool.name}", 100))
    yield from _gang_note(path, pool, gang, bounds)
    for allocation in cluster.spec.tenancy.allocations:
        allowed = allocation_bound(cluster, allocation)
        if allocation.pool == pool.name and budget.per_team_percent is not None and allowed is not None:
            whose = f"team {allocation.team} in pool {pool.name}"
            bound = _Bound("per_team_percent", budget.per_team_percent, allowed, allocation.nodes, whose, 100)
            yield from _gang_note(path, pool, min(gang, allocation.nodes), [bound])


def _gang_note(path: Path, pool: PoolPlan, gang: int, bounds: list[_Bound]) -> Iterator[RotationNote]:
    """Yield a note if one of the bounds is smaller than a gang; at the smallest, with a remedy for all that are smaller."""
    smaller = [bound for bound in bounds if bound.allows < gang]
    if not smaller:
        return
    binding = min(smaller, key=lambda bound: bound.allows)
    of = f"{binding.of:,} machines" if binding.of else "machines"
    value = f"{binding.value} % of the {of} of {binding.whose}" if binding.of else f"{binding.value:,} {of} of {binding.whose}"
    most = f", that is {binding.allows:,}" if binding.of else ""
    text = (
        f"{value} may be unavailable{most}, and a gang of pool {pool.name} has up to {gang:,} (largest_gang): gangs of more than "
        f"{binding.allows:,} machines are rotated only when idle; {', and '.join(bound.remedy(gang) for bound in smaller)}"
    )
    yield RotationNote((*path, "budget", binding.key), text)


def _freeze_notes(path: Path, cluster: ClusterPlan) -> Iterator[RotationNote]:
    """Yield a note for each time without an open window that is longer than a run lasts."""
    rotation = cluster.spec.rotation
    for closed in closed_days(rotation.windows, rotation.freeze):
        if closed.days > rotation.give_up_after_days:
            longer = f"raise give_up_after_days to at least {closed.days + 1}, or " if closed.days < MOST_GIVE_UP_DAYS else ""
            text = (
                f"no window opens from {closed.first} to {closed.last}, {closed.days} days, and give_up_after_days is "
                f"{rotation.give_up_after_days}: a run that begins just before then blocks pending machines; {longer}begin runs after it"
            )
            yield RotationNote((*path, "freeze", closed.freeze), text)
