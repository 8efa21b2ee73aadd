"""Instances behave as on Azure: their names and ids, the effect of each operation, and the order of scale-in."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest
from scale_sets_made import (
    GROUP,
    HEALTH,
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
    image,
    instance,
    instance_body,
    made,
    post,
    put,
    scale_set,
    vm,
)

from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import addresses_of, instances_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.network.address_pools import pool_of
from rehearsal.azure.scenario import AllocationFailure, BadHosts, Scenario

IMAGE = "virtualMachineProfile__storageProfile__imageReference"
INSTANCES = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"


def protect(cloud: Cloud, number: int, *, scale_in: bool = True, actions: bool = False) -> None:
    policy = {"protectFromScaleIn": scale_in or actions, "protectFromScaleSetActions": actions}
    put(cloud, vm(number), {"location": "swedencentral", "properties": {"protectionPolicy": policy}})


def test_an_instance_is_created_boots_and_tells_so() -> None:
    cloud = azure()
    answer = ask(cloud, "PUT", SET, body(1))
    assert answer.status == 201
    assert instance_body(cloud, 0)["properties"]["provisioningState"] == "Creating"
    assert codes(cloud, vm(0)) == ["ProvisioningState/creating"]
    ended(cloud, answer)
    assert codes(cloud, vm(0)) == ["ProvisioningState/succeeded", "PowerState/running"]
    view = ask(cloud, "GET", vm(0), action="instanceView").body
    assert view is not None
    assert view["vmAgent"]["statuses"][0]["displayStatus"] == "Not Ready"
    cloud.advance(instance(cloud, 0).ready)
    view = ask(cloud, "GET", vm(0), action="instanceView").body
    assert view is not None
    assert view["vmAgent"]["statuses"][0]["displayStatus"] == "Ready"


def test_an_instance_is_named_by_set_and_id_and_its_computer_by_base_36() -> None:
    cloud = made(38)
    one = instance_body(cloud, 37)
    assert (one["name"], one["instanceId"], one["properties"]["osProfile"]["computerName"]) == ("pool-000_37", "37", "pool-000-000011")
    assert instance_body(cloud, 35)["properties"]["osProfile"]["computerName"] == "pool-000-00000Z"
    assert len({instance_body(cloud, number)["properties"]["vmId"] for number in range(38)}) == 38


def test_every_ip_configuration_has_its_own_address_and_the_interfaces_tell_it() -> None:
    cloud = made(5, addresses=8)
    known = [address for *_, address in addresses_of(scale_set(cloud))]
    assert len(set(known)) == 40
    assert min(known) == int(IPv4Address("10.0.0.4"))
    listed = list(cloud.list(SET, "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces"))
    assert [one.properties["virtualMachine"]["id"] for one in listed] == [vm(number) for number in range(5)]
    configurations = [item for one in listed for item in one.properties["ipConfigurations"]]
    assert [int(IPv4Address(item["properties"]["privateIPAddress"])) for item in configurations] == known
    assert sum(item["properties"]["primary"] for item in configurations) == 5
    own = ask(cloud, "GET", f"{vm(2)}/networkInterfaces/nic").body
    assert own == listed[2].body
    assert [one.body for one in cloud.list(vm(2), f"{INSTANCES}/networkInterfaces")] == [own]


def test_instances_are_found_listed_and_part_of_their_set() -> None:
    cloud = made(3)
    listed = list(cloud.list(SET, INSTANCES))
    assert [one.body["instanceId"] for one in listed] == ["0", "1", "2"]
    assert [one.id.text for one in cloud.list(GROUP, INSTANCES)] == [vm(number) for number in range(3)]
    found = cloud.find(vm(1).upper())
    assert found is not None
    assert found.body == listed[1].body
    assert cloud.find(vm(9)) is None
    assert len(cloud.resources) == 5, "instances are no resources of their own"
    expanded = ask(cloud, "GET", vm(0), **{"$expand": "instanceView"}).body
    assert expanded is not None
    assert expanded["properties"]["instanceView"]["statuses"][1]["code"] == "PowerState/running"


def test_two_operations_on_one_instance_conflict_and_a_delete_overtakes() -> None:
    cloud = made(2)
    restart = ask(cloud, "POST", vm(0), action="restart").operation
    assert restart is not None
    with pytest.raises(AzureError) as caught:
        ask(cloud, "POST", vm(0), action="reimage")
    assert (caught.value.status, caught.value.code) == (409, "Conflict")
    assert error(ended(cloud, ask(cloud, "POST", vm(1), action="reimage"))) == ""
    restart = ask(cloud, "POST", vm(1), action="restart").operation
    delete(cloud, vm(1))
    assert error(restart) == "OperationPreempted"


@pytest.mark.parametrize(
    ("action", "os_disk", "local", "host"),
    [
        ("restart", False, False, False),
        ("reimage", True, False, False),
        ("reimageAll", True, False, False),
        ("redeploy", False, True, True),
        ("powerOff", False, False, False),
        ("deallocate", False, True, True),
    ],
)
def test_what_an_operation_takes_from_a_machine(action: str, os_disk: bool, local: bool, host: bool) -> None:
    cloud = made(2)
    one = instance(cloud, 1)
    before = (one.os_disk, one.local_disks, one.host, one.addresses, one.ready)
    assert post(cloud, vm(1), action).status == "Succeeded"
    assert (one.os_disk != before[0], one.local_disks != before[1], one.host != before[2]) == (os_disk, local, host)
    assert one.addresses == before[3]
    assert (one.ready > before[4]) == (action not in ("powerOff", "deallocate"))


def test_a_stopped_machine_starts_where_it_was_and_a_deallocated_one_anywhere() -> None:
    cloud = made(1)
    one = instance(cloud, 0)
    host = one.host
    post(cloud, SET, "powerOff")
    assert codes(cloud, vm(0))[1] == "PowerState/stopped"
    post(cloud, SET, "start", {"instanceIds": ["0"]})
    assert (one.power, one.host) == ("running", host)
    post(cloud, SET, "deallocate")
    assert (one.power, one.host) == ("deallocated", "")
    with pytest.raises(AzureError, match="OperationNotAllowed"):
        ask(cloud, "POST", vm(0), action="restart")
    post(cloud, vm(0), "start")
    assert one.power == "running"
    assert one.host


def test_a_deallocated_machine_keeps_its_quota_and_may_find_no_hardware_when_it_starts() -> None:
    cloud = made(2)
    post(cloud, vm(0), "deallocate")
    assert capacity_of(cloud).quota.used((SET.split("/")[2], "swedencentral"), "cores") == 4
    cloud.services["scenario"].scenario = Scenario(allocation_failures=(AllocationFailure(rate=1.0),))
    assert error(post(cloud, vm(0), "start")) == "AllocationFailed"
    assert codes(cloud, vm(0)) == ["ProvisioningState/failed/AllocationFailed", "PowerState/deallocated"]
    assert error(post(cloud, vm(1), "redeploy")) == "AllocationFailed"
    assert instance(cloud, 1).host, "a redeploy that finds no hardware leaves the machine where it was"


def test_a_redeploy_cures_a_bad_host_and_a_reimage_does_not() -> None:
    cloud = made(30, Scenario(bad_hosts=(BadHosts(share=0.3),), spare_hosts=2.0))
    capacity = capacity_of(cloud)
    bad = next(one for one in instances_of(scale_set(cloud)).values() if capacity.faults(cloud, one.host))
    post(cloud, vm(bad.id), "reimage")
    assert capacity.faults(cloud, bad.host) == ("gpu",)
    for _ in range(10):
        if capacity.faults(cloud, bad.host):
            post(cloud, vm(bad.id), "redeploy")
    assert capacity.faults(cloud, bad.host) == ()


def test_a_new_image_reaches_the_instances_that_are_named_and_no_others() -> None:
    cloud = made(3)
    put(cloud, SET, body(3, **{IMAGE: image("2.0.0")}))
    assert [instance_body(cloud, number)["properties"]["latestModelApplied"] for number in range(3)] == [False] * 3
    assert [one.os_disk for one in instances_of(scale_set(cloud)).values()] == [1, 1, 1]
    post(cloud, SET, "manualupgrade", {"instanceIds": ["1"]})
    assert [instance_body(cloud, number)["properties"]["latestModelApplied"] for number in range(3)] == [False, True, False]
    assert instance_body(cloud, 1)["properties"]["storageProfile"]["imageReference"]["version"] == "2.0.0"
    post(cloud, vm(0), "reimage")
    assert instance_body(cloud, 0)["properties"]["storageProfile"]["imageReference"]["version"] == "1.0.0", (
        "the image of the instance's model"
    )
    put(cloud, SET, body(4, **{IMAGE: image("2.0.0")}))
    assert instance_body(cloud, 3)["properties"]["latestModelApplied"] is True
    post(cloud, SET, "manualupgrade", {"instanceIds": ["*"]})
    assert {one.os_disk for one in instances_of(scale_set(cloud)).values()} == {1, 2, 3}
    assert all(one.model == one.os_model == scale_set(cloud).state.model for one in instances_of(scale_set(cloud)).values())


def test_new_boot_data_reaches_the_guest_with_a_reimage_after_the_upgrade() -> None:
    cloud = made(1)
    put(cloud, SET, body(1, virtualMachineProfile__osProfile__customData="bmV3"))
    post(cloud, SET, "manualupgrade", {"instanceIds": ["0"]})
    one, latest = instance(cloud, 0), scale_set(cloud).state.model
    assert (one.model, one.os_disk) == (latest, 1)
    assert one.os_model != latest
    post(cloud, vm(0), "reimage")
    assert one.os_model == latest


def test_another_size_moves_the_machine_and_its_quota_when_it_is_upgraded() -> None:
    cloud = made(2)
    put(cloud, SET, body(2, size="Standard_D4s_v5"))
    place = (SET.split("/")[2], "swedencentral")
    assert capacity_of(cloud).quota.used(place, "cores") == 4
    host = instance(cloud, 0).host
    post(cloud, SET, "manualupgrade", {"instanceIds": ["0"]})
    assert capacity_of(cloud).quota.used(place, "cores") == 6
    assert instance(cloud, 0).host != host


def test_new_ip_configurations_get_addresses_with_the_upgrade_and_the_others_keep_theirs() -> None:
    cloud = made(1, addresses=3)
    before = instance(cloud, 0).addresses
    put(cloud, SET, body(1, addresses=5))
    assert instance(cloud, 0).addresses == before
    post(cloud, SET, "manualupgrade", {"instanceIds": ["0"]})
    assert instance(cloud, 0).addresses[:3] == before
    assert len(set(instance(cloud, 0).addresses)) == pool_of(cloud, SUBNET).used == 5
    put(cloud, SET, body(1, addresses=2))
    post(cloud, SET, "manualupgrade", {"instanceIds": ["0"]})
    assert instance(cloud, 0).addresses == before[:2]
    assert pool_of(cloud, SUBNET).used == 2


def test_protection_from_scale_in_is_no_protection_from_a_delete_by_id() -> None:
    cloud = made(3)
    protect(cloud, 2)
    put(cloud, SET, body(2))
    assert ids(cloud) == [0, 2]
    protect(cloud, 0)
    with pytest.raises(AzureError, match="2 of 2 instances are protected from scale-in"):
        ask(cloud, "PUT", SET, body(1))
    assert scale_set(cloud).body["sku"]["capacity"] == 2
    delete(cloud, vm(2))
    assert ids(cloud) == [0]


def test_protection_from_set_actions_blocks_those_of_the_set_and_not_those_of_the_instance() -> None:
    cloud = made(2)
    protect(cloud, 1, actions=True)
    assert instance_body(cloud, 1)["properties"]["protectionPolicy"] == {"protectFromScaleIn": True, "protectFromScaleSetActions": True}
    for action in ("reimage", "restart", "powerOff", "deallocate", "redeploy", "manualupgrade"):
        with pytest.raises(AzureError, match="protected from scale set actions"):
            ask(cloud, "POST", SET, {"instanceIds": ["0", "1"]}, action)
    post(cloud, SET, "reimage")
    assert [one.os_disk for one in instances_of(scale_set(cloud)).values()] == [2, 1]
    post(cloud, vm(1), "reimage")
    assert instance(cloud, 1).os_disk == 2
    post(cloud, SET, "delete", {"instanceIds": ["1"]})
    assert ids(cloud) == [0]


def test_a_protection_policy_that_contradicts_itself_is_refused() -> None:
    cloud = made(1)
    policy = {"protectFromScaleIn": False, "protectFromScaleSetActions": True}
    with pytest.raises(AzureError, match="protectFromScaleIn cannot be false"):
        ask(cloud, "PUT", vm(0), {"location": "swedencentral", "properties": {"protectionPolicy": policy}})
    with pytest.raises(AzureError, match="NotModelled"):
        ask(cloud, "PUT", vm(0), {"location": "swedencentral", "properties": {"hardwareProfile": {"vmSize": "Standard_D4s_v5"}}})
    read = instance_body(cloud, 0)
    read["properties"]["protectionPolicy"] = {"protectFromScaleIn": True}
    assert ask(cloud, "PUT", vm(0), read).status == 200


def test_unknown_instances_actions_and_methods_are_refused() -> None:
    cloud = made(1, virtualMachineProfile__extensionProfile={"extensions": [HEALTH]})
    with pytest.raises(AzureError, match="ResourceNotFound"):
        ask(cloud, "GET", vm(7))
    assert ask(cloud, "DELETE", vm(7)).status == 204
    with pytest.raises(AzureError, match="ParentResourceNotFound"):
        ask(cloud, "GET", f"{SET}x/virtualMachines/0")
    with pytest.raises(AzureError, match=r"NotModelled.*POST .*explode"):
        ask(cloud, "POST", vm(0), action="explode")
    with pytest.raises(AzureError, match="MethodNotAllowed"):
        ask(cloud, "PATCH", vm(0), {})
    with pytest.raises(AzureError, match="MethodNotAllowed"):
        ask(cloud, "PUT", f"{vm(0)}/networkInterfaces/nic", {})


def test_a_scenario_refuses_requests_while_azure_works_on_other_instances() -> None:
    cloud = made(3, Scenario(concurrent_requests=1.0))
    restart = ask(cloud, "POST", vm(0), action="restart")
    for method, text, sent, action in (
        ("POST", vm(1), None, "reimage"),
        ("DELETE", vm(1), None, ""),
        ("POST", SET, {"instanceIds": ["1"]}, "delete"),
        ("POST", SET, {"instanceIds": ["1"]}, "manualupgrade"),
    ):
        with pytest.raises(AzureError, match="conflict with a concurrent request"):
            ask(cloud, method, text, sent, action)
    assert scale_set(cloud).body["sku"]["capacity"] == 3
    ended(cloud, restart)
    assert post(cloud, vm(1), "reimage").status == "Succeeded"
