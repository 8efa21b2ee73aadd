"""Private addresses of resources with ipConfigurations: static ones as requested, dynamic ones the lowest free.

https://learn.microsoft.com/azure/virtual-network/ip-services/private-ip-addresses
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.network.address_pools import pool_of
from rehearsal.azure.network.network_resource_type import NetworkResourceType, id_of, list_of, properties_of
from rehearsal.azure.network.subnets import subnet_used_by
from rehearsal.azure.resource import Json, Resource, location_key

SubnetAddress = tuple[str, int]
"""Key of a subnet and one of its addresses."""


@dataclass(slots=True)
class AllocatedAddresses:
    """Addresses of a resource by the lower-case name of the ipConfiguration."""

    addresses: dict[str, SubnetAddress] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IpConfiguration:
    """An ipConfiguration that needs an address: name, id, subnet id, and the object that contains the address."""

    name: str
    id: str
    subnet: str
    body: Json
    address_key: str
    method_key: str

    @property
    def static_address(self) -> int | None:
        """Return the static address, None for a dynamic one; AzureError for an invalid address."""
        text = str(self.body.get(self.address_key) or "")
        if str(self.body.get(self.method_key, "Dynamic")).lower() != "static":
            return None
        try:
            return int(IPv4Address(text))
        except ValueError:
            message = f"IP configuration {self.id} has allocation method Static and address {text!r}; give an IPv4 address of its subnet."
            raise invalid(message, self.id, "InvalidIPAddressFormat") from None


class AddressHolder(NetworkResourceType):
    """A resource that occupies private addresses of subnets from its PUT to its delete."""

    configurations = "ipConfigurations"
    address_key, method_key = "privateIPAddress", "privateIPAllocationMethod"
    nested = True
    """The fields of an ipConfiguration are in properties of its own."""

    def ip_configurations(self, arm_id: ArmId, body: Json) -> Iterator[IpConfiguration]:
        """Yield the ipConfigurations that are in a subnet."""
        for number, item in enumerate(list_of(body, self.configurations)):
            inner = item.setdefault("properties", {}) if self.nested else item
            name = str(item.get("name") or number)
            if subnet := id_of(inner.get("subnet")):
                yield IpConfiguration(name, f"{arm_id.text}/{self.configurations}/{name}", subnet, inner, self.address_key, self.method_key)

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse subnets of another region, subnets delegated to another service, and invalid static addresses."""
        super().check(cloud, arm_id, body, previous)
        location = location_key(body.get("location", ""))
        for one in self.ip_configurations(arm_id, body):
            subnet_used_by(cloud, arm_id, one.subnet, location)
            if (static := one.static_address) is not None and cloud.find(one.subnet) is not None:
                pool_of(cloud, one.subnet).check(static)

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Preserve addresses that are still requested, release the others, and allocate new ones: static addresses before dynamic ones."""
        before: dict[str, SubnetAddress] = resource.state.addresses if resource.state else {}
        configured = list(self.ip_configurations(resource.id, resource.body))
        preserved = {one.name.lower(): entry for one in configured if (entry := before.get(one.name.lower())) and _still_valid(one, entry)}
        released = [entry for name, entry in before.items() if name not in preserved]
        _release(cloud, released)
        taken: dict[str, SubnetAddress] = {}
        try:
            for one in sorted(configured, key=lambda one: one.static_address is None):
                if one.name.lower() not in preserved:
                    taken[one.name.lower()] = _take(cloud, one)
        except AzureError:
            _release(cloud, taken.values())
            _take_again(cloud, released)
            raise
        found = preserved | taken
        resource.state = AllocatedAddresses({one.name.lower(): found[one.name.lower()] for one in configured})
        for one in configured:
            one.body[one.address_key] = str(IPv4Address(found[one.name.lower()][1]))
            one.body.setdefault(one.method_key, "Dynamic")

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Release all addresses."""
        if resource.state:
            _release(cloud, resource.state.addresses.values())

    def restored(self, cloud: Cloud, resource: Resource) -> None:
        """Allocate the saved addresses again."""
        if resource.state:
            _take_again(cloud, resource.state.addresses.values())

    def dump(self, state: Any) -> Any:
        return None if state is None else {name: list(entry) for name, entry in state.addresses.items()}

    def load(self, data: Any) -> Any:
        return None if data is None else AllocatedAddresses({name: (str(entry[0]), int(entry[1])) for name, entry in data.items()})


def allocated_addresses(resource: Resource) -> dict[str, int]:
    """Return the addresses of a resource by the lower-case name of the ipConfiguration."""
    return {name: entry[1] for name, entry in resource.state.addresses.items()} if resource.state else {}


def check_public_address_free(cloud: Cloud, arm_id: ArmId, address_id: str) -> None:
    """Refuse a public address that another resource uses."""
    for key in cloud.index.users(address_id.lower()) if address_id else ():
        if key != arm_id.key:
            message = (
                f"Resource {arm_id.text} is referencing public IP address {address_id} that is already allocated to resource "
                f"{cloud.resources[key].id.text}."
            )
            raise invalid(message, arm_id.text, "PublicIPAddressInUse")


def check_one_primary(arm_id: ArmId, items: Iterable[Json]) -> None:
    """Refuse ipConfigurations without exactly one primary; a single one is primary by default. The code is assumed."""
    found = [properties_of(item).get("primary") for item in items]
    if sum(1 for one in found if one) != 1 and (len(found) > 1 or found == [False]):
        message = f"{arm_id.text} has {len(found)} IP configurations; exactly one of them must be primary."
        raise invalid(message, arm_id.text, "ExactlyOneIpConfigurationMustBePrimary")


def _still_valid(one: IpConfiguration, entry: SubnetAddress) -> bool:
    static = one.static_address
    return entry[0] == one.subnet.lower() and (static is None or static == entry[1])


def _take(cloud: Cloud, one: IpConfiguration) -> SubnetAddress:
    pool, static = pool_of(cloud, one.subnet), one.static_address
    if static is None:
        return one.subnet.lower(), pool.take(1)[0]
    pool.take_exactly(static, one.id)
    return one.subnet.lower(), static


def _release(cloud: Cloud, addresses: Iterable[SubnetAddress]) -> None:
    for subnet, address in addresses:
        pool_of(cloud, subnet).release((address,))


def _take_again(cloud: Cloud, addresses: Iterable[SubnetAddress]) -> None:
    for subnet, address in addresses:
        pool_of(cloud, subnet).take_again((address,))
