"""A network and scale sets, made through the official clients."""

from __future__ import annotations

from typing import Any

from arm_server import LOCATION, ArmServer
from scale_sets_made import STORAGE, body, image


def make_network(server: ArmServer, group: str) -> str:
    """Make a group and a network in it: the id of its subnet of 4,091 free addresses."""
    server.resources().resource_groups.create_or_update(group, {"location": LOCATION})
    client = server.network()
    network = {"location": LOCATION, "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}
    client.virtual_networks.begin_create_or_update(group, "net", network).result()
    subnet = client.subnets.begin_create_or_update(group, "net", "nodes", {"properties": {"addressPrefix": "10.0.0.0/20"}}).result()
    return str(subnet.id)


def make_by_hand(server: ArmServer, group: str, capacity: int, profile: dict[str, Any]) -> str:
    """Make a group, a network and a scale set on a clock that stands still: the set's id. profile is merged into that of its machines."""
    token = server.token()
    group_id = f"/subscriptions/{server.subscription}/resourceGroups/{group}"
    network = f"{group_id}/providers/Microsoft.Network/virtualNetworks/net"
    pool = f"{group_id}/providers/Microsoft.Compute/virtualMachineScaleSets/pool"
    fleet = scale_set(f"{network}/subnets/nodes", capacity)
    fleet["properties"]["virtualMachineProfile"] |= profile
    made = {
        f"{group_id}?api-version=2025-04-01": {"location": LOCATION},
        f"{network}?api-version=2026-03-01": {
            "location": LOCATION,
            "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}},
        },
        f"{network}/subnets/nodes?api-version=2026-03-01": {"properties": {"addressPrefix": "10.0.0.0/20"}},
        f"{pool}?api-version=2026-04-01": fleet,
    }
    for path, content in made.items():
        status, result, _ = server.ask("PUT", path, content, token=token)
        assert status in (200, 201), result
        server.ask("POST", "/admin/clock", {"settle": True}, token=token)
    return pool


def scale_set(subnet: str, capacity: int, *, addresses: int = 2, version: str = "1.0.0") -> dict[str, Any]:
    """The body of a scale set as the program makes them, as it goes over the wire."""
    changes: dict[str, Any] = {
        f"{STORAGE}__imageReference": image(version),
        "virtualMachineProfile__osProfile__computerNamePrefix": "node-",
    }
    return body(capacity, addresses=addresses, subnet=subnet, **changes) | {"location": LOCATION}
