"""Which address block each region, hub, cluster and subnet takes: by slot alone, so that growth moves nothing.

A region's block is cut into /14s: the first is the hub's, block slot+1 is the cluster's in that slot. A cluster's /14 is cut into 32
/19s: 0 to 23 are node subnets of up to 1,000 machines, 24 to 27 the service range, 28 the control plane's, 29 to 31 stay free.
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
"""Place of each hub subnet in the hub's network, in /24s, and its length. Azure refuses a DNS resolver in 10.0.1.0 to 10.0.16.255:
https://learn.microsoft.com/azure/dns/dns-private-resolver-overview#subnet-restrictions"""
RESERVED_PER_SUBNET = 5
"""Addresses that Azure keeps in every subnet: https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"""
FIRST_USABLE = 4
MACHINES_PER_SUBNET = 1_000

NODE_LOCAL_DNS_ADDRESS = "169.254.20.10"
"""Address of the DNS cache on every node: https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/"""
AZURE_DNS_ADDRESS = "168.63.129.16"
"""Azure's resolver, the same in every virtual network: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""

Network = ipaddress.IPv4Network


def _part(network: Network, length: int, index: int) -> Network:
    """The index-th block of a length inside a network, without building the others."""
    step = 1 << (32 - length)
    return Network((int(network.network_address) + index * step, length))


def blocks_in(address_space: str) -> int:
    """Number of /14 blocks in a region's address space, the hub's included."""
    return max(1 << (BLOCK_LENGTH - Network(address_space).prefixlen), 0) if Network(address_space).prefixlen <= BLOCK_LENGTH else 0


def hub_block(address_space: str) -> Network:
    """The hub's /14."""
    return _part(Network(address_space), BLOCK_LENGTH, 0)


def cluster_block(address_space: str, slot: int) -> Network:
    """The /14 of the cluster in a slot."""
    return _part(Network(address_space), BLOCK_LENGTH, slot + 1)


def hub_network(block: Network) -> Network:
    """Address prefix of the hub's virtual network: the block's first /16."""
    return _part(block, 16, 0)


def client_pool(block: Network) -> Network:
    """Range of the people who dial in: a /18 in the block's second /16, outside the hub's network and inside 10.0.0.0/8."""
    return _part(_part(block, 16, 1), 18, 0)


def hub_subnet(block: Network, role: str) -> Network:
    """Subnet of a hub role: each role has a /24 of its own, of which it may use less."""
    place, length = HUB_ROLES[role]
    return _part(_part(hub_network(block), 24, place), length, 0)


def node_subnet(block: Network, slot: int) -> Network:
    """Node subnet of a slot, 0 to 23."""
    if not 0 <= slot < NODE_SUBNET_SLOTS:
        raise ValueError(f"node subnet slot {slot} is outside 0 to {NODE_SUBNET_SLOTS - 1}")
    return _part(block, NODE_SUBNET_LENGTH, slot)


def service_range(block: Network) -> Network:
    """Range of the cluster's services: a /17."""
    return _part(block, 17, SERVICE_SLOT // 4)


def control_subnet(block: Network, role: str) -> Network:
    """Subnet of a control-plane role, a /24."""
    return _part(_part(block, NODE_SUBNET_LENGTH, CONTROL_SLOT), 24, CONTROL_ROLES.index(role))


def cluster_prefixes(block: Network) -> tuple[Network, ...]:
    """Address prefixes of a cluster's virtual network: all node subnets and the control plane's, without the service range."""
    return (_part(block, 15, 0), _part(block, 16, 2), _part(block, NODE_SUBNET_LENGTH, CONTROL_SLOT))


def node_prefixes(block: Network) -> tuple[Network, ...]:
    """The part of a cluster's block that holds nodes and pods."""
    return cluster_prefixes(block)[:2]


def usable(network: Network) -> int:
    """Addresses that machines may take in a subnet."""
    return network.num_addresses - RESERVED_PER_SUBNET


def host(network: Network, offset: int) -> str:
    """Address at an offset into a subnet, as text."""
    return str(network[offset])
