"""Decides which address prefixes Azure takes for networks and subnets: well written, inside, and apart from each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Network, ip_network
from itertools import combinations, pairwise

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.errors import invalid
from rehearsal.azure.network.network_resource_type import properties_of
from rehearsal.azure.resource import Json, Resource

SMALLEST_SUBNET = 29
"""Length of the longest prefix of a subnet: https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"""


def parsed(text: str, owner: str) -> IPv4Network:
    """A prefix; AzureError InvalidCIDRNotation where host bits are set or it is none at all. Only IPv4 is modelled."""
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise invalid(f"The address prefix {text} in resource {owner} is no CIDR.", owner, "InvalidAddressPrefixFormat") from None
    if not isinstance(network, IPv4Network):
        raise invalid(f"The embedded Azure models IPv4 alone; {owner} has {text}. Leave IPv6 prefixes out.", owner, "NotModelled")
    if str(network) != text:
        message = (
            f"The address prefix {text} in resource {owner} has an invalid CIDR notation. For the given prefix length, the address prefix "
            f"should be {network}."
        )
        raise invalid(message, owner, "InvalidCIDRNotation")
    return network


def of_network(body: Json, owner: str) -> tuple[IPv4Network, ...]:
    """Prefixes of a virtual network's body, which do not overlap; AzureError."""
    space = properties_of(body).get("addressSpace") or {}
    found = tuple(parsed(str(text), owner) for text in space.get("addressPrefixes") or ())
    if not found:
        raise invalid(
            f"Address prefix string for resource {owner} cannot be null or empty.", owner, "AddressPrefixStringCannotBeNullOrEmpty"
        )
    for one, other in combinations(found, 2):
        if one.overlaps(other):
            message = f"Address prefixes {one} and {other} of virtual network {owner} overlap."
            raise invalid(message, owner, "OverlappingAddressPrefixes")
    return found


def of_subnet(body: Json, owner: str) -> IPv4Network:
    """The prefix of a subnet's body; AzureError. A subnet of several prefixes is not modelled."""
    inner = properties_of(body)
    texts = inner.get("addressPrefixes") or [inner["addressPrefix"]] if inner.get("addressPrefix") or inner.get("addressPrefixes") else []
    if not texts:
        raise invalid(
            f"Address prefix string for resource {owner} cannot be null or empty.", owner, "AddressPrefixStringCannotBeNullOrEmpty"
        )
    if len(texts) > 1:
        raise invalid(f"The embedded Azure models one prefix a subnet; {owner} has {len(texts)}.", owner, "NotModelled")
    network = parsed(str(texts[0]), owner)
    if network.prefixlen > SMALLEST_SUBNET:
        message = f"Subnet {owner} has prefix {network}; a subnet is a /{SMALLEST_SUBNET} or larger."
        raise invalid(message, owner, "NetcfgInvalidSubnet")
    return network


def check_inside(name: str, prefix: IPv4Network, network: ArmId, prefixes: Iterable[IPv4Network]) -> None:
    """Refuse a subnet outside of its network.
    https://github.com/MicrosoftDocs/azure-docs/pull/123869 shows both sentences of this module."""
    if not any(prefix.subnet_of(one) for one in prefixes):
        message = (
            f"Subnet '{name}' is not valid because its IP address range is outside the IP address range of virtual network "
            f"'{network.name}'."
        )
        raise invalid(message, name, "NetcfgSubnetRangeOutsideVnet")


def check_apart(network: ArmId, subnets: Mapping[str, IPv4Network]) -> None:
    """Refuse subnets that overlap: in the order of their addresses only neighbours can."""
    ordered = sorted(subnets.items(), key=lambda item: (item[1].network_address, item[1].prefixlen))
    for (_, before), (name, prefix) in pairwise(ordered):
        if prefix.overlaps(before):
            message = (
                f"Subnet '{name}' is not valid because its IP address range overlaps with that of an existing subnet in virtual network "
                f"'{network.name}'."
            )
            raise invalid(message, name, "NetcfgSubnetRangesOverlap")


def of_resource(network: Resource) -> tuple[IPv4Network, ...]:
    """Prefixes of a network that there is."""
    return tuple(IPv4Network(text) for text in network.properties["addressSpace"]["addressPrefixes"])


def overlapping(one: Sequence[IPv4Network], other: Sequence[IPv4Network]) -> list[str]:
    """The prefixes of the first that overlap any of the second, as text."""
    return [str(prefix) for prefix in one if any(prefix.overlaps(their) for their in other)]
