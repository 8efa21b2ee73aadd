"""Scale sets grow and shrink as on Azure: the capacity, the order of scale-in, and allocation failures."""

from __future__ import annotations

from collections import Counter

import pytest
from scale_sets_made import (
    GROUP,
    SET,
    SUBNET,
    ask,
    azure,
    body,
    codes,
    delete,
    ended,
    error,
    ids,
    instance,
    instance_body,
    made,
    post,
    put,
    scale_set,
    vm,
)

from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.compute.instances import instances_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.network.address_pools import pool_of
from rehearsal.azure.scenario import AllocationFailure, FailedProvisioning, Scenario


def test_a_set_spreads_its_machines_over_zones_and_fault_domains() -> None:
    cloud = azure()
    put(cloud, SET, {**body(13, platformFaultDomainCount=5), "zones": ["1", "2", "3"]})
    zones = Counter(one.zone for one in instances_of(scale_set(cloud)).values())
    assert sorted(zones.values()) == [4, 4, 5]
    assert instance_body(cloud, 4)["zones"] == ["2"]
    assert {one.fault_domain for one in instances_of(scale_set(cloud)).values() if one.zone == "1"} == set(range(5))


def test_an_explicit_delete_lowers_the_capacity_and_ids_are_not_used_again() -> None:
    cloud = made(4)
    answer = ask(cloud, "POST", SET, {"instanceIds": ["1", "2"]}, "delete", forceDeletion="true")
    assert answer.status == 202
    assert scale_set(cloud).body["sku"]["capacity"] == 2
    assert instance_body(cloud, 1)["properties"]["provisioningState"] == "Deleting"
    assert ask(cloud, "GET", SET).body["properties"]["provisioningState"] == "Updating"  # type: ignore[index]
    ended(cloud, answer)
    assert ids(cloud) == [0, 3]
    assert delete(cloud, vm(3)) is not None
    assert (scale_set(cloud).body["sku"]["capacity"], ids(cloud)) == (1, [0])
    put(cloud, SET, body(4))
    assert ids(cloud) == [0, 4, 5, 6]
    ask(cloud, "PATCH", SET, {"tags": {"pool": "x"}})
    cloud.run_until_idle()
    assert ids(cloud) == [0, 4, 5, 6]


def test_a_deleted_machine_frees_its_addresses_which_the_next_one_takes() -> None:
    cloud = made(3, addresses=4)
    freed = instance(cloud, 0).addresses
    delete(cloud, vm(0))
    assert pool_of(cloud, SUBNET).used == 8
    put(cloud, SET, body(3, addresses=4))
    assert instance(cloud, 3).addresses == freed


@pytest.mark.parametrize("action", ["delete", "manualupgrade"])
def test_ids_must_be_given_and_be_those_of_active_instances(action: str) -> None:
    cloud = made(2)
    for sent in (None, {"instanceIds": []}):
        with pytest.raises(AzureError, match="'instanceIds' is missing"):
            ask(cloud, "POST", SET, sent, action)
    with pytest.raises(AzureError, match="The provided instanceId 7 is not an active Virtual Machine Scale Set VM instanceId"):
        ask(cloud, "POST", SET, {"instanceIds": ["0", "7"]}, action)
    ask(cloud, "DELETE", vm(1))
    with pytest.raises(AzureError, match="instanceId 1 is not an active"):
        ask(cloud, "POST", SET, {"instanceIds": ["1"]}, action)


def test_what_is_being_deleted_takes_nothing_but_a_delete() -> None:
    cloud = made(2)
    first = ask(cloud, "DELETE", vm(1)).operation
    with pytest.raises(AzureError, match="marked for deletion"):
        ask(cloud, "POST", vm(1), action="restart")
    assert ask(cloud, "DELETE", vm(1)).operation is first
    assert scale_set(cloud).body["sku"]["capacity"] == 1
    ask(cloud, "DELETE", SET)
    with pytest.raises(AzureError, match="marked for deletion"):
        ask(cloud, "POST", SET, {"instanceIds": ["0"]}, "restart")
    with pytest.raises(AzureError, match="since it is marked for deletion"):
        ask(cloud, "PUT", SET, body(1))


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        # The examples of https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-scale-in-policy
        ([], {"1": [0, 3], "2": [1, 4], "3": [2]}),
        (["NewestVM"], {"1": [0, 3], "2": [1, 4], "3": [2]}),
        (["OldestVM"], {"1": [6], "2": [4, 7], "3": [5, 8]}),
    ],
)
def test_scale_in_balances_zones_and_then_follows_the_policy(rules: list[str], left: dict[str, list[int]]) -> None:
    cloud = azure()
    put(cloud, SET, {**body(9, scaleInPolicy={"rules": rules}), "zones": ["1", "2", "3"]})
    put(cloud, SET, {**body(5, scaleInPolicy={"rules": rules}), "zones": ["1", "2", "3"]})
    found: dict[str, list[int]] = {}
    for one in instances_of(scale_set(cloud)).values():
        found.setdefault(one.zone, []).append(one.id)
    assert found == left


def test_scale_in_takes_first_from_the_zone_with_the_most() -> None:
    cloud = azure()
    put(cloud, SET, {**body(6), "zones": ["1", "2", "3"]})
    post(cloud, SET, "delete", {"instanceIds": ["0", "1"]})
    put(cloud, SET, {**body(3), "zones": ["1", "2", "3"]})
    assert ids(cloud) == [2, 3, 4]


