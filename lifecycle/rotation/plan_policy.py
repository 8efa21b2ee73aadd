"""Policy of a cluster's rotation from its plan, and the order in which the clusters of a region rotate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import time

from components.errors import GpufleetError
from components.plan import rotation_bounds
from components.plan.azure_limits import INSTANCE_CALLS
from components.plan.model import ClusterPlan, RegionPlan
from components.spec.tenancy import Day, Rotation
from lifecycle.rotation.calendar import Calendar, Freeze, WeeklyWindow
from lifecycle.rotation.model import LOAD_OF
from lifecycle.rotation.policy import Growth, Policy, Timeouts

MINUTE = 60.0
DAY = 86_400.0
SUBSCRIPTION_CALLS = INSTANCE_CALLS.bound or 0.0
"""Instance operations that Azure accepts per minute and subscription."""


class UnknownClusterError(GpufleetError):
    """A cluster that the region file does not contain."""

    def __init__(self, region: str, cluster: str, known: Sequence[str]) -> None:
        self.region, self.cluster, self.known = region, cluster, tuple(known)
        super().__init__(f"region {region}: it has no cluster {cluster!r}: write one of {', '.join(known)}")


@dataclass(frozen=True)
class Turn:
    """Answer for one waiting cluster: True if it may begin to rotate now, and the reason."""

    cluster: str
    starts: bool
    reason: str


def policy_of(region: RegionPlan, cluster: ClusterPlan) -> Policy:
    """Return the policy of a cluster's rotation: machines, seconds and calls per minute, from the region file."""
    rotation = cluster.spec.rotation
    calendar = calendar_of(rotation)
    idle = rotation.when_idle_until
    return Policy(
        machines=rotation_bounds.cluster_bound(cluster),
        per_scale_set=rotation.budget.per_scale_set,
        scale_sets_at_once=rotation.budget.scale_sets_at_once,
        deadlines={LOAD_OF[priority]: minutes * MINUTE for priority, minutes in rotation.deadline_minutes.items()},
        pools={pool.name: bound for pool in cluster.pools if (bound := rotation_bounds.pool_bound(cluster, pool)) is not None},
        teams=_allocation_bounds(cluster),
        starts_per_minute=rotation.starts_per_minute,
        starts_per_day=rotation_bounds.starts_per_day(cluster),
        calls_per_minute=calls_per_minute(region, cluster),
        calendar=calendar,
        idle_only_until=calendar.midnight(idle) if idle is not None else 0.0,
        canaries=rotation.canary_machines,
        growth=Growth(rotation.growth.first, rotation.growth.factor),
        failed_share=rotation.stop.failed_percent / 100,
        failed_of=rotation.stop.of_last,
        attempts=rotation.attempts,
        give_up_after=rotation.give_up_after_days * DAY,
        method=rotation.how,
        # A machine delays its first join by up to join_seconds, so that not all machines of a pool join at once.
        timeouts=Timeouts(joining=Timeouts.joining + max(pool.join_seconds for pool in cluster.pools)),
    )


def calendar_of(rotation: Rotation) -> Calendar:
    """Return the windows, freezes and time zone of a rotation policy."""
    days = list(Day)
    windows = tuple(
        WeeklyWindow(frozenset(map(days.index, one.days)), time.fromisoformat(one.opens), one.hours) for one in rotation.windows
    )
    return Calendar(windows, tuple(Freeze(one.first, one.last, one.reason) for one in rotation.freeze), rotation.time_zone)


def allocation_key(cluster: ClusterPlan, team: str, pool: str) -> str:
    """Return the key of a team's machines in a pool, in Policy.teams and as NodeObservation.team; "" without a team.

    It is the team's name, with the pool if the team has allocations in several pools: each of them has a bound of its own.
    """
    pools = {one.pool for one in cluster.spec.tenancy.allocations if one.team == team}
    return f"{team} in pool {pool}" if team and len(pools) > 1 else team


def _allocation_bounds(cluster: ClusterPlan) -> dict[str, int]:
    """Return the bound of each allocation; those of one team in one pool are one compartment, with the sum of their bounds."""
    found: Counter[str] = Counter()
    for one in cluster.spec.tenancy.allocations:
        bound = rotation_bounds.allocation_bound(cluster, one)
        if bound is not None:
            found[allocation_key(cluster, one.team, one.pool)] += bound
    return dict(found)


def calls_per_minute(region: RegionPlan, cluster: ClusterPlan) -> int:
    """Return the requests per minute that a cluster may send to Azure: its share of the subscription's bound.

    It is the cluster's azure_calls_per_minute. If the clusters of its subscription that may rotate at the same time have more together
    than Azure accepts, each gets the same part of its number, at least one call.
    """
    own = cluster.spec.rotation.azure_calls_per_minute
    others = [
        other.spec.rotation.azure_calls_per_minute
        for other in region.clusters
        if other.name != cluster.name and other.subscription == cluster.subscription
    ]
    together = own + sum(sorted(others, reverse=True)[: region.spec.clusters_rotating_at_once - 1])
    return min(own, max(1, int(own * SUBSCRIPTION_CALLS / together)))


def next_clusters(region: RegionPlan, running: Sequence[str], waiting: Sequence[str]) -> tuple[Turn, ...]:
    """Return for each waiting cluster, in the given order, whether it may begin to rotate beside the running ones.

    Raise UnknownClusterError for a cluster that the region does not have.
    """
    known = [cluster.name for cluster in region.clusters]
    for name in (*running, *waiting):
        if name not in known:
            raise UnknownClusterError(region.name, name, known)
    bound = region.spec.clusters_rotating_at_once
    busy, turns = list(dict.fromkeys(running)), []
    for name in dict.fromkeys(waiting):
        if name in busy:
            turns.append(Turn(name, starts=False, reason=f"{name} is rotating already"))
        elif len(busy) < bound:
            busy.append(name)
            turns.append(Turn(name, starts=True, reason=f"{len(busy)} of {bound} clusters that may rotate at once"))
        else:
            reason = f"waits for {', '.join(busy)}: clusters_rotating_at_once is {bound}"
            turns.append(Turn(name, starts=False, reason=reason))
    return tuple(turns)
