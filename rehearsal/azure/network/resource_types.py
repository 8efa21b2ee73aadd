"""Resource types of Microsoft.Network in the embedded Azure."""

from __future__ import annotations

from rehearsal.azure.network.gateways import NatGateway, VirtualNetworkGateway
from rehearsal.azure.network.load_balancers import LoadBalancer
from rehearsal.azure.network.network_interfaces import NetworkInterface
from rehearsal.azure.network.peerings import Peering
from rehearsal.azure.network.private_dns import RECORD_SET_TYPES, PrivateZone, StartOfAuthority, VirtualNetworkLink
from rehearsal.azure.network.private_links import PrivateEndpoint, PrivateLinkService, ZoneGroup
from rehearsal.azure.network.public_addresses import PublicAddress, PublicPrefix
from rehearsal.azure.network.resolvers import DnsResolver, InboundEndpoint
from rehearsal.azure.network.route_tables import Route, RouteTable
from rehearsal.azure.network.security_groups import SecurityGroup, SecurityRule
from rehearsal.azure.network.subnets import Subnet
from rehearsal.azure.network.virtual_networks import VirtualNetwork
from rehearsal.azure.resource_type import ResourceType

RESOURCE_TYPES: tuple[ResourceType, ...] = (
    VirtualNetwork(),
    Subnet(),
    Peering(),
    SecurityGroup(),
    SecurityRule(),
    RouteTable(),
    Route(),
    PublicPrefix(),
    PublicAddress(),
    NatGateway(),
    LoadBalancer(),
    NetworkInterface(),
    PrivateLinkService(),
    PrivateEndpoint(),
    ZoneGroup(),
    VirtualNetworkGateway(),
    DnsResolver(),
    InboundEndpoint(),
    PrivateZone(),
    VirtualNetworkLink(),
    *RECORD_SET_TYPES.values(),
    StartOfAuthority(),
)