def test_machines_without_hardware_are_missing_and_the_next_put_makes_them() -> None:
    cloud = azure(Scenario(allocation_failures=(AllocationFailure(rate=0.4),)))
    operation = put(cloud, SET, body(20))
    assert error(operation) == "AllocationFailed"
    assert operation is not None
    assert operation.error is not None
    missing = len(operation.error["details"])
    assert missing > 1
    resource = scale_set(cloud)
    assert (resource.properties["provisioningState"], resource.body["sku"]["capacity"]) == ("Failed", 20)
    assert len(ids(cloud)) == 20 - missing
    assert pool_of(cloud, SUBNET).used == 2 * (20 - missing)
    cloud.services["scenario"].scenario = Scenario()
    assert error(put(cloud, SET, body(20))) == ""
    assert len(ids(cloud)) == 20
    assert max(ids(cloud)) == 19 + missing


def test_a_machine_whose_provisioning_fails_stays_and_says_why() -> None:
    cloud = azure(Scenario(failed_provisioning=(FailedProvisioning(rate=1.0, code="OSProvisioningTimedOut"),)))
    assert error(put(cloud, SET, body(1))) == "OSProvisioningTimedOut"
    assert codes(cloud, vm(0)) == ["ProvisioningState/failed/OSProvisioningTimedOut", "PowerState/running"]
    assert instance_body(cloud, 0)["properties"]["provisioningState"] == "Failed"
    summary = ask(cloud, "GET", SET, action="instanceView").body
    assert summary is not None
    assert summary["virtualMachine"]["statusesSummary"] == [{"code": "ProvisioningState/failed", "count": 1}]


def test_a_newer_put_overtakes_an_earlier_one_and_the_machines_go_on() -> None:
    cloud = azure()
    first = ask(cloud, "PUT", SET, body(3)).operation
    cloud.advance(cloud.now + 10)
    second = put(cloud, SET, body(5))
    assert (error(first), error(second)) == ("OperationPreempted", "")
    assert ids(cloud) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("counts", [(10, 0), (10, 4)])
def test_overprovisioning_makes_more_and_keeps_as_many_as_asked_for(counts: tuple[int, int]) -> None:
    cloud = azure()
    ask(cloud, "PUT", SET, body(counts[0], overprovision=True))
    assert len(ids(cloud)) == 12
    assert capacity_of(cloud).quota.used((SET.split("/")[2], "swedencentral"), "virtualMachines") == 10, "surplus does not count"
    if counts[1]:
        ask(cloud, "POST", SET, {"instanceIds": [str(number) for number in range(counts[1])]}, "delete")
    cloud.run_until_idle()
    assert len(ids(cloud)) == scale_set(cloud).body["sku"]["capacity"] == counts[0] - counts[1]


def test_overprovisioning_makes_up_for_allocation_failures() -> None:
    scenario = Scenario(allocation_failures=(AllocationFailure(rate=0.05),))
    with_surplus, without = azure(scenario), azure(scenario)
    assert error(put(without, SET, body(30))) == "AllocationFailed"
    assert error(put(with_surplus, SET, body(30, overprovision=True))) == ""
    assert len(ids(with_surplus)) == 30


def test_a_set_goes_with_everything_that_it_held() -> None:
    cloud = made(4)
    answer = ask(cloud, "DELETE", SET)
    assert ask(cloud, "GET", SET).body["properties"]["provisioningState"] == "Deleting"  # type: ignore[index]
    assert error(ended(cloud, answer)) == ""
    assert cloud.find(SET) is None
    assert (pool_of(cloud, SUBNET).used, capacity_of(cloud).hosts.in_use()) == (0, 0)
    assert capacity_of(cloud).quota.used((SET.split("/")[2], "swedencentral"), "cores") == 0
    put(cloud, SET, body(2))
    assert ids(cloud) == [0, 1]


def test_events_of_a_set_that_is_gone_do_not_touch_the_next_one_of_its_name() -> None:
    cloud = made(2)
    ask(cloud, "POST", SET, None, "redeploy")
    delete(cloud, SET)
    ask(cloud, "PUT", SET, body(2))
    assert all(one.state == "Creating" for one in instances_of(scale_set(cloud)).values())
    cloud.run_until_idle()
    assert [one.power for one in instances_of(scale_set(cloud)).values()] == ["running", "running"]


def test_a_subnet_stays_while_machines_are_in_it() -> None:
    cloud = made(1)
    with pytest.raises(AzureError, match="InUseSubnetCannotBeDeleted"):
        ask(cloud, "DELETE", SUBNET)
    delete(cloud, SET)
    delete(cloud, SUBNET)
    assert cloud.find(SUBNET) is None


def test_machines_draw_on_the_reservation_that_their_profile_names_and_have_hardware_as_far_as_it_reaches() -> None:
    cloud = azure()
    group = f"{GROUP}/providers/Microsoft.Compute/capacityReservationGroups/kept"
    put(cloud, group, {"location": "swedencentral", "zones": ["1"]})
    unchanged = {"location": "swedencentral", "zones": ["1"], "sku": {"name": "Standard_D2s_v5", "capacity": 3}}
    put(cloud, f"{group}/capacityReservations/d2s", unchanged)
    cloud.services["scenario"].scenario = Scenario(allocation_failures=(AllocationFailure(rate=1.0),))
    named = {"capacityReservationGroup": {"id": group}}
    sent = {**body(3, virtualMachineProfile__capacityReservation=named), "zones": ["1"]}
    assert error(put(cloud, SET, sent)) == ""
    assert capacity_of(cloud).drawn(group=group, size="Standard_D2s_v5", zone="1") == 3
    sent["sku"]["capacity"] = 4
    assert error(put(cloud, SET, sent)) == "ZonalAllocationFailed"
    assert len(ids(cloud)) == 3
    delete(cloud, SET)
    assert capacity_of(cloud).drawn(group=group, size="Standard_D2s_v5", zone="1") == 0
