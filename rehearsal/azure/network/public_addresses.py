"""Public IP prefixes and public IP addresses, allocated from a range that no network routes.

https://learn.microsoft.com/azure/virtual-network/ip-services/public-ip-addresses,
https://learn.microsoft.com/azure/virtual-network/ip-services/public-ip-address-prefix
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid, property_change_not_allowed
from rehearsal.azure.network.network_resource_type import (
    NetworkResourceType,
    configurations_in,
    id_of,
    properties_of,
    users_by_type,
    zones_of,
)
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.validation import required_value

SERVICE = "public addresses"
RANGE = IPv4Network("198.18.0.0/15")
"""Range of the model's public addresses: the range for benchmarks, https://www.rfc-editor.org/rfc/rfc2544. The three ranges for
documentation contain only 768 addresses, too few for one region.
"""
NAT_GATEWAYS = "microsoft.network/natgateways"
ADDRESSES = "microsoft.network/publicipaddresses"


class PublicRange:
    """Allocation of public addresses; the lowest free block first."""

    def __init__(self) -> None:
        self._taken = bytearray(RANGE.num_addresses)

    def take(self, length: int) -> IPv4Network:
        """Allocate the lowest free block of a prefix length; AzureError PublicIPCountLimitReached if none is left."""
        size = 1 << (32 - length)
        free = bytes(size)
        start = self._taken.find(free)
        while start >= 0:
            aligned = -(-start // size) * size
            if self._taken[aligned : aligned + size] == free:
                block = IPv4Network((int(RANGE.network_address) + aligned, length))
                self.mark(block, taken=True)
                return block
            start = self._taken.find(free, aligned)
        message = f"No /{length} is left of {RANGE}, from which the embedded Azure gives public addresses; delete some."
        raise AzureError(409, "PublicIPCountLimitReached", message)

    def mark(self, block: IPv4Network, *, taken: bool) -> None:
        """Mark a block as taken or free."""
        first = int(block.network_address) - int(RANGE.network_address)
        self._taken[first : first + block.num_addresses] = bytes([taken]) * block.num_addresses


def _range_of(cloud: Cloud) -> PublicRange:
    found: PublicRange = cloud.services.setdefault(SERVICE, PublicRange())
    return found


def take_public(cloud: Cloud, count: int) -> tuple[int, ...]:
    """Allocate public addresses of machines, as integers: all, or AzureError and none."""
    taken: list[int] = []
    try:
        taken.extend(int(_range_of(cloud).take(32).network_address) for _ in range(count))
    except AzureError:
        mark_public(cloud, taken, taken=False)
        raise
    return tuple(taken)


def mark_public(cloud: Cloud, addresses: Iterable[int], *, taken: bool) -> None:
    """Mark public addresses of machines as taken or free."""
    for address in addresses:
        _range_of(cloud).mark(IPv4Network((address, 32)), taken=taken)


class PublicPrefix(NetworkResourceType):
    """A public prefix: Standard, IPv4, of a size that cannot change."""

    type = "Microsoft.Network/publicIPPrefixes"
    noun = "Public IP prefix"
    in_use_code = "InUsePublicIpPrefixCannotBeDeleted"
    defaults: Mapping[str, Any] = {"publicIPAddressVersion": "IPv4", "ipTags": []}
    users: Mapping[str, str] = {"publicIPAddresses": ADDRESSES}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse IPv6 and a change of the size."""
        super().check(cloud, arm_id, body, previous)
        check_version(arm_id, body)
        length = required_value(body, "properties.prefixLength", "publicIPPrefix")
        if previous is not None and length != previous.properties["prefixLength"]:
            raise property_change_not_allowed("properties.prefixLength", previous.properties["prefixLength"], length)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults and its block."""
        whole = super().complete(cloud, arm_id, body, previous)
        whole["sku"] = {"name": "Standard", "tier": "Regional", **(whole.get("sku") or {})}
        if previous is not None:
            whole["properties"]["ipPrefix"] = previous.properties["ipPrefix"]
        return whole

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Allocate the lowest free block for a new prefix."""
        if previous is None:
            resource.properties["ipPrefix"] = str(_range_of(cloud).take(resource.properties["prefixLength"]))

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Release the block."""
        _range_of(cloud).mark(IPv4Network(resource.properties["ipPrefix"]), taken=False)

    def restored(self, cloud: Cloud, resource: Resource) -> None:
        """Allocate the block again."""
        _range_of(cloud).mark(IPv4Network(resource.properties["ipPrefix"]), taken=True)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the NAT gateway that uses the prefix."""
        shown = super().view(cloud, resource, query)
        for gateway in users_by_type(cloud, resource).get(NAT_GATEWAYS, [])[:1]:
            shown["properties"] = {**shown["properties"], "natGateway": {"id": gateway}}
        return shown


