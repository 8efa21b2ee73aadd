"""Policy of a cluster's rotation from the shipped region files, and the order in which clusters rotate."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import pytest
import yaml

from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.spec.region import Region
from components.spec.tenancy import Replacement
from lifecycle.rotation.calendar import Calendar, Freeze, WeeklyWindow
from lifecycle.rotation.model import Load
from lifecycle.rotation.plan_policy import Turn, UnknownClusterError, allocation_key, next_clusters, policy_of
from lifecycle.rotation.policy import Growth
from stacks.load import REGIONS, load_catalog

CATALOG = load_catalog()


def planned(rotation: dict[str, Any], **region: Any) -> RegionPlan:
    """Return the plan of southcentralus with keys of every cluster's rotation, and of the region, replaced."""
    document = yaml.safe_load((REGIONS / "southcentralus.yaml").read_text())
    for cluster in document["clusters"]:
        cluster["rotation"] |= rotation
    return plan_region(Region.model_validate(document | region), CATALOG)


def test_every_field_of_a_rotation_policy_becomes_a_number() -> None:
    region = planned(
        {
            "budget": {
                "percent": 5,
                "machines": 300,
                "per_scale_set": 7,
                "scale_sets_at_once": 3,
                "per_pool_percent": 4,
                "per_team_percent": 10,
            },
            "windows": [{"days": ["fri", "sat"], "opens": "22:30", "hours": 7}],
            "time_zone": "America/Chicago",
            "freeze": [{"first": "2026-12-19", "last": "2027-01-03", "reason": "holidays"}],
            "deadline_minutes": {"balloon": 0, "low": 1, "normal": 30, "high": 90},
            "mode": "when-idle",
            "when_idle_until": "2026-12-01",
            "how": "replace",
            "starts_per_minute": 11,
            "share_per_day_percent": 20,
            "azure_calls_per_minute": 150,
            "canary_machines": 2,
            "growth": {"first": 5, "factor": 3},
            "stop": {"failed_percent": 20, "of_last": 30},
            "attempts": 2,
            "give_up_after_days": 20,
        }
    )
    cluster = region.clusters[0]
    policy = policy_of(region, cluster)
    assert (cluster.nodes, policy.machines, policy.per_scale_set, policy.scale_sets_at_once) == (7_500, 300, 7, 3)
    assert policy.pools == {cluster.pools[0].name: 300}
    assert policy.teams == {one.team: one.nodes // 10 for one in cluster.spec.tenancy.allocations}
    assert policy.deadlines == {Load.BALLOON: 0.0, Load.LOW: 60.0, Load.NORMAL: 1_800.0, Load.HIGH: 5_400.0}
    windows = (WeeklyWindow(frozenset({4, 5}), time(22, 30), 7),)
    freezes = (Freeze(date(2026, 12, 19), date(2027, 1, 3), "holidays"),)
    assert policy.calendar == Calendar(windows, freezes, "America/Chicago")
    assert policy.idle_only_until == datetime(2026, 12, 1, 6, tzinfo=UTC).timestamp(), "midnight in Chicago"
    assert (policy.starts_per_minute, policy.starts_per_day, policy.calls_per_minute) == (11, 1_500, 150)
    assert (policy.canaries, policy.growth, policy.failed_share, policy.failed_of) == (2, Growth(5, 3), 0.2, 30)
    assert (policy.attempts, policy.give_up_after, policy.method) == (2, 20 * 86_400.0, Replacement.REPLACE)
    assert policy.timeouts.joining == 1_800.0 + max(pool.join_seconds for pool in cluster.pools)


def test_clusters_of_one_subscription_share_its_calls_if_they_ask_for_more_together() -> None:
    alone = planned({"azure_calls_per_minute": 400}, clusters_rotating_at_once=1)
    assert [policy_of(alone, cluster).calls_per_minute for cluster in alone.clusters] == [400, 400, 400]
    both = planned({"azure_calls_per_minute": 400}, clusters_rotating_at_once=2)
    shared = [cluster.subscription == both.clusters[0].subscription for cluster in both.clusters]
    assert [policy_of(both, cluster).calls_per_minute for cluster in both.clusters] == [250 if one else 400 for one in shared]
    for at_once in (1, 2, 3):
        region = planned({"azure_calls_per_minute": 400}, clusters_rotating_at_once=at_once)
        same = [policy_of(region, one).calls_per_minute for one in region.clusters if one.subscription == region.clusters[0].subscription]
        assert sum(sorted(same, reverse=True)[:at_once]) <= 500


def test_a_team_with_allocations_in_two_pools_has_a_bound_for_each() -> None:
    document = yaml.safe_load((REGIONS / "southcentralus.yaml").read_text())
    frontier = document["clusters"][2]
    pools = [pool["name"] for pool in frontier["pools"][:2]]
    team = frontier["tenancy"]["teams"][0]["name"]
    frontier["tenancy"]["allocations"] = [{"team": team, "pool": pool, "nodes": 40} for pool in pools]
    frontier["rotation"]["budget"]["per_team_percent"] = 10
    region = plan_region(Region.model_validate(document), CATALOG)
    cluster = region.clusters[2]
    assert policy_of(region, cluster).teams == {f"{team} in pool {pool}": 4 for pool in pools}
    assert allocation_key(cluster, team, pools[1]) == f"{team} in pool {pools[1]}"
    assert allocation_key(cluster, "", pools[1]) == ""


def test_waiting_clusters_start_in_the_given_order_up_to_the_bound() -> None:
    region = planned({}, clusters_rotating_at_once=2)
    one, two, three = (cluster.name for cluster in region.clusters)
    assert next_clusters(region, [three], [three, two, one]) == (
        Turn(three, starts=False, reason=f"{three} is rotating already"),
        Turn(two, starts=True, reason="2 of 2 clusters that may rotate at once"),
        Turn(one, starts=False, reason=f"waits for {three}, {two}: clusters_rotating_at_once is 2"),
    )
    with pytest.raises(UnknownClusterError, match="it has no cluster 'elsewhere': write one of "):
        next_clusters(region, [], ["elsewhere"])
