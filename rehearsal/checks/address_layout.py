"""Check address ranges from the registered resources alone: no overlap, and enough addresses for the resources in them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator

from components.plan.addresses import RESERVED_PER_SUBNET
from rehearsal.checks import range_sets
from rehearsal.checks.finding import Finding
from rehearsal.checks.network_model import NetworkModel, key
from rehearsal.checks.registered_properties import properties_of
from rehearsal.checks.usage import used_addresses

APART = "subnets lie in their network, and no two networks, nor two subnets, overlap"
FITS = "every subnet has room for the addresses in it, and no address is used twice"


def _network(cidr: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(cidr)


def check_addresses(network: NetworkModel) -> tuple[Finding, ...]:
    """Return the findings on address ranges, their use and fixed addresses in a region's two stacks."""
    return (*_overlaps(network), *_crowded(network), *_doubles(network))


def _overlaps(network: NetworkModel) -> Iterator[Finding]:
    ranges = [
        (str(vnet.id), [_network(cidr) for cidr in properties_of(vnet)["address prefixes"]])
        for vnet in network.of_type("network:VirtualNetwork")
    ]
    yield from _pairs("network", [(name, block) for name, blocks in ranges for block in blocks])
    around = {key(name): blocks for name, blocks in ranges}
    subnets = [
        (str(subnet.id), _network(cidr)) for subnet in network.of_type("network:Subnet") for cidr in properties_of(subnet)["address prefix"]
    ]
    yield from _pairs("subnet", subnets)
    for name, block in subnets:
        if not any(block.subnet_of(outer) for outer in around.get(key(name).rpartition("/subnets/")[0], ())):
            yield Finding(
                APART, name.rpartition("/")[2], "inside its network", str(block), "give the subnet a part of its network's prefixes"
            )


def _pairs(kind: str, named: Iterable[tuple[str, ipaddress.IPv4Network]]) -> Iterator[Finding]:
    """Yield overlaps. Ranges are sorted by address: a range that overlaps an earlier one overlaps the one with the highest end."""
    last: tuple[str, ipaddress.IPv4Network] | None = None
    for name, network in sorted(named, key=lambda item: (int(item[1].network_address), item[1].prefixlen)):
        if last and network.network_address <= last[1].broadcast_address:
            where = f"{last[0].rpartition('/')[2]} and {name.rpartition('/')[2]}"
            yield Finding(APART, where, f"{kind}s apart", f"{last[1]} and {network}", "give one of them another range")
        if last is None or network.broadcast_address > last[1].broadcast_address:
            last = (name, network)


def _crowded(network: NetworkModel) -> Iterator[Finding]:
    room = {
        subnet.key: range_sets.size(subnet.addresses) - RESERVED_PER_SUBNET
        for subnet in network.segments.values()
        if not subnet.vpn_clients
    }
    for subnet, count in used_addresses(network).items():
        if count > room.get(subnet, 0):
            yield Finding(
                FITS,
                subnet.rpartition("/")[2],
                f"at most {room.get(subnet, 0):,} addresses",
                f"{count:,}",
                "put fewer machines into the subnet",
            )


def _doubles(network: NetworkModel) -> Iterator[Finding]:
    """Yield fixed addresses that are used twice, outside their subnet, or reserved by Azure."""
    owners: dict[str, str] = {}
    for owner, subnet, address in _fixed(network):
        if address in owners:
            yield Finding(
                FITS,
                owner.rpartition("/")[2],
                f"{address} for one resource",
                f"used by {owners[address].rpartition('/')[2]} too",
                "give it another address",
            )
        owners[address] = owner
        segment, number = network.segments.get(subnet), int(ipaddress.IPv4Address(address))
        if segment and not any(low + RESERVED_PER_SUBNET - 2 < number < high for low, high in segment.addresses):
            yield Finding(FITS, owner.rpartition("/")[2], f"an address that {segment.name} can assign", address, "give it another address")


def _fixed(network: NetworkModel) -> Iterator[tuple[str, str, str]]:
    """Yield each fixed private address with its resource id and its subnet's key."""
    for type_, field in (
        ("network:NetworkInterface", "ipConfigurations"),
        ("network:LoadBalancer", "frontendIPConfigurations"),
        ("network:PrivateLinkService", "ipConfigurations"),
    ):
        for resource in network.of_type(type_):
            for item in resource.inputs.get(field) or ():
                if item.get("privateIPAddress"):
                    yield str(resource.id), key((item.get("subnet") or {}).get("id")), item["privateIPAddress"]
    for resource in network.of_type("network:PrivateEndpoint"):
        inputs = resource.inputs
        yield from (
            (str(resource.id), key((inputs.get("subnet") or {}).get("id")), item["privateIPAddress"])
            for item in inputs.get("ipConfigurations") or ()
        )
