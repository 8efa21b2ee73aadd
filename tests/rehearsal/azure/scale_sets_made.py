"""An Azure with a network, and scale sets in it, for tests."""

from __future__ import annotations

import copy
from typing import Any

from rehearsal.azure.arm_id import parse
from rehearsal.azure.build import build
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, instances_of
from rehearsal.azure.resource import Answer, Json, Operation, Request, Resource
from rehearsal.azure.scenario import Scenario, begin

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


def azure(scenario: Scenario | None = None, *, prefix: str = "10.0.0.0/16", subnet: str = "10.0.0.0/17", seed: int = 0) -> Cloud:
    """An Azure with one group, and a network with two subnets in it."""
    cloud = build([SUBSCRIPTION], TENANT, seed=seed)
    if scenario is not None:
        begin(cloud, scenario)
    put(cloud, GROUP, {"location": "swedencentral"})
    put(cloud, NETWORK, {"location": "swedencentral", "properties": {"addressSpace": {"addressPrefixes": [prefix, "172.16.0.0/24"]}}})
    put(cloud, SUBNET, {"properties": {"addressPrefix": subnet}})
    put(cloud, OTHER_SUBNET, {"properties": {"addressPrefix": "172.16.0.0/26"}})
    return cloud


def ask(cloud: Cloud, method: str, text: str, body: Json | None = None, action: str = "", **query: str) -> Answer:
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


def ended(cloud: Cloud, answer: Answer) -> Operation | None:
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


def body(capacity: int = 3, *, size: str = "Standard_D2s_v5", addresses: int = 2, **properties: Any) -> Json:
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
                "osProfile": {"computerNamePrefix": "pool-000-", "adminUsername": "gpufleet", "customData": "Ym9vdA=="},
                "storageProfile": {
                    "imageReference": {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2404", "version": "1.0.0"},
                    "osDisk": {"createOption": "FromImage", "caching": "ReadWrite", "managedDisk": {"storageAccountType": "Premium_LRS"}},
                },
                "networkProfile": {
                    "networkInterfaceConfigurations": [
                        {"name": "nic", "properties": {"primary": True, "ipConfigurations": ip_configurations(addresses)}}
                    ]
                },
            },
        },
    }
    for path, value in properties.items():
        place = whole["properties"]
        *names, last = path.split("__")
        for name in names:
            place = place.setdefault(name, {})
        place[last] = value
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
