"""A group that is deleted ends as Azure ends it: with all that is in it, or with what could not go and everything that is part of that."""

from __future__ import annotations

import pytest
from network_bodies import HUB, NET, NODES, interface, located, made, network, place, subnet
from plain_calls import GROUP, LOCATION, Calls
from scale_sets_made import OTHER_SUBNET, SET, SUBNET, ask, azure, body, ip_configurations, post, put

from rehearsal.azure.arm_id import parse
from rehearsal.azure.clock import Event
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Operation, Request

OTHER_GROUP = f"{GROUP[:-1]}h"
ELSEWHERE = f"{OTHER_GROUP}/providers/{NET}/networkInterfaces/elsewhere"


def deleted(calls: Calls, *groups: str) -> list[Operation]:
    """Operations of the deletions of groups, asked for at one moment, at their end; fails where time stands still meanwhile."""
    found = [calls.call("DELETE", group).operation for group in groups]
    operations = [one for one in found if one is not None]
    steps, moment = 0, calls.cloud.now
    while any(one.running for one in operations):
        due = calls.cloud.events.next_at()
        assert due is not None, "an operation runs that nothing will end"
        calls.cloud.step(due)
        steps = steps + 1 if calls.cloud.now == moment else 0
        moment = calls.cloud.now
        assert steps < 500, f"time stands still at {moment}"
    return operations


def test_two_groups_deleted_at_once_both_end() -> None:
    calls = made()
    calls.put(f"{OTHER_GROUP}/providers/{HUB}", network("10.1.0.0/16", subnets={"nodes": "10.1.0.0/24"}))
    operations = deleted(calls, GROUP, OTHER_GROUP)
    assert [one.status for one in operations] == ["Succeeded", "Succeeded"]
    assert not calls.exists(GROUP)
    assert not calls.exists(OTHER_GROUP)


def test_what_is_part_of_something_that_stays_stays_too() -> None:
    calls = made()
    group = f"{NET}/networkSecurityGroups/rules"
    rule = {"protocol": "*", "access": "Allow", "direction": "Inbound", "priority": 100}
    ports = {"sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "22"}
    calls.put(group, located(securityRules=[{"name": "ssh", "properties": {**rule, **ports}}]))
    calls.put(f"{HUB}/subnets/unused", subnet("10.0.1.0/24"))
    calls.put(ELSEWHERE, interface(place("one"), networkSecurityGroup={"id": calls.full(group)}))
    operation = deleted(calls, GROUP)[0]
    assert operation.status == "Failed"
    assert operation.error is not None
    assert operation.error["code"] == "ResourceGroupDeletionBlocked"
    result = {one["target"]: one["message"] for one in operation.error["details"]}
    assert set(result) == {calls.full(HUB), calls.full(group)}
    assert "elsewhere" in result[calls.full(HUB)]
    assert calls.exists(f"{group}/securityRules/ssh")
    assert calls.exists(f"{HUB}/subnets/unused")
    assert calls.get(GROUP)["properties"]["provisioningState"] == "Succeeded"
    deleted(calls, OTHER_GROUP)
    assert deleted(calls, GROUP)[0].status == "Succeeded"


def test_roles_and_locks_on_a_group_go_with_it() -> None:
    calls = made()
    role = f"{GROUP}/providers/Microsoft.Authorization/roleAssignments/11111111-1111-4111-8111-1111111111aa"
    definition = f"{GROUP.partition('/resourceGroups/')[0]}/providers/Microsoft.Authorization/roleDefinitions/reader"
    calls.put(role, {"properties": {"principalId": "33333333-1111-4111-8111-1111111111aa", "roleDefinitionId": definition}})
    assert deleted(calls, GROUP)[0].status == "Succeeded"
    assert not [key for key in calls.cloud.resources if key.startswith(f"{GROUP.lower()}/")]


def test_nothing_is_made_in_a_group_or_a_resource_that_is_being_deleted() -> None:
    calls = made()
    calls.call("DELETE", GROUP)
    calls.cloud.step(calls.cloud.now)
    refused = calls.refusal("PUT", f"{NET}/publicIPPrefixes/late", located("Standard", prefixLength=28))
    assert (refused.status, refused.code) == (409, "ResourceGroupBeingDeleted")
    assert calls.get(GROUP)["properties"]["provisioningState"] == "Deleting"
    assert calls.call("PUT", f"{OTHER_GROUP}/providers/{NET}/publicIPPrefixes/late", located("Standard", prefixLength=28)).status == 201
    account = f"{OTHER_GROUP}/providers/Microsoft.Storage/storageAccounts/fleetbackup"
    calls.put(account, {"location": LOCATION, "sku": {"name": "Standard_LRS"}, "kind": "StorageV2", "properties": {}})
    calls.call("DELETE", account)
    assert calls.refusal("PUT", f"{account}/blobServices/default/containers/late", {"properties": {}}).code == "ResourceBeingDeleted"


def test_nothing_new_refers_to_what_is_being_deleted() -> None:
    calls = made()
    calls.call("DELETE", NODES)
    refused = calls.refusal("PUT", f"{NET}/networkInterfaces/late", interface(place("one")))
    assert (refused.status, refused.details[0].code) == (429, "ReferencedResourceNotProvisioned")
    calls.cloud.run_until_idle()
    assert not calls.exists(NODES)


def test_a_subnet_stays_while_machines_of_an_earlier_model_have_addresses_of_it() -> None:
    cloud = azure()
    put(cloud, SET, body(2, addresses=1))
    moved = body(2, addresses=1)
    nics = moved["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"]
    nics[0]["properties"]["ipConfigurations"] = ip_configurations(1, OTHER_SUBNET)
    put(cloud, SET, moved)
    with pytest.raises(AzureError) as refused:
        ask(cloud, "DELETE", SUBNET)
    assert (refused.value.status, refused.value.code) == (400, "InUseSubnetCannotBeDeleted")
    post(cloud, SET, "delete", {"instanceIds": ["0", "1"]})
    assert ask(cloud, "DELETE", SUBNET).status == 202


def test_a_group_is_looked_through_no_more_often_than_something_in_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = made()
    for number in range(30):
        calls.put(f"{NET}/networkInterfaces/nic{number}", interface())
    passes = 0
    happen = calls.cloud._happen

    def counted(event: Event) -> None:
        nonlocal passes
        passes += event.key == parse(GROUP).key
        happen(event)

    monkeypatch.setattr(calls.cloud, "_happen", counted)
    # What goes on elsewhere is no reason to look.
    for number in range(200):
        calls.cloud.events.after(number / 10, "nobody", "nothing")
    assert deleted(calls, GROUP)[0].status == "Succeeded"
    assert passes <= 40


def test_locks_hold_after_a_model_was_made_again_from_its_journal() -> None:
    calls = Calls()
    lock = f"{GROUP}/providers/Microsoft.Authorization/locks/stay"
    gates, calls.cloud.admission_checks = calls.cloud.admission_checks, []
    calls.cloud.handle(Request("PUT", parse(lock), body={"properties": {"level": "CanNotDelete"}}))
    calls.cloud.admission_checks = gates
    with pytest.raises(AzureError) as refused:
        calls.call("DELETE", GROUP)
    assert refused.value.code == "ScopeLocked"
