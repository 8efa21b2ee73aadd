"""Address allocation of subnets: the lowest free address first, five reserved addresses per subnet, and limits per network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Resource

SERVICE = "addresses"
RESERVED_FIRST, RESERVED_LAST = 4, 1
"""Addresses that Azure reserves in every subnet, the first four and the last:
https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq
"""
PER_NETWORK = 65_536
"""Private addresses in use in one network.
https://github.com/MicrosoftDocs/azure-docs/blob/04cb4ea055a71c3905902eea87fa5d417de31501/includes/azure-virtual-network-limits.md
"""
PER_PEERED_GROUP = 128_000
"""Private addresses in use in a group of peered networks; source as for PER_NETWORK."""

PEERING = "microsoft.network/virtualnetworks/virtualnetworkpeerings"


class AddressPool:
    """The addresses of one subnet, as whole numbers of an ipaddress.IPv4Address.

    An allocation costs the same however full the subnet is: the pool stores the lowest position that may be free, and searches from
    there with a bytearray search.
    """

    __slots__ = ("_base", "_free_from", "_name", "_network", "_taken", "prefix", "used")

    def __init__(self, name: str, prefix: str, network: NetworkUse) -> None:
        self.prefix = ipaddress.IPv4Network(prefix)
        self._name = name
        self.used = 0
        self._base = int(self.prefix.network_address)
        self._network = network
        # One byte per position up to the highest address ever used: an unused /8 costs no memory.
        self._taken = bytearray(b"\1" * RESERVED_FIRST)
        self._free_from = RESERVED_FIRST

    @property
    def size(self) -> int:
        """Return the number of addresses that the subnet can allocate."""
        return self.prefix.num_addresses - RESERVED_FIRST - RESERVED_LAST

    @property
    def free(self) -> int:
        """Return the number of addresses that are still free."""
        return self.size - self.used

    def take(self, count: int) -> list[int]:
        """Allocate the lowest free addresses, all or none; AzureError SubnetIsFull, or the error of a network's or peered group's limit."""
        if count > self.free:
            message = f"Subnet {self._name} with address prefix {self.prefix} does not have enough capacity for {count} IP addresses."
            raise AzureError(400, "SubnetIsFull", message, target=str(self.prefix))
        self._network.admit(count)
        taken = self._taken
        found: list[int] = []
        position = self._free_from
        for _ in range(count):
            position = taken.find(0, position)
            if position < 0:
                position = len(taken)
                taken.append(1)
            else:
                taken[position] = 1
            found.append(self._base + position)
            position += 1
        self._free_from = position
        self._count(count)
        return found

    def check(self, address: int) -> None:
        """Refuse an address that the subnet cannot allocate: AzureError PrivateIPAddressNotInSubnet or PrivateIPAddressInReservedRange."""
        position = address - self._base
        text = f"Private static IP address {ipaddress.IPv4Address(address)}"
        if not 0 <= position < self.prefix.num_addresses:
            raise invalid(f"{text} does not belong to the range of subnet prefix {self.prefix}.", code="PrivateIPAddressNotInSubnet")
        if position < RESERVED_FIRST or position >= self.prefix.num_addresses - RESERVED_LAST:
            raise invalid(f"{text} falls within reserved IP range of subnet prefix {self.prefix}.", code="PrivateIPAddressInReservedRange")

    def take_exactly(self, address: int, user: str = "") -> None:
        """Allocate one address for a user (an ipConfiguration's id); AzureError as in check, or PrivateIPAddressIsAllocated."""
        self.check(address)
        if address in self:
            text = ipaddress.IPv4Address(address)
            message = f"IP configuration {user} is using the private IP address {text} which is already allocated."
            raise invalid(message, user or None, "PrivateIPAddressIsAllocated")
        self._network.admit(1)
        self.take_again((address,))

    def take_again(self, addresses: Iterable[int]) -> None:
        """Allocate the addresses of a saved model again, without a check of limits; ValueError for an address in use."""
        for address in addresses:
            position = address - self._base
            if address in self:
                raise ValueError(f"{ipaddress.IPv4Address(address)} is in use already")
            if position >= len(self._taken):
                self._taken.extend(bytes(position + 1 - len(self._taken)))
            self._taken[position] = 1
            self._count(1)

    def release(self, addresses: Iterable[int]) -> None:
        """Release addresses; ValueError for an address that is not in use."""
        for address in addresses:
            position = address - self._base
            if position < RESERVED_FIRST or address not in self:
                raise ValueError(f"{ipaddress.IPv4Address(address)} is not in use")
            self._taken[position] = 0
            self._free_from = min(self._free_from, position)
            self._count(-1)

    def __contains__(self, address: int) -> bool:
        position = address - self._base
        return 0 <= position < len(self._taken) and self._taken[position] == 1

    def _count(self, more: int) -> None:
        self.used += more
        self._network.used += more


class NetworkUse:
    """Addresses in use in one virtual network, and the networks that are peered with it directly or through others."""

    __slots__ = ("group", "text", "used")

    def __init__(self, text: str) -> None:
        self.text = text
        self.used = 0
        self.group: tuple[NetworkUse, ...] = (self,)

    def admit(self, more: int) -> None:
        """Refuse an allocation that exceeds a limit. Azure publishes the limits, but not the error code; this code is assumed."""
        if self.used + more > PER_NETWORK:
            raise self._exceeded(f"virtual network {self.text}", self.used, more, PER_NETWORK)
        together = sum(one.used for one in self.group)
        if together + more > PER_PEERED_GROUP:
            raise self._exceeded(f"the networks peered with {self.text}", together, more, PER_PEERED_GROUP)

    def _exceeded(self, where: str, used: int, more: int, bound: int) -> AzureError:
        message = f"{used} private IP addresses are in use in {where}; {more} more would exceed the limit of {bound}. Use other networks."
        return invalid(message, self.text, "PrivateIPAddressLimitExceeded")


class Addresses:
    """Address pools of all subnets, and the addresses in use per network."""

    def __init__(self) -> None:
        self.pools: dict[str, AddressPool] = {}
        self.networks: dict[str, NetworkUse] = {}

    def pool(self, cloud: Cloud, subnet_id: str) -> AddressPool:
        """Return the pool of a subnet, which is created at its first use; AzureError ResourceNotFound."""
        key = subnet_id.lower()
        pool = self.pools.get(key)
        if pool is None:
            subnet = cloud.get(subnet_id)
            pool = self.pools[key] = AddressPool(subnet.id.name, prefix_of(subnet), self.network(cloud, subnet.id.parent or ""))
        return pool

    def network(self, cloud: Cloud, network_id: str) -> NetworkUse:
        """Return the use of a network; its peered group is found at the first use."""
        use = self.networks.get(network_id.lower())
        if use is None:
            use = self.networks[network_id.lower()] = NetworkUse(network_id)
            self.regroup(cloud, network_id)
        return use

    def forget(self, subnet_id: str) -> None:
        """Forget the pool of a subnet that was deleted or has another prefix now; none of its addresses is in use."""
        self.pools.pop(subnet_id.lower(), None)

    def forget_network(self, network_id: str) -> None:
        """Forget a deleted network."""
        self.networks.pop(network_id.lower(), None)

    def regroup(self, cloud: Cloud, network_id: str) -> None:
        """Find the peered group of a network again, after a change of a peering; networks without a pool use no addresses."""
        members = dict.fromkeys(_peered_networks(cloud, network_id.lower()))
        group = tuple(self.networks[key] for key in members if key in self.networks)
        for use in group:
            use.group = group


def _peered_networks(cloud: Cloud, network_key: str) -> Iterable[str]:
    """Return the keys of a network and of all networks that connected peerings reach from it. The limit applies to this group: a hub
    joins its spokes into one.
    """
    found, ahead = {network_key: None}, [network_key]
    while ahead:
        for key in cloud.index.children(ahead.pop()):
            peering = cloud.resources[key]
            if peering.id.type.lower() != PEERING or peering.properties.get("peeringState") != "Connected":
                continue
            remote = str(peering.properties["remoteVirtualNetwork"]["id"]).lower()
            if remote not in found:
                found[remote] = None
                ahead.append(remote)
    return found


def prefix_of(subnet: Resource) -> str:
    """Return the IPv4 prefix of a subnet's body."""
    properties = subnet.properties
    return str(properties.get("addressPrefix") or properties["addressPrefixes"][0])


def addresses_of(cloud: Cloud) -> Addresses:
    """Return the address pools of a model."""
    found: Addresses = cloud.services.setdefault(SERVICE, Addresses())
    return found


def pool_of(cloud: Cloud, subnet_id: str) -> AddressPool:
    """Return the pool of a subnet by its id, in any capitals; AzureError ResourceNotFound."""
    pools = addresses_of(cloud).pools
    return pools.get(subnet_id.lower()) or addresses_of(cloud).pool(cloud, subnet_id)
