"""Hub of a region: network, VPN gateway, DNS resolver and private zone."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import dnsresolver, network

from components.nat_gateway import nat_gateway
from components.plan.locations import ALL_ZONES
from components.plan.model import RegionPlan
from components.private_zone import private_zone
from components.spec.region import GatewaySize
from components.subnets import Subnets, SubnetsArgs

VPN_CLIENT_AUDIENCE = "c632b3df-fb67-4d84-bdcf-b95ad541b5c8"
"""Application that Microsoft registers for its Azure VPN client in every tenant:
https://learn.microsoft.com/azure/vpn-gateway/point-to-site-entra-register-custom-app"""
FIRST_GENERATION = (GatewaySize.VPNGW1AZ,)
"""Gateway sizes of the first generation only; the others exist in the second: https://learn.microsoft.com/azure/vpn-gateway/about-gateway-skus"""


@dataclass(frozen=True)
class HubArgs:
    plan: RegionPlan
    resource_group: pulumi.Input[str]


class Hub(pulumi.ComponentResource):
    """Hub network with VPN gateway, DNS resolver and private zone.

    subnet_ids maps a role ("gateway", "runner", "endpoints" or "resolver") to a subnet's id; private_zone is the zone's name.
    """

    vnet_id: pulumi.Output[str]
    subnet_ids: dict[str, pulumi.Output[str]]
    private_zone: pulumi.Output[str]

    def __init__(self, name: str, args: HubArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:hub:Hub", name, {}, opts)
        plan, child = args.plan.hub, pulumi.ResourceOptions(parent=self)
        vnet = network.VirtualNetwork(
            f"{name}-vnet",
            virtual_network_name=plan.vnet_name,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            address_space=network.AddressSpaceArgs(address_prefixes=[plan.address_prefix]),
            dhcp_options=network.DhcpOptionsArgs(dns_servers=[plan.resolver_address]),
            tags=args.plan.tags,
            opts=child,
        )
        location, tags = args.plan.spec.location, args.plan.tags
        gateways = {
            gateway.name: nat_gateway(f"{name}-nat-{gateway.role}", gateway, args.resource_group, location, tags, child)
            for gateway in plan.nat_gateways
        }
        subnets = Subnets(
            f"{name}-subnets",
            SubnetsArgs(plan.subnets, plan.security_groups, args.resource_group, vnet.name, location, tags, gateways),
            child,
        )
        self._resolver(name, args, vnet, subnets)
        self._gateway(name, args, subnets)
        self.vnet_id = vnet.id
        self.subnet_ids = subnets.ids
        zone, _ = private_zone(name, plan.private_zone, plan.vnet_name, vnet.id, args.resource_group, tags, child)
        self.private_zone = zone.name
        self.register_outputs({"vnet_id": self.vnet_id, "subnet_ids": self.subnet_ids, "private_zone": self.private_zone})

    def _resolver(self, name: str, args: HubArgs, vnet: network.VirtualNetwork, subnets: Subnets) -> None:
        plan = args.plan.hub
        resolver = dnsresolver.DnsResolver(
            f"{name}-resolver",
            dns_resolver_name=plan.resolver_name,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            virtual_network=dnsresolver.SubResourceArgs(id=vnet.id),
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        address = dnsresolver.IpConfigurationArgs(
            subnet=dnsresolver.SubResourceArgs(id=subnets.ids["resolver"]),
            private_ip_address=plan.resolver_address,
            private_ip_allocation_method="Static",
        )
        dnsresolver.InboundEndpoint(
            f"{name}-resolver-inbound",
            inbound_endpoint_name="inbound",
            dns_resolver_name=resolver.name,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            ip_configurations=[address],
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _gateway(self, name: str, args: HubArgs, subnets: Subnets) -> None:
        plan, size = args.plan.hub, args.plan.spec.hub.gateway
        public = network.PublicIPAddress(
            f"{name}-gateway-address",
            public_ip_address_name=plan.gateway_address_name,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            sku=network.PublicIPAddressSkuArgs(name="Standard", tier="Regional"),
            public_ip_allocation_method="Static",
            zones=list(ALL_ZONES),
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )
        address = network.VirtualNetworkGatewayIPConfigurationArgs(
            name="gateway",
            subnet=network.SubResourceArgs(id=subnets.ids["gateway"]),
            public_ip_address=network.SubResourceArgs(id=public.id),
            private_ip_allocation_method="Dynamic",
        )
        network.VirtualNetworkGateway(
            f"{name}-gateway",
            virtual_network_gateway_name=plan.gateway_name,
            resource_group_name=args.resource_group,
            location=args.plan.spec.location,
            gateway_type="Vpn",
            vpn_type="RouteBased",
            vpn_gateway_generation="Generation1" if size in FIRST_GENERATION else "Generation2",
            sku=network.VirtualNetworkGatewaySkuArgs(name=size.value, tier=size.value),
            ip_configurations=[address],
            vpn_client_configuration=vpn_clients(args.plan),
            tags=args.plan.tags,
            # The gateway's creation locks the network for most of an hour, in which no subnet can be written.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[subnets.last]),
        )


def vpn_clients(plan: RegionPlan) -> network.VpnClientConfigurationArgs:
    """Return the VPN client settings: logins of the tenant over OpenVPN, the only protocol with Entra ID.

    https://learn.microsoft.com/azure/vpn-gateway/point-to-site-entra-gateway
    """
    tenant = plan.spec.access.tenant
    return network.VpnClientConfigurationArgs(
        vpn_authentication_types=["AAD"],
        vpn_client_protocols=["OpenVPN"],
        vpn_client_address_pool=network.AddressSpaceArgs(address_prefixes=[plan.hub.client_pool]),
        aad_tenant=f"https://login.microsoftonline.com/{tenant}",
        aad_audience=VPN_CLIENT_AUDIENCE,
        aad_issuer=f"https://sts.windows.net/{tenant}/",
    )
