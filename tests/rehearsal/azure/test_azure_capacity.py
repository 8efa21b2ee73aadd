"""Quota is counted to the vCPU, hardware keeps its identity, and what fails is what the scenario says."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rehearsal.azure.capacity import Capacity, capacity_of
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.scenario import AllocationFailure, BadHosts, Grant, Quotas, Scenario, begin_scenario

SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"
H100, NC24, D2 = "Standard_ND96isr_H100_v5", "Standard_NC24ads_A100_v4", "Standard_D2s_v5"
HERE = {"subscription": SUBSCRIPTION, "location": "southcentralus"}


def cloud_with(seed: int = 0, **contents: object) -> Cloud:
    cloud = new_cloud([SUBSCRIPTION], "22222222-2222-4222-8222-222222222222", seed=seed)
    begin_scenario(cloud, Scenario.model_validate(contents))
    return cloud


def grants(**vcpus: int) -> Quotas:
    return Quotas(granted=tuple(Grant(family=family, vcpus=number) for family, number in vcpus.items()))


def reserve(cloud: Cloud, size: str, machines: int, **more: object) -> None:
    capacity_of(cloud).reserve(cloud, **{**HERE, "size": size, "spot": False, "machines": machines, **more})


def release(cloud: Cloud, size: str, machines: int, **more: object) -> None:
    capacity_of(cloud).release(cloud, **{**HERE, "size": size, "spot": False, "machines": machines, **more})


def used(cloud: Cloud) -> dict[str, int]:
    rows = capacity_of(cloud).usages(cloud, SUBSCRIPTION, "southcentralus")
    return {row["name"]["value"]: row["currentValue"] for row in rows if row["currentValue"]}


def place(cloud: Cloud, key: str, size: str = H100, zone: str = "1", attempt: int = 0, **more: object) -> str:
    return capacity_of(cloud).place(cloud, key=key, location="southcentralus", size=size, zone=zone, attempt=attempt, **more)


def test_a_quota_one_machine_short_refuses_the_last_machine_in_azures_words() -> None:
    cloud = cloud_with(quotas=grants(standardNDSH100v5Family=96 * 10 - 1))
    reserve(cloud, H100, 9)
    with pytest.raises(AzureError) as refused:
        reserve(cloud, H100, 1)
    assert (refused.value.status, refused.value.code) == (409, "OperationNotAllowed")
    assert [detail.code for detail in refused.value.details] == ["QuotaExceeded"]
    assert (
        "exceeding approved standardNDSH100v5Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: "
        "southcentralus, Current Limit: 959, Current Usage: 864, Additional Required: 96, (Minimum) New Limit Required: 960."
    ) in refused.value.message
    assert used(cloud) == {"standardNDSH100v5Family": 864, "cores": 864, "virtualMachines": 9}


def test_spot_machines_use_their_own_quota_and_no_other() -> None:
    cloud = cloud_with(quotas=grants(lowPriorityCores=48, cores=0, StandardNCADSA100v4Family=0))
    reserve(cloud, NC24, 2, spot=True)
    assert used(cloud) == {"lowPriorityCores": 48, "virtualMachines": 2}
    with pytest.raises(AzureError, match="approved LowPriorityCores quota"):
        reserve(cloud, NC24, 1, spot=True)
    with pytest.raises(AzureError, match="approved Total Regional Cores quota"):
        reserve(cloud, NC24, 1)


def test_a_location_holds_25000_machines_of_a_subscription() -> None:
    cloud = cloud_with()
    reserve(cloud, D2, 24_999)
    with pytest.raises(AzureError, match="Maximum allowed: 25000, Current in use: 24999, Additional requested: 2"):
        reserve(cloud, D2, 2)
    reserve(cloud, D2, 1)
    reserve(cloud, D2, 1, location="swedencentral")


def test_the_grant_that_says_most_exactly_where_it_holds_counts() -> None:
    rows = (
        Grant(family="standardDSv5Family", vcpus=100),
        Grant(family="standarddsv5family", vcpus=4, subscription=SUBSCRIPTION, location="southcentralus"),
        Grant(family="standardDSv5Family", vcpus=50, location="southcentralus"),
    )
    cloud = cloud_with(quotas=Quotas(granted=rows))
    reserve(cloud, D2, 2)
    with pytest.raises(AzureError, match="Current Limit: 4"):
        reserve(cloud, D2, 1)
    reserve(cloud, D2, 50, location="swedencentral")


def test_a_name_that_is_none_of_a_size_is_refused_with_the_rule_of_names() -> None:
    cloud = cloud_with()
    with pytest.raises(AzureError, match="vm-naming-conventions") as refused:
        reserve(cloud, "Standard_Small", 1)
    assert refused.value.code == "SkuNotAvailable"
    reserve(cloud, H100.upper(), 1)
    assert used(cloud)["standardNDSH100v5Family"] == 96


def test_usages_have_the_shape_of_azures() -> None:
    cloud = cloud_with(quotas=grants(standardNDSH100v5Family=960))
    reserve(cloud, H100, 2)
    rows = {row["name"]["value"]: row for row in capacity_of(cloud).usages(cloud, SUBSCRIPTION, "South Central US")}
    assert rows["standardNDSH100v5Family"] == {
        "unit": "Count",
        "currentValue": 192,
        "limit": 960,
        "name": {"value": "standardNDSH100v5Family", "localizedValue": "standardNDSH100v5Family vCPUs"},
    }
    assert rows["virtualMachines"]["limit"] == 25_000
    assert rows["cores"]["name"]["localizedValue"] == "Total Regional vCPUs"
    assert len(rows) == len(capacity_of(cloud).usages(cloud, SUBSCRIPTION, "southcentralus"))


def test_more_cannot_be_given_back_than_was_taken() -> None:
    cloud = cloud_with()
    reserve(cloud, D2, 1)
    with pytest.raises(ValueError, match="given back"):
        release(cloud, D2, 2)
    assert used(cloud)["standardDSv5Family"] == 2


def _fits(cloud: Cloud, size: str, machines: int, **more: object) -> bool:
    try:
        reserve(cloud, size, machines, **more)
    except AzureError:
        return False
    return True


STEPS = st.lists(
    st.tuples(st.sampled_from([H100, NC24, D2]), st.booleans(), st.integers(-6, 6), st.sampled_from(["", "group-a", "group-b"])),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 12))
def test_quota_is_never_exceeded_nor_negative_and_all_comes_back(steps: list[tuple[str, bool, int, str]], reserved: int) -> None:
    limits = {"standardNDSH100v5Family": 960, "lowPriorityCores": 240, "cores": 1_100}
    cloud = cloud_with(quotas=grants(**limits))
    capacity_of(cloud).set_reserved(cloud, **HERE, size=NC24, group="group-a", zone="1", machines=reserved)
    held: Counter[tuple[str, bool, str]] = Counter()
    for size, wants_spot, machines, group in steps:
        spot = wants_spot and not group
        if machines < 0:
            given_back = min(-machines, held[size, spot, group])
            release(cloud, size, given_back, spot=spot, group=group, zone="1")
            held[size, spot, group] -= given_back
        elif _fits(cloud, size, machines, spot=spot, group=group, zone="1"):
            held[size, spot, group] += machines
        now = used(cloud)
        assert all(0 <= number <= limits.get(name, 10**9) for name, number in now.items())
        assert now.get("virtualMachines", 0) == sum(held.values())
    for (size, spot, group), machines in held.items():
        release(cloud, size, machines, spot=spot, group=group, zone="1")
    capacity_of(cloud).set_reserved(cloud, **HERE, size=NC24, group="group-a", zone="1", machines=0)
    assert used(cloud) == {}


def test_machines_in_a_capacity_reservation_use_its_quota_and_find_its_hardware() -> None:
    cloud = cloud_with(quotas=grants(standardNDSH100v5Family=96 * 5), allocation_failures=(AllocationFailure(rate=1, starts="1h"),))
    capacity_of(cloud).set_reserved(cloud, **HERE, size=H100, group="/G/one", zone="1", machines=4)
    cloud.advance(cloud.now + 3_600)
    with pytest.raises(AzureError, match="sufficient capacity"):
        capacity_of(cloud).set_reserved(cloud, **HERE, size=H100, group="/G/one", zone="1", machines=5)
    assert used(cloud) == {"standardNDSH100v5Family": 384, "cores": 384}
    reserve(cloud, H100, 4, group="/g/ONE", zone="1")
    assert used(cloud) == {"standardNDSH100v5Family": 384, "cores": 384, "virtualMachines": 4}
    assert place(cloud, "a", group="/g/one") == "southcentralus/1/Standard_ND96isr_H100_v5/0"
    reserve(cloud, H100, 1, group="/g/one", zone="1")
    assert used(cloud)["cores"] == 480
    assert not _placed(cloud, "b", group="/g/one")


def test_without_capacity_a_zone_a_location_and_a_narrowed_choice_fail_each_by_its_name() -> None:
    cloud = cloud_with(allocation_failures=(AllocationFailure(rate=1, vm_size=H100),))
    codes = []
    for zone, constraints in (("1", ()), ("", ()), ("1", ("Proximity Placement Group",)), ("", ("Proximity Placement Group",))):
        with pytest.raises(AzureError) as failed:
            place(cloud, "a", zone=zone, constraints=constraints)
        codes.append(failed.value.code)
    assert codes == [
        "ZonalAllocationFailed",
        "AllocationFailed",
        "OverconstrainedZonalAllocationRequest",
        "OverconstrainedAllocationRequest",
    ]
    assert place(cloud, "a", NC24)


def test_spot_machines_may_find_no_hardware_where_regular_ones_do() -> None:
    cloud = cloud_with(allocation_failures=(AllocationFailure(rate=1, spot=True),))
    assert not _placed(cloud, "a", spot=True)
    assert _placed(cloud, "a")


def test_an_interval_without_capacity_ends() -> None:
    cloud = cloud_with(allocation_failures=(AllocationFailure(rate=1, starts="1h", ends="2h", zone="2"),))
    place(cloud, "a", zone="2")
    cloud.advance(cloud.now + 3_600)
    assert not _placed(cloud, "b", zone="2")
    assert place(cloud, "c", zone="1")
    cloud.advance(cloud.now + 3_600)
    assert place(cloud, "b", zone="2", attempt=1)


def test_three_percent_of_allocations_fail_and_another_attempt_is_another_draw() -> None:
    cloud = cloud_with(allocation_failures=(AllocationFailure(rate=0.03),))
    failed = []
    for number in range(5_000):
        try:
            place(cloud, f"machine-{number}")
        except AzureError:
            failed.append(number)
    assert 0.02 < len(failed) / 5_000 < 0.04
    again = sum(1 for number in failed if _placed(cloud, f"machine-{number}", attempt=1))
    assert again > 0.8 * len(failed)


def _placed(cloud: Cloud, key: str, **more: object) -> bool:
    try:
        return bool(place(cloud, key, **more))
    except AzureError:
        return False


def test_a_share_of_the_hosts_is_bad_and_stays_so() -> None:
    cloud = cloud_with(bad_hosts=(BadHosts(share=0.02, vm_size=H100), BadHosts(share=1, vm_size=NC24, fault="nvlink")))
    hosts = [place(cloud, f"machine-{number}") for number in range(5_000)]
    assert len(set(hosts)) == 5_000
    bad = [host for host in hosts if capacity_of(cloud).faults(cloud, host)]
    assert 0.014 < len(bad) / 5_000 < 0.026
    assert {capacity_of(cloud).faults(cloud, host) for host in bad} == {("gpu",)}
    assert capacity_of(cloud).faults(cloud, place(cloud, "nc", NC24)) == ("nvlink",)
    assert capacity_of(cloud).faults(cloud, place(cloud, "d", D2)) == ()


def test_a_machine_made_anew_lands_on_its_old_host_as_often_as_on_any_free_one() -> None:
    cloud = cloud_with(spare_hosts=0.05)
    hosts = {number: place(cloud, f"machine-{number}") for number in range(80)}
    same = 0
    for turn in range(1_000):
        number = turn % 80
        capacity_of(cloud).leave(hosts[number])
        old, hosts[number] = hosts[number], place(cloud, f"machine-{number}", attempt=turn + 1)
        same += old == hosts[number]
    assert 0.16 < same / 1_000 < 0.24  # 80 machines have four spare hosts: one in five.
    assert len(set(hosts.values())) == 80


def test_where_no_host_is_spare_a_machine_comes_back_to_its_old_one() -> None:
    cloud = cloud_with(spare_hosts=0)
    hosts = [place(cloud, f"machine-{number}") for number in range(10)]
    capacity_of(cloud).leave(hosts[3])
    assert place(cloud, "machine-3", attempt=1) == hosts[3]


def test_a_move_is_always_to_another_host_and_a_broken_host_is_not_used_again() -> None:
    cloud = cloud_with(spare_hosts=0)
    host = place(cloud, "a")
    capacity = capacity_of(cloud)
    moved = capacity.move(cloud, host, key="a", attempt=1, broken=True)
    assert moved != host
    seen = {place(cloud, f"other-{number}") for number in range(50)}
    assert host not in seen
    with pytest.raises(KeyError):
        capacity.leave(host)


def test_a_move_for_which_there_is_no_hardware_leaves_the_machine_where_it_is() -> None:
    cloud = cloud_with(allocation_failures=(AllocationFailure(rate=1, starts="1h"),))
    host = place(cloud, "a")
    cloud.advance(cloud.now + 3_600)
    with pytest.raises(AzureError):
        capacity_of(cloud).move(cloud, host, key="a", attempt=1)
    capacity_of(cloud).leave(host)


def test_a_saved_capacity_has_the_same_future() -> None:
    clouds = [cloud_with(seed=3), cloud_with(seed=3)]
    for cloud in clouds:
        reserve(cloud, H100, 20)
        capacity_of(cloud).set_reserved(cloud, **HERE, size=NC24, group="g", zone="2", machines=3)
        for number in range(20):
            place(cloud, f"machine-{number}")
        for number in range(0, 20, 3):
            capacity_of(cloud).leave(f"southcentralus/1/{H100}/{number}")
    saved = capacity_of(clouds[1]).dump()
    clouds[1].services["capacity"] = Capacity()
    capacity_of(clouds[1]).load(saved)
    futures = [[place(cloud, f"new-{number}") for number in range(15)] for cloud in clouds]
    assert futures[0] == futures[1]
    assert used(clouds[0]) == used(clouds[1])
    assert capacity_of(clouds[0]).dump() == capacity_of(clouds[1]).dump()