class PublicAddress(NetworkResourceType):
    """A public address: Standard and static, of Azure's range or of a prefix. Names in public DNS are not modelled.

    Basic ones have been retired:
    https://azure.microsoft.com/updates/upgrade-to-standard-sku-public-ip-addresses-in-azure-by-30-september-2025-basic-sku-will-be-retired/
    """

    type = "Microsoft.Network/publicIPAddresses"
    noun = "Public IP address"
    in_use_code = "PublicIPAddressCannotBeDeleted"
    defaults: Mapping[str, Any] = {
        "publicIPAddressVersion": "IPv4",
        "idleTimeoutInMinutes": 4,
        "ipTags": [],
        "ddosSettings": {"protectionMode": "VirtualNetworkInherited"},
    }

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse Basic and dynamic addresses, a change of the prefix, and zones other than those of the prefix."""
        super().check(cloud, arm_id, body, previous)
        check_version(arm_id, body)
        if (body.get("sku") or {}).get("name", "Basic") == "Basic":
            message = (
                "Cannot create more than 0 IPv4 Basic SKU public IP addresses for this subscription in this region. "
                f"Give {arm_id.text} sku Standard."
            )
            raise invalid(message, arm_id.text, "IPv4BasicSkuPublicIpCountLimitReached")
        if properties_of(body).get("publicIPAllocationMethod") != "Static":
            message = f"Standard sku publicIp {arm_id.text} must have AllocationMethod set to Static."
            raise invalid(message, arm_id.text, "StandardSkuPublicIPAddressesMustBeStatic")
        prefix_id = id_of(properties_of(body).get("publicIPPrefix"))
        if previous is not None and prefix_id.lower() != id_of(previous.properties.get("publicIPPrefix")).lower():
            raise property_change_not_allowed("properties.publicIPPrefix.id", id_of(previous.properties.get("publicIPPrefix")), prefix_id)
        prefix = cloud.find(prefix_id) if prefix_id else None
        if prefix is not None and zones_of(prefix.body) != zones_of(body):
            message = f"{arm_id.text} is in zones {zones_of(body)} and its prefix in {zones_of(prefix.body)}; they must be the same."
            raise invalid(message, arm_id.text, "PublicIpAndPublicIpPrefixZonesDoNotMatch")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults and its address."""
        whole = super().complete(cloud, arm_id, body, previous)
        whole["sku"].setdefault("tier", "Regional")
        inner: Json = whole["properties"]
        if previous is not None:
            inner["ipAddress"] = previous.properties["ipAddress"]
        return whole

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Allocate the lowest free address for a new resource, of its prefix if it has one."""
        if previous is not None:
            return
        if prefix_id := id_of(resource.properties.get("publicIPPrefix")):
            resource.properties["ipAddress"] = _of_prefix(cloud, resource, cloud.get(prefix_id))
        else:
            resource.properties["ipAddress"] = str(_range_of(cloud).take(32).network_address)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the ipConfiguration or the NAT gateway that uses the address."""
        shown = super().view(cloud, resource, query)
        used = {"ipConfiguration": next(configurations_in(cloud, resource, "publicIPAddress"), "")}
        used["natGateway"] = next(iter(users_by_type(cloud, resource).get(NAT_GATEWAYS, [])), "")
        return {**shown, "properties": {**shown["properties"], **{name: {"id": one} for name, one in used.items() if one}}}

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Release the address."""
        self._mark(cloud, resource, taken=False)

    def restored(self, cloud: Cloud, resource: Resource) -> None:
        """Allocate the address again."""
        self._mark(cloud, resource, taken=True)

    def _mark(self, cloud: Cloud, resource: Resource, *, taken: bool) -> None:
        if not id_of(resource.properties.get("publicIPPrefix")):
            _range_of(cloud).mark(IPv4Network(f"{resource.properties['ipAddress']}/32"), taken=taken)


def _of_prefix(cloud: Cloud, resource: Resource, prefix: Resource) -> str:
    """Return the lowest address of a prefix that none of its public addresses uses."""
    users = [cloud.resources[key] for key in cloud.index.users(prefix.key) if key != resource.key]
    used = {one.properties.get("ipAddress") for one in users}
    block = IPv4Network(prefix.properties["ipPrefix"])
    for number in range(block.num_addresses):
        if (text := str(IPv4Address(int(block.network_address) + number))) not in used:
            return text
    message = f"Public IP prefix {prefix.id.text} ({block}) has no address left for {resource.id.text}."
    raise invalid(message, prefix.id.text, "PublicIPPrefixOutOfIpAddresses")


def check_version(arm_id: ArmId, body: Json) -> None:
    """Refuse IPv6, which is not modelled."""
    if properties_of(body).get("publicIPAddressVersion", "IPv4") != "IPv4":
        raise invalid(f"The embedded Azure models IPv4 alone; {arm_id.text} is IPv6.", arm_id.text, "NotModelled")
