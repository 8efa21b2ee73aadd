"""Uses of one subscription by several regions are added, and nothing else."""

from __future__ import annotations

import itertools

import pytest
import yaml

from components.plan import azure_limits
from components.plan.limit import LimitRow
from components.plan.limits import LimitsExceededError, broken, check, raise_if_broken
from components.plan.model import RegionPlan
from components.plan.region import plan_region
from components.plan.subscription_limits import ANYWHERE, IN_LOCATION
from components.spec.region import Region
from stacks.load import REGIONS, load_catalog, load_plan

SOUTH = load_plan("southcentralus")
WHERE = f"subscription {SOUTH.spec.subscription[:8]}"


def neighbour(name: str, **changed: object) -> RegionPlan:
    """The region swedencentral moved into southcentralus' location and subscription, without quotas, and changed besides."""
    document = yaml.safe_load((REGIONS / "swedencentral.yaml").read_text())
    del document["quotas"]
    moved = {"name": name, "location": SOUTH.spec.location, "subscription": SOUTH.spec.subscription}
    return plan_region(Region.model_validate(document | moved | changed), load_catalog())


def rows(plan: RegionPlan, *siblings: RegionPlan) -> dict[tuple[str, str], LimitRow]:
    """Rows of the first subscription by limit and VM family, however many regions they count."""
    found = {}
    for row in check(plan, siblings):
        if row.where.startswith(WHERE):
            place, _, _ = row.where.partition(", with ")
            found[row.limit, place] = row
    return found


def test_machines_of_two_regions_in_one_subscription_and_location_count_together() -> None:
    sets = len(SOUTH.clusters[0].pools[0].scale_sets)
    south, both = rows(SOUTH), rows(SOUTH, neighbour("near"))
    machines, scale_sets = (azure_limits.MACHINES.name, WHERE), (azure_limits.SCALE_SETS.name, WHERE)
    assert both[machines].use == south[machines].use + 1_200 + 3 + 8
    assert both[scale_sets].use == south[scale_sets].use + 12 + 1
    assert sets == 75
    assert both[machines].where == f"{WHERE}, with near"


def test_every_summed_limit_is_the_same_from_either_region() -> None:
    near = neighbour("near")
    summed = {limit.name for limit in (*IN_LOCATION, *ANYWHERE)}
    from_south, from_near = rows(SOUTH, near), rows(near, SOUTH)
    assert {limit for limit, _ in from_south} >= summed
    for limit in summed:
        one, other = from_south[limit, WHERE], from_near[limit, WHERE]
        assert one.use == other.use == rows(SOUTH)[limit, WHERE].use + rows(near)[limit, WHERE].use
        assert (one.where, other.where) == (f"{WHERE}, with near", f"{WHERE}, with southcentralus")


def test_a_sum_over_the_bound_is_refused_and_names_the_other_region() -> None:
    near = [neighbour("near"), neighbour("nearer")]
    sentences = [row.sentence() for row in broken(SOUTH, near)]
    assert any(
        line.startswith(f"{WHERE}/standardNDSH100v5Family, with near, nearer: vCPUs granted: 2,035,200 vCPU is over the bound of 1,930,000")
        for line in sentences
    ), sentences
    with pytest.raises(LimitsExceededError, match="with near, nearer"):
        raise_if_broken(SOUTH, near)


def test_the_25001st_machine_of_a_subscription_is_refused_whichever_region_adds_it() -> None:
    counted = rows(SOUTH)[azure_limits.MACHINES.name, WHERE].use
    pools = neighbour("near").spec.clusters[0].model_dump(mode="json")
    others = 600 + 3 + 8
    for nodes, over in ((25_000 - int(counted) - others, False), (25_001 - int(counted) - others, True)):
        changed = {**pools, "pools": [dict(pools["pools"][0], nodes=nodes), pools["pools"][1]]}
        row = rows(SOUTH, neighbour("near", clusters=[changed]))[azure_limits.MACHINES.name, WHERE]
        assert (row.use, row.broken) == (25_000 + over, over)


def test_a_region_elsewhere_shares_only_what_azure_counts_wherever_it_lies() -> None:
    alone, far = rows(SOUTH), rows(SOUTH, neighbour("far", location="swedencentral"))
    changed = {key for key, row in far.items() if row.use != alone[key].use}
    assert changed == {(azure_limits.RESOURCE_GROUPS.name, WHERE)}
    assert far[azure_limits.RESOURCE_GROUPS.name, WHERE].where == f"{WHERE}, with far"


def test_a_region_of_another_subscription_changes_no_row() -> None:
    for one, other in itertools.permutations(map(load_plan, ("dev", "southcentralus", "swedencentral")), 2):
        assert check(one, (other,)) == check(one)


def test_a_cluster_in_another_regions_subscription_counts_there() -> None:
    cluster = neighbour("near").spec.clusters[0].model_dump(mode="json") | {"subscription": SOUTH.spec.subscription}
    guest = neighbour("guest", subscription="00000000-0000-4000-8000-000000000000", clusters=[cluster])
    alone, both = rows(SOUTH), rows(SOUTH, guest)
    machines, galleries = (azure_limits.MACHINES.name, WHERE), (azure_limits.GALLERIES.name, WHERE)
    assert both[machines].use == alone[machines].use + 1_211
    assert both[galleries].use == alone[galleries].use == 1


def test_of_two_grants_of_one_family_the_lower_holds() -> None:
    near = neighbour("near", quotas=[{"family": "standardNDSH100v5Family", "vcpus": 1_000}])
    key = (azure_limits.VCPUS.name, f"{WHERE}/standardNDSH100v5Family")
    assert rows(SOUTH, near)[key].bound == 1_000
    assert rows(SOUTH)[key].bound == 1_930_000


def test_the_total_counts_every_regular_family_of_both_regions_and_no_spot() -> None:
    near, total = neighbour("near"), (azure_limits.REGIONAL_VCPUS.name, f"{WHERE}/cores")
    families = {place.rpartition("/")[2]: row.use for (limit, place), row in rows(near).items() if limit == azure_limits.VCPUS.name}
    assert families["lowPriorityCores"] == 600 * 96
    assert rows(near)[total].use == sum(families.values()) - 600 * 96
    both = rows(SOUTH, near)[total]
    assert both.use == rows(SOUTH)[total].use + rows(near)[total].use
    assert (both.where, both.bound, both.broken) == (f"{WHERE}/cores, with near", None, False)


def test_a_grant_of_the_total_bounds_the_sum_of_all_families() -> None:
    total = (azure_limits.REGIONAL_VCPUS.name, f"{WHERE}/cores")
    used = int(rows(neighbour("near"))[total].use)
    for granted, over in ((used, False), (used - 1, True)):
        row = rows(neighbour("near", quotas=[{"family": "cores", "vcpus": granted}]))[total]
        assert (row.bound, row.broken) == (granted, over)


def test_what_bounds_one_update_counts_no_other_region() -> None:
    alone, both = check(SOUTH), check(SOUTH, (neighbour("near"),))
    for limit in (azure_limits.SET_CREATES, azure_limits.NETWORK_WRITES):
        assert [row for row in both if row.limit == limit.name] == [row for row in alone if row.limit == limit.name]
