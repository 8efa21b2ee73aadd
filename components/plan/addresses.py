"""Address blocks of regions, hubs, clusters and subnets, allocated by slot so that growth moves nothing.

A region's block is divided into /14s: the first is for the hub, block slot+1 for the cluster in that slot. A cluster's /14 is divided into
32 /19s: 0 to 23 are node subnets of up to 1,000 machines, 24 to 27 the service range, 28 the control plane, 29 to 31 unused.
"""

from __future__ import annotations

import ipaddress

from components.spec.pool import NODE_SUBNET_SLOTS

BLOCK_LENGTH = 14
NODE_SUBNET_LENGTH = 19
SERVICE_SLOT = 24
CONTROL_SLOT = 28
CONTROL_ROLES = ("etcd", "events", "api", "private-link", "endpoints", "ingress")
HUB_ROLES = {"gateway": (0, 26), "runner": (1, 24), "endpoints": (2, 24), "resolver": (32, 28)}
"""Index of each hub subnet among the /24s of the hub's network, and its length. Azure refuses a DNS resolver in 10.0.1.0 to 10.0.16.255:
https://learn.microsoft.com/azure/dns/dns-private-resolver-overview#subnet-restrictions"""
RESERVED_PER_SUBNET = 5
"""Addresses that Azure reserves in every subnet: https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"""
FIRST_USABLE = 4
MACHINES_PER_SUBNET = 1_000

NODE_LOCAL_DNS_ADDRESS = "169.254.20.10"
"""Address of the DNS cache on every node: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/"""
AZURE_DNS_ADDRESS = "168.63.129.16"
"""Azure's resolver, the same in every virtual network: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""

Network = ipaddress.IPv4Network


def _part(network: Network, length: int, index: int) -> Network:
    """Return the block of a length at an index in a network, without building the others."""
    step = 1 << (32 - length)
    return Network((int(network.network_address) + index * step, length))


def blocks_in(address_space: str) -> int:
    """Return the number of /14 blocks in a region's address space, including the hub's."""
    return max(1 << (BLOCK_LENGTH - Network(address_space).prefixlen), 0) if Network(address_space).prefixlen <= BLOCK_LENGTH else 0


def hub_block(address_space: str) -> Network:
    """Return the /14 of the hub."""
    return _part(Network(address_space), BLOCK_LENGTH, 0)


def cluster_block(address_space: str, slot: int) -> Network:
    """Return the /14 of the cluster in a slot."""
    return _part(Network(address_space), BLOCK_LENGTH, slot + 1)


def hub_network(block: Network) -> Network:
    """Return the address prefix of the hub's virtual network: the first /16 of the block."""
    return _part(block, 16, 0)


def client_pool(block: Network) -> Network:
    """Return the address range of VPN clients: a /18 in the second /16 of the block, outside the hub's network and inside 10.0.0.0/8."""
    return _part(_part(block, 16, 1), 18, 0)


def hub_subnet(block: Network, role: str) -> Network:
    """Return the subnet of a hub role, at the start of the role's own /24."""
    index, length = HUB_ROLES[role]
    return _part(_part(hub_network(block), 24, index), length, 0)


def node_subnet(block: Network, slot: int) -> Network:
    """Return the node subnet of a slot, 0 to 23."""
    if not 0 <= slot < NODE_SUBNET_SLOTS:
        raise ValueError(f"node subnet slot {slot} is outside 0 to {NODE_SUBNET_SLOTS - 1}")
    return _part(block, NODE_SUBNET_LENGTH, slot)


def free_slot(count: int, used: set[int]) -> int | None:
    """Return the lowest slot from which a number of consecutive node-subnet slots are unused; None if there is none."""
    starts = range(NODE_SUBNET_SLOTS - count + 1)
    return next((start for start in starts if used.isdisjoint(range(start, start + count))), None)


def service_range(block: Network) -> Network:
    """Return the range of the cluster's services: a /17."""
    return _part(block, 17, SERVICE_SLOT // 4)


def control_subnet(block: Network, role: str) -> Network:
    """Return the subnet of a control-plane role, a /24."""
    return _part(_part(block, NODE_SUBNET_LENGTH, CONTROL_SLOT), 24, CONTROL_ROLES.index(role))


def cluster_prefixes(block: Network) -> tuple[Network, ...]:
    """Return the address prefixes of a cluster's virtual network: node subnets and control plane, without the service range."""
    return (_part(block, 15, 0), _part(block, 16, 2), _part(block, NODE_SUBNET_LENGTH, CONTROL_SLOT))


def node_prefixes(block: Network) -> tuple[Network, ...]:
    """Return the prefixes of a cluster's block for nodes and pods."""
    return cluster_prefixes(block)[:2]


def usable(network: Network) -> int:
    """Return the number of addresses in a subnet that machines can use."""
    return network.num_addresses - RESERVED_PER_SUBNET


def host(network: Network, offset: int) -> str:
    """Return the address at an offset in a network, as text."""
    return str(network[offset])
