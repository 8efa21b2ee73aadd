"""Each pair of concurrent operations has its outcome over HTTPS, for the official clients on a clock that stands still."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from arm_server import LOCATION, ArmServer, arm_server
from azure.core.exceptions import HttpResponseError
from fleet_made import scale_set
from scale_sets_made import HEALTH, image

from rehearsal.azure import concurrent_operations as pairs
from rehearsal.azure.concurrent_operations import ACCEPTED, CONCURRENT_OPERATIONS, JOINED, PREEMPTS, REFUSED, Concurrency, markdown_row

DOCUMENT = Path(__file__).parents[3] / "docs" / "embedded-azure.md"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH4b0qbE0gXw2l9D4dP0v9zJ8mXyY1q5r7o0WmB3cVtN operators"
Start = Callable[[], Any]


class Fleet:
    """A network, scale sets, machines and gateways, and clients whose operations are not awaited. name is that of the present pair."""

    def __init__(self, server: ArmServer, group: str) -> None:
        self.server, self.group, self.name, self.token = server, group, "", server.token()
        self.polls: dict[str, str] = {}
        self.compute, self.network, self.resources = server.compute(), server.network(), server.resources()
        self.sets, self.vms = self.compute.virtual_machine_scale_sets, self.compute.virtual_machine_scale_set_vms
        self.base = f"/subscriptions/{server.subscription}/resourceGroups/{group}/providers"
        self.subnet = f"{self.base}/Microsoft.Network/virtualNetworks/net/subnets/nodes"

    def send(self, call: Callable[..., Any], *arguments: Any) -> str:
        """Send the first request of an operation, and return the operation's id."""
        kept: list[Any] = []
        call(*arguments, polling=False, raw_response_hook=lambda response: kept.append(response.http_response))
        headers = kept[0].headers
        url = headers.get("Azure-AsyncOperation") or headers.get("Location", "")
        found = re.search(r"/([0-9a-f-]{36})\?", url.replace(self.server.subscription, ""))
        assert found, f"{arguments} started no operation"
        self.polls[found[1]] = url
        return found[1]

    def clock(self, **moved: Any) -> None:
        assert self.server.ask("POST", "/admin/clock", moved, token=self.token)[0] == 200

    def set_body(self, version: str = "1.0.0", mode: str = "Manual", capacity: int = 3) -> dict[str, Any]:
        sent = scale_set(self.subnet, capacity, version=version)
        sent["properties"]["upgradePolicy"] = {"mode": mode, "rollingUpgradePolicy": {"maxBatchInstancePercent": 34}}
        sent["properties"]["virtualMachineProfile"]["extensionProfile"] = {"extensions": [HEALTH]}
        return sent

    def make_set(self) -> None:
        self.send(self.sets.begin_create_or_update, self.group, self.name, self.set_body())
        self.clock(settle=True)
        self.clock(advance="10m")

    def put_set(self, **changes: Any) -> str:
        return self.send(self.sets.begin_create_or_update, self.group, self.name, self.set_body(**changes))

    def put_machine(self, team: str = "one") -> str:
        body = {
            "location": LOCATION,
            "tags": {"team": team},
            "properties": {
                "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
                "osProfile": {
                    "computerName": "vm",
                    "adminUsername": "gpufleet",
                    "linuxConfiguration": {
                        "disablePasswordAuthentication": True,
                        "ssh": {"publicKeys": [{"path": "/home/gpufleet/.ssh/authorized_keys", "keyData": KEY}]},
                    },
                },
                "storageProfile": {"imageReference": image("1.0.0"), "osDisk": {"createOption": "FromImage"}},
                "networkProfile": {"networkInterfaces": [{"id": f"{self.base}/Microsoft.Network/networkInterfaces/{self.name}"}]},
            },
        }
        return self.send(self.compute.virtual_machines.begin_create_or_update, self.group, self.name, body)

    def make_nic(self) -> None:
        configuration = {"name": "ip", "properties": {"primary": True, "subnet": {"id": self.subnet}}}
        body = {"location": LOCATION, "properties": {"ipConfigurations": [configuration]}}
        self.send(self.network.network_interfaces.begin_create_or_update, self.group, self.name, body)
        self.clock(settle=True)

    def make_machine(self) -> None:
        self.make_nic()
        self.put_machine()
        self.clock(settle=True)

    def make_network(self) -> None:
        self.resources.resource_groups.create_or_update(self.group, {"location": LOCATION})
        whole = {"location": LOCATION, "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}
        self.send(self.network.virtual_networks.begin_create_or_update, self.group, "net", whole)
        self.clock(settle=True)
        self.put_subnet("nodes", "10.0.0.0/24")
        self.clock(settle=True)

    def put_subnet(self, name: str, prefix: str) -> str:
        return self.send(self.network.subnets.begin_create_or_update, self.group, "net", name, {"properties": {"addressPrefix": prefix}})

    def put_gateway(self) -> str:
        body = {"location": LOCATION, "sku": {"name": "Standard"}}
        return self.send(self.network.nat_gateways.begin_create_or_update, self.group, self.name, body)

    def make_gateway(self) -> None:
        self.put_gateway()
        self.clock(settle=True)

    def restart(self, number: str = "0") -> str:
        return self.send(self.vms.begin_restart, self.group, self.name, number)

    def delete_instance(self) -> str:
        return self.send(self.vms.begin_delete, self.group, self.name, "0")

    def delete_set(self) -> str:
        return self.send(self.sets.begin_delete, self.group, self.name)

    def delete_machine(self) -> str:
        return self.send(self.compute.virtual_machines.begin_delete, self.group, self.name)

    def delete_gateway(self) -> str:
        return self.send(self.network.nat_gateways.begin_delete, self.group, self.name)

    def roll(self) -> str:
        operation = self.put_set(version="2.0.0", mode="Rolling")
        self.clock(advance="30s")
        return operation

    def start_rolling(self) -> str:
        return self.send(self.compute.virtual_machine_scale_set_rolling_upgrades.begin_start_os_upgrade, self.group, self.name)

    def restart_listed(self) -> str:
        return self.send(self.sets.begin_restart, self.group, self.name, {"instanceIds": ["0"]})

    def delete_group(self) -> str:
        return self.send(self.resources.resource_groups.begin_delete, self.group)

    def scenarios(self) -> dict[tuple[str, str], tuple[Start, Start, Start]]:
        """Preparation, running operation and request of each pair."""
        other, no_set = lambda: self.restart("1"), lambda: None
        first, second = lambda: self.put_set(version="2.0.0"), lambda: self.put_set(version="3.0.0", capacity=4)
        made, machine = self.make_set, self.make_machine
        return {
            (pairs.ROLLING, pairs.SET_PUT): (made, self.roll, second),
            (pairs.ROLLING, pairs.ROLLING): (made, self.roll, self.start_rolling),
            (pairs.ROLLING, pairs.SET_DELETE): (made, self.roll, self.delete_set),
            (pairs.SET_PUT, pairs.SET_PUT): (made, first, second),
            (pairs.SET_PUT, pairs.SET_DELETE): (no_set, self.put_set, self.delete_set),
            (pairs.SET_PUT, pairs.REQUEST): (made, first, self.restart),
            (pairs.TASK, pairs.SET_PUT): (made, self.restart, first),
            (pairs.TASK, pairs.SET_DELETE): (made, self.restart, self.delete_set),
            (pairs.TASK, pairs.REQUEST): (made, self.restart, self.restart),
            (pairs.TASK, pairs.DELETE): (made, self.restart, self.delete_instance),
            (pairs.OTHERS, pairs.REQUEST): (made, self.restart, other),
            (pairs.DELETE, pairs.REQUEST): (made, self.delete_instance, self.restart),
            (pairs.DELETE, pairs.DELETE): (made, self.delete_instance, self.delete_instance),
            (pairs.DELETE, pairs.LISTED): (made, self.delete_instance, self.restart_listed),
            (pairs.SET_DELETE, pairs.SET_PUT): (made, self.delete_set, second),
            (pairs.SET_DELETE, pairs.SET_REQUEST): (made, self.delete_set, self.restart_listed),
            (pairs.SET_DELETE, pairs.SET_DELETE): (made, self.delete_set, self.delete_set),
            (pairs.MACHINE_PUT, pairs.MACHINE_PUT): (self.make_nic, self.put_machine, lambda: self.put_machine("two")),
            (pairs.MACHINE_PUT, pairs.MACHINE_DELETE): (self.make_nic, self.put_machine, self.delete_machine),
            (pairs.MACHINE_DELETE, pairs.MACHINE_PUT): (machine, self.delete_machine, lambda: self.put_machine("two")),
            (pairs.MACHINE_DELETE, pairs.MACHINE_DELETE): (machine, self.delete_machine, self.delete_machine),
            (pairs.GROUP_DELETE, pairs.ANY_PUT): (self.make_gateway, self.delete_group, lambda: self.put_subnet(self.name, "10.0.1.0/24")),
            (pairs.NETWORK, pairs.NETWORK): (
                no_set,
                lambda: self.put_subnet(self.name, "10.0.1.0/24"),
                lambda: self.put_subnet("other", "10.0.2.0/24"),
            ),
            (pairs.ANY_DELETE, pairs.ANY_PUT): (self.make_gateway, self.delete_gateway, self.put_gateway),
            (pairs.ANY_DELETE, pairs.ANY_DELETE): (self.make_gateway, self.delete_gateway, self.delete_gateway),
        }

    def status(self, operation: str) -> tuple[str, str]:
        """Status and error code of an operation, from where its poller would read them."""
        status, found, _ = self.server.ask("GET", self.polls[operation], token=self.token)
        if "status" in (found or {}):
            return found["status"], (found.get("error") or {}).get("code", "")
        return ("Succeeded", "") if status in (200, 204) else ("Failed", found["error"]["code"])


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A network on a server whose clock stands still."""
    with arm_server(tmp_path_factory.mktemp("still") / "state", clock="manual", keep=False) as running:
        fleet = Fleet(running, "fleet")
        fleet.make_network()
        yield fleet


@pytest.mark.parametrize("row", CONCURRENT_OPERATIONS, ids=lambda row: f"{row.running}, {row.request}")
def test_a_request_during_another_operation_has_its_outcome(still: Fleet, row: Concurrency) -> None:
    fleet = still
    if row.running == pairs.GROUP_DELETE:
        fleet = Fleet(still.server, "leaving")
        fleet.make_network()
    fleet.name = f"pair{CONCURRENT_OPERATIONS.index(row)}"
    prepare, begin, request = fleet.scenarios()[row.running, row.request]
    prepare()
    running = begin()
    if row.outcome == REFUSED:
        with pytest.raises(HttpResponseError) as caught:
            request()
        assert caught.value.error is not None
        assert (caught.value.status_code, caught.value.error.code) == (row.status, row.code)
        fleet.clock(settle=True)
        assert fleet.status(running)[0] == "Succeeded"
        return
    newer = request()
    fleet.clock(settle=True)
    if row.outcome == JOINED:
        assert newer == running
    else:
        assert fleet.status(newer)[0] == "Succeeded"
    assert fleet.status(running) == (("Failed", "OperationPreempted") if row.outcome == PREEMPTS else ("Succeeded", ""))


def test_the_document_has_the_table() -> None:
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    found = [line for line in lines if line in {markdown_row(row) for row in CONCURRENT_OPERATIONS}]
    assert found == [markdown_row(row) for row in CONCURRENT_OPERATIONS]
    assert {row.outcome for row in CONCURRENT_OPERATIONS} == {ACCEPTED, JOINED, PREEMPTS, REFUSED}
