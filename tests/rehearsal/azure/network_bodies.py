"""Ids and minimal valid bodies of network resources for their tests."""

from __future__ import annotations

from typing import Any

from plain_calls import GROUP, LOCATION, Calls

NET = "Microsoft.Network"
HUB, SPOKE, THIRD = (f"{NET}/virtualNetworks/{name}" for name in ("hub", "spoke", "third"))
NODES = f"{HUB}/subnets/nodes"
SINGLE = f"{NET}/networkInterfaces/single"


def full(text: str) -> str:
    """Return a full id in the group of the tests."""
    return f"{GROUP}/providers/{text}"


def ref(text: str) -> dict[str, str]:
    """Return a reference."""
    return {"id": full(text)}


def located(sku: str = "", zones: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Return a body with a location, and with a sku and zones if they are given."""
    body: dict[str, Any] = {"location": LOCATION, "properties": properties}
    if sku:
        body["sku"] = {"name": sku}
    if zones:
        body["zones"] = list(zones)
    return body


def network(*prefixes: str, subnets: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a network with prefixes. subnets are prefixes by name; without them, the body has no such property."""
    body = located(addressSpace={"addressPrefixes": list(prefixes)})
    if subnets is not None:
        body["properties"]["subnets"] = [{"name": name, **subnet(prefix)} for name, prefix in subnets.items()]
    return body


def subnet(prefix: str, **properties: Any) -> dict[str, Any]:
    """Return a subnet."""
    return {"properties": {"addressPrefix": prefix, **properties}}


def place(name: str, where: str = NODES, address: str = "", **properties: Any) -> dict[str, Any]:
    """Return an ipConfiguration, static if it has an address."""
    static = {"privateIPAddress": address, "privateIPAllocationMethod": "Static"} if address else {}
    return {"name": name, "properties": {"subnet": ref(where), **static, **properties}}


def interface(*places: dict[str, Any], **properties: Any) -> dict[str, Any]:
    """Return a network interface; the first of several ipConfigurations is primary."""
    first, *rest = places or (place("one"),)
    first = {**first, "properties": {"primary": True, **first["properties"]}}
    return located(
        ipConfigurations=[first, *({**one, "properties": {"primary": False, **one["properties"]}} for one in rest)], **properties
    )


def gateway(where: str, public: str, sku: str = "VpnGw1AZ", sort: str = "Vpn") -> dict[str, Any]:
    """Return a virtual network gateway in a subnet, with a public address."""
    body = located(gatewayType=sort, vpnType="RouteBased", ipConfigurations=[place("one", where, publicIPAddress=ref(public))])
    body["properties"]["sku"] = {"name": sku, "tier": sku}
    return body


def public(*zones: str, **properties: Any) -> dict[str, Any]:
    """Return a public address of some zones."""
    return located("Standard", zones, publicIPAllocationMethod="Static", **properties)


def address_of(calls: Calls, text: str, number: int = 0) -> str:
    """Return the private address of an ipConfiguration of an interface."""
    return str(calls.get(text)["properties"]["ipConfigurations"][number]["properties"]["privateIPAddress"])


def made() -> Calls:
    """Return an Azure with a network 10.0.0.0/16 named hub and its subnet 10.0.0.0/24 named nodes."""
    calls = Calls()
    calls.put(HUB, network("10.0.0.0/16", subnets={"nodes": "10.0.0.0/24"}))
    return calls
