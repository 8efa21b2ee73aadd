"""An Azure with a network, and scale sets in it, for tests."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, instances_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import dump
from rehearsal.azure.registry import new_cloud
from rehearsal.azure.resource import Json, Operation, Request, Resource, Response
from rehearsal.azure.scenario import Scenario, begin_scenario

SUBSCRIPTION = "e5f7a3b2-1b2d-4e6f-8a90-b1c2d3e4f503"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/fleet"
COMPUTE = f"{GROUP}/providers/Microsoft.Compute"
NETWORK = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/net"
SUBNET = f"{NETWORK}/subnets/nodes"
OTHER_SUBNET = f"{NETWORK}/subnets/more"
SET = f"{COMPUTE}/virtualMachineScaleSets/pool-000"
TENANT = "00000000-0000-0000-0000-0000000000aa"
HEALTH: Json = {
    "name": "health",
    "properties": {
        "publisher": "Microsoft.ManagedServices",
        "type": "ApplicationHealthLinux",
        "typeHandlerVersion": "2.0",
        "settings": {"protocol": "http", "port": 10256, "requestPath": "/healthz"},
    },
}
PROFILE = "virtualMachineProfile"
STORAGE = f"{PROFILE}__storageProfile"
NICS = f"{PROFILE}__networkProfile__networkInterfaceConfigurations"
EPHEMERAL: Json = {"createOption": "FromImage", "caching": "ReadOnly", "diffDiskSettings": {"option": "Local", "placement": "NvmeDisk"}}


SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH4b0qbE0gXw2l9D4dP0v9zJ8mXyY1q5r7o0WmB3cVtN operators"


def login(user: str = "gpufleet") -> Json:
    """The user of a Linux machine, who signs in with a key."""
    keys = [{"path": f"/home/{user}/.ssh/authorized_keys", "keyData": SSH_KEY}]
    return {"adminUsername": user, "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": keys}}}


def azure(scenario: Scenario | None = None, *, prefix: str = "10.0.0.0/16", subnet: str = "10.0.0.0/17", seed: int = 0) -> Cloud:
    """An Azure with one group, and a network with two subnets in it."""
    cloud = new_cloud([SUBSCRIPTION], TENANT, seed=seed)
    if scenario is not None:
        begin_scenario(cloud, scenario)
    put(cloud, GROUP, {"location": "swedencentral"})
    put(cloud, NETWORK, {"location": "swedencentral", "properties": {"addressSpace": {"addressPrefixes": [prefix, "172.16.0.0/24"]}}})
    put(cloud, SUBNET, {"properties": {"addressPrefix": subnet}})
    put(cloud, OTHER_SUBNET, {"properties": {"addressPrefix": "172.16.0.0/26"}})
    return cloud


def made(capacity: int = 3, scenario: Scenario | None = None, **properties: Any) -> Cloud:
    """An Azure with a scale set of so many machines in it."""
    cloud = azure(scenario)
    put(cloud, SET, body(capacity, **properties))
    return cloud


def ask(cloud: Cloud, method: str, text: str, body: Json | None = None, action: str = "", **query: str) -> Response:
    """Send one request and let no time pass."""
    return cloud.handle(Request(method, parse(text), action, body=copy.deepcopy(body), query=query))


def put(cloud: Cloud, text: str, body: Json) -> Operation | None:
    """Send a PUT and wait for its end: its operation."""
    return ended(cloud, ask(cloud, "PUT", text, body))


def post(cloud: Cloud, text: str, action: str, body: Json | None = None) -> Operation:
    """Send a POST and wait for its end: its operation."""
    operation = ended(cloud, ask(cloud, "POST", text, body, action))
    assert operation is not None
    return operation


def delete(cloud: Cloud, text: str) -> Operation | None:
    """Send a DELETE and wait for its end."""
    return ended(cloud, ask(cloud, "DELETE", text))


def refused(sent: Json, *, before: Json | None = None) -> AzureError:
    """The refusal of a scale set, after which everything is as it was."""
    cloud = azure()
    if before is not None:
        put(cloud, SET, before)
    was = json.dumps(dump(cloud), sort_keys=True)
    with pytest.raises(AzureError) as caught:
        ask(cloud, "PUT", SET, sent)
    assert json.dumps(dump(cloud), sort_keys=True) == was
    return caught.value


def instance_body(cloud: Cloud, number: int) -> Json:
    """Return Azure's view of one instance."""
    found = ask(cloud, "GET", vm(number)).body
    assert found is not None
    return found


def codes(cloud: Cloud, text: str) -> list[str]:
    """Codes of the statuses of a machine: how it was made, and its power."""
    view = ask(cloud, "GET", text, action="instanceView").body
    assert view is not None
    return [one["code"] for one in view["statuses"]]


def ended(cloud: Cloud, answer: Response) -> Operation | None:
    """The operation of an answer at its end."""
    while answer.operation is not None and answer.operation.running:
        due = cloud.events.next_at()
        assert due is not None, "an operation runs that nothing will end"
        cloud.step(due)
    return answer.operation


def ip_configurations(count: int, subnet: str = SUBNET) -> list[Json]:
    """So many ipConfigurations, the first one primary."""
    return [
        {"name": f"ipconfig{number}", "properties": {"primary": number == 1, "subnet": {"id": subnet}}} for number in range(1, count + 1)
    ]


def nic(name: str, primary: bool, configurations: list[Json]) -> Json:
    """A network interface of a scale set's machines."""
    return {"name": name, "properties": {"primary": primary, "ipConfigurations": configurations}}


def merged(place: Json, changes: dict[str, Any]) -> None:
    """Write values into properties by dotted names, with two underscores for a dot."""
    for path, value in changes.items():
        inner = place
        *names, last = path.split("__")
        for name in names:
            inner = inner.setdefault(name, {})
        inner[last] = value


def body(capacity: int = 3, *, size: str = "Standard_D2s_v5", addresses: int = 2, subnet: str = SUBNET, **properties: Any) -> Json:
    """A scale set as the program makes them; properties are merged in by dotted names with two underscores for a dot."""
    whole: Json = {
        "location": "swedencentral",
        "sku": {"name": size, "tier": "Standard", "capacity": capacity},
        "tags": {"pool": "cpu"},
        "properties": {
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": False,
            "platformFaultDomainCount": 1,
            "overprovision": False,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": "pool-000-", **login(), "customData": "Ym9vdA=="},
                "storageProfile": {
                    "imageReference": image("1.0.0"),
                    "osDisk": {"createOption": "FromImage", "caching": "ReadWrite", "managedDisk": {"storageAccountType": "Premium_LRS"}},
                },
                "networkProfile": {"networkInterfaceConfigurations": [nic("nic", True, ip_configurations(addresses, subnet))]},
            },
        },
    }
    merged(whole["properties"], properties)
    return whole


def scale_set(cloud: Cloud, text: str = SET) -> Resource:
    """The scale set."""
    return cloud.get(text)


def instance(cloud: Cloud, number: int, text: str = SET) -> Instance:
    """One instance of it."""
    return instances_of(cloud.get(text))[str(number)]


def ids(cloud: Cloud, text: str = SET) -> list[int]:
    """Instance ids in the order of their making."""
    return [int(number) for number in instances_of(cloud.get(text))]


def vm(number: int, text: str = SET) -> str:
    """Id of one instance."""
    return f"{text}/virtualMachines/{number}"


def error(operation: Operation | None) -> str:
    """Code of an operation's error, empty where it succeeded."""
    assert operation is not None
    return str((operation.error or {}).get("code", ""))


def image(version: str) -> Json:
    """An image reference of some version."""
    return {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2404", "version": version}
