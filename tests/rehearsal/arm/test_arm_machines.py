"""A fleet's whole life through the official clients, unpatched: made, listed, looked at, reimaged, deleted, throttled."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

import pytest
from arm_server import ArmServer, arm_server
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.core.pipeline import PipelineResponse
from fleet_made import make_network, scale_set

MACHINES = 260


@pytest.fixture(scope="module")
def subnet(server: ArmServer) -> str:
    return make_network(server, "fleet")


@pytest.fixture(scope="module")
def pool(server: ArmServer, subnet: str) -> str:
    """A scale set of 260 machines that nobody changes."""
    made = server.compute().virtual_machine_scale_sets.begin_create_or_update("fleet", "pool", scale_set(subnet, MACHINES)).result()
    assert made.provisioning_state == "Succeeded"
    return "pool"


def test_a_scale_set_has_its_machines_and_each_has_its_addresses(server: ArmServer, pool: str) -> None:
    machines = list(server.compute().virtual_machine_scale_set_vms.list("fleet", pool))
    assert [one.instance_id for one in machines] == [str(number) for number in range(MACHINES)]
    assert {one.provisioning_state for one in machines} == {"Succeeded"}
    interfaces = list(server.network().network_interfaces.list_virtual_machine_scale_set_network_interfaces("fleet", pool))
    addresses = [one.private_ip_address for card in interfaces for one in card.ip_configurations]
    assert len(addresses) == len(set(addresses)) == 2 * MACHINES
    assert all(ipaddress.ip_address(one) in ipaddress.ip_network("10.0.0.0/20") for one in addresses)


def test_instances_are_listed_over_pages(server: ArmServer, pool: str) -> None:
    pages = [list(page) for page in server.compute().virtual_machine_scale_set_vms.list("fleet", pool).by_page()]
    assert [len(page) for page in pages] == [100, 100, 60]


def test_the_instance_view_says_that_a_machine_runs(server: ArmServer, pool: str) -> None:
    client = server.compute()
    view = client.virtual_machine_scale_set_vms.get_instance_view("fleet", pool, "7")
    assert "PowerState/running" in [one.code for one in view.statuses]
    expanded = client.virtual_machine_scale_set_vms.get("fleet", pool, "7", expand="instanceView")
    assert expanded.instance_view is not None
    summary = client.virtual_machine_scale_sets.get_instance_view("fleet", pool).virtual_machine.statuses_summary
    assert {(one.code, one.count) for one in summary} == {("ProvisioningState/succeeded", MACHINES)}


def test_a_new_image_is_taken_up_by_the_listed_instances_alone(server: ArmServer, subnet: str) -> None:
    client = server.compute()
    sets, machines = client.virtual_machine_scale_sets, client.virtual_machine_scale_set_vms
    sets.begin_create_or_update("fleet", "images", scale_set(subnet, 4)).result()
    sets.begin_create_or_update("fleet", "images", scale_set(subnet, 4, version="2.0.0")).result()
    assert [one.latest_model_applied for one in machines.list("fleet", "images")] == [False] * 4
    sets.begin_update_instances("fleet", "images", {"instanceIds": ["1", "2"]}).result()
    sets.begin_reimage("fleet", "images", {"instanceIds": ["1", "2"]}).result()
    assert [one.latest_model_applied for one in machines.list("fleet", "images")] == [False, True, True, False]
    assert machines.get("fleet", "images", "1").storage_profile.image_reference.version == "2.0.0"


def test_deleted_instances_lower_the_capacity_and_their_ids_do_not_come_back(server: ArmServer, subnet: str) -> None:
    client = server.compute()
    sets, machines = client.virtual_machine_scale_sets, client.virtual_machine_scale_set_vms
    sets.begin_create_or_update("fleet", "shrinks", scale_set(subnet, 5)).result()
    sets.begin_delete_instances("fleet", "shrinks", {"instanceIds": ["0", "3"]}).result()
    machines.begin_delete("fleet", "shrinks", "1").result()
    assert sets.get("fleet", "shrinks").sku.capacity == 2
    with pytest.raises(ResourceNotFoundError):
        machines.get("fleet", "shrinks", "0")
    sets.begin_update("fleet", "shrinks", {"sku": {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 4}}).result()
    assert [one.instance_id for one in machines.list("fleet", "shrinks")] == ["2", "4", "5", "6"]
    sets.begin_delete("fleet", "shrinks").result()
    assert "shrinks" not in [one.name for one in sets.list("fleet")]


def test_a_protected_instance_is_reimaged_by_nobody_but_deleted_by_name(server: ArmServer, subnet: str) -> None:
    client = server.compute()
    sets, machines = client.virtual_machine_scale_sets, client.virtual_machine_scale_set_vms
    sets.begin_create_or_update("fleet", "guarded", scale_set(subnet, 2)).result()
    policy = {"protectionPolicy": {"protectFromScaleIn": True, "protectFromScaleSetActions": True}}
    updated = machines.begin_update("fleet", "guarded", "0", {"location": "southcentralus", "properties": policy}).result()
    assert updated.protection_policy.protect_from_scale_set_actions
    sets.begin_delete_instances("fleet", "guarded", {"instanceIds": ["0"]}).result()
    assert [one.instance_id for one in machines.list("fleet", "guarded")] == ["1"]


def test_a_poller_tells_why_an_operation_failed(server: ArmServer, subnet: str) -> None:
    with pytest.raises(HttpResponseError) as refused:
        server.compute().virtual_machine_scale_sets.begin_create_or_update("fleet", "crowd", scale_set(subnet, 900, addresses=6)).result()
    assert refused.value.error.code == "SubnetIsFull"


def test_a_subnet_in_use_is_not_deleted(server: ArmServer, pool: str) -> None:
    assert pool
    with pytest.raises((HttpResponseError, ResourceExistsError)) as refused:
        server.network().subnets.begin_delete("fleet", "net", "nodes").result()
    assert refused.value.error.code == "InUseSubnetCannotBeDeleted"


def test_an_unknown_property_deep_in_a_body_is_refused_by_name(server: ArmServer, subnet: str) -> None:
    body = scale_set(subnet, 1)
    body["properties"]["virtualMachineProfile"]["storageProfile"]["osDisk"]["colour"] = "red"
    with pytest.raises(HttpResponseError, match="colour") as refused:
        server.compute().virtual_machine_scale_sets.begin_create_or_update("fleet", "odd", body)
    assert refused.value.status_code == 400


def test_usages_are_told_by_family(server: ArmServer, pool: str) -> None:
    assert pool
    usages = {one.name.value: one for one in server.compute().usage.list("southcentralus")}
    assert usages["virtualMachines"].current_value >= MACHINES
    assert usages["cores"].current_value >= 2 * MACHINES


@pytest.fixture(scope="module")
def throttled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ArmServer]:
    """A server with few calls left, which comes back to a client as fast as it may, with three machines."""
    scenario = "seed: 1\nthrottling: {compute: 0.005, network: 1, arm: 1}\n"
    with arm_server(tmp_path_factory.mktemp("throttled") / "state", scenario=scenario, clock="scaled:1000", keep=False) as server:
        subnet = make_network(server, "slow")
        server.compute().virtual_machine_scale_sets.begin_create_or_update("slow", "pool", scale_set(subnet, 3)).result()
        yield server


def test_clients_get_through_a_throttled_azure_by_their_own_retries(throttled: ArmServer) -> None:
    refused: list[str] = []

    def watch(answer: PipelineResponse[Any, Any]) -> None:
        if answer.http_response.status_code == 429:
            refused.append(answer.http_response.headers["Retry-After"])

    client = throttled.compute()
    for _ in range(100):
        assert client.virtual_machine_scale_sets.get("slow", "pool", raw_response_hook=watch).sku.capacity == 3
        if len(refused) >= 2:
            break
    assert len(refused) >= 2
    assert all(int(text) >= 1 for text in refused)


def test_a_call_that_is_turned_away_is_told_how_long_to_wait_and_what_is_left(throttled: ArmServer) -> None:
    token = throttled.token()
    path = f"/subscriptions/{throttled.subscription}/resourceGroups/slow/providers/Microsoft.Compute/virtualMachineScaleSets/pool"
    for _ in range(5_000):
        status, body, headers = throttled.ask("GET", f"{path}?api-version=2026-04-01", token=token)
        if status == 429:
            break
    assert body["error"]["code"] in ("OperationNotAllowed", "TooManyRequests")
    assert int(headers["Retry-After"]) >= 1
    assert "x-ms-ratelimit-remaining-resource" in {key.lower() for key in headers}
