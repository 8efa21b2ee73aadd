"""Decides, from the registered resources alone, whether address ranges keep apart and hold what stands in them."""

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
FITS = "every subnet has room for what stands in it, and no address is held twice"


def _network(cidr: str) -> ipaddress.IPv4Network:
    return ipaddress.IPv4Network(cidr)


def check_addresses(network: NetworkModel) -> tuple[Finding, ...]:
    """Check address ranges, and that machines fit them, in the networks of a region's two stacks."""
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
    """Overlaps: among ranges sorted by address, one that overlaps any earlier one overlaps the widest-reaching of them."""
    last: tuple[str, ipaddress.IPv4Network] | None = None
    for name, network in sorted(named, key=lambda item: (int(item[1].network_address), item[1].prefixlen)):
        if last and network.network_address <= last[1].broadcast_address:
            where = f"{last[0].rpartition('/')[2]} and {name.rpartition('/')[2]}"
            yield Finding(APART, where, f"{kind}s apart", f"{last[1]} and {network}", "give one of them another range")
        if last is None or network.broadcast_address > last[1].broadcast_address:
            last = (name, network)


def _crowded(network: NetworkModel) -> Iterator[Finding]:
    room = {
        subnet.key: range_sets.size(subnet.addresses) - RESERVED_PER_SUBNET for subnet in network.places.values() if not subnet.dialled_in
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
    """Fixed addresses that two things hold, or that lie outside their subnet or among those that Azure keeps."""
    held: dict[str, str] = {}
    for owner, subnet, address in _fixed(network):
        if address in held:
            yield Finding(
                FITS,
                owner.rpartition("/")[2],
                f"{address} for itself",
                f"held by {held[address].rpartition('/')[2]} too",
                "give it another address",
            )
        held[address] = owner
        place, number = network.places.get(subnet), int(ipaddress.IPv4Address(address))
        if place and not any(low + RESERVED_PER_SUBNET - 2 < number < high for low, high in place.addresses):
            yield Finding(FITS, owner.rpartition("/")[2], f"an address that {place.name} can give", address, "give it another address")


def _fixed(network: NetworkModel) -> Iterator[tuple[str, str, str]]:
    """Everything with a fixed private address: its id, its subnet's key and the address."""
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
