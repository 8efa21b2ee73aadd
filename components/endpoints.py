"""Private endpoints of vaults and the backup account, with their DNS zones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network, privatedns

from components.private_zone import private_zone

ZONES: Mapping[str, str] = {"vault": "privatelink.vaultcore.azure.net", "blob": "privatelink.blob.core.windows.net"}
"""Private DNS zone by kind of endpoint (Azure's "group id"): https://learn.microsoft.com/azure/private-link/private-endpoint-dns"""


@dataclass(frozen=True)
class Endpoint:
    """One private endpoint: role is unique in the cluster, kind is "vault" or "blob", target is the id of the service."""

    role: str
    name: str
    kind: str
    target: pulumi.Input[str]


@dataclass(frozen=True)
class EndpointsArgs:
    """The endpoints of one virtual network; link_name is the network's name, `after` the last write to it."""

    endpoints: tuple[Endpoint, ...]
    resource_group: pulumi.Input[str]
    location: str
    tags: Mapping[str, str]
    vnet_id: pulumi.Input[str]
    link_name: str
    subnet_id: pulumi.Input[str]
    after: pulumi.Resource


class Endpoints(pulumi.ComponentResource):
    """Private endpoints, and DNS zones in which the services' names resolve to them; groups are ready when all names resolve."""

    groups: tuple[pulumi.Resource, ...]

    def __init__(self, name: str, args: EndpointsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:endpoints:Endpoints", name, {}, opts)
        zones = {kind: self._zone(f"{name}-{kind}", zone, args) for kind, zone in ZONES.items()}
        after, groups = args.after, []
        for endpoint in args.endpoints:
            # The creation of an endpoint locks its subnet: https://github.com/hashicorp/terraform-provider-azurerm/pull/16315
            opts_of = pulumi.ResourceOptions(parent=self, depends_on=[after])
            after = self._endpoint(f"{name}-{endpoint.role}", endpoint, args, opts_of)
            groups.append(self._group(f"{name}-{endpoint.role}-names", endpoint, args, after, zones[endpoint.kind]))
        self.groups = tuple(groups)
        self.register_outputs({})

    def _zone(self, name: str, zone_name: str, args: EndpointsArgs) -> privatedns.PrivateZone:
        # The zone is authoritative for the whole service. Without the fallback, other owners' accounts and vaults with private
        # endpoints would not resolve here: https://learn.microsoft.com/azure/dns/private-dns-fallback
        zone, _ = private_zone(
            name,
            zone_name,
            args.link_name,
            args.vnet_id,
            args.resource_group,
            args.tags,
            pulumi.ResourceOptions(parent=self),
            privatedns.ResolutionPolicy.NX_DOMAIN_REDIRECT,
        )
        return zone

    def _endpoint(self, name: str, endpoint: Endpoint, args: EndpointsArgs, opts: pulumi.ResourceOptions) -> network.PrivateEndpoint:
        connection = network.PrivateLinkServiceConnectionArgs(
            name=endpoint.name, private_link_service_id=endpoint.target, group_ids=[endpoint.kind]
        )
        return network.PrivateEndpoint(
            name,
            private_endpoint_name=endpoint.name,
            resource_group_name=args.resource_group,
            location=args.location,
            # SubnetArgs would also send defaults, which conflict with the subnet's settings.
            subnet={"id": args.subnet_id},
            private_link_service_connections=[connection],
            tags=args.tags,
            opts=opts,
        )

    def _group(
        self, name: str, endpoint: Endpoint, args: EndpointsArgs, made: network.PrivateEndpoint, zone: privatedns.PrivateZone
    ) -> network.PrivateDnsZoneGroup:
        return network.PrivateDnsZoneGroup(
            name,
            private_dns_zone_group_name="default",
            private_endpoint_name=made.name,
            resource_group_name=args.resource_group,
            private_dns_zone_configs=[network.PrivateDnsZoneConfigArgs(name=endpoint.kind, private_dns_zone_id=zone.id)],
            opts=pulumi.ResourceOptions(parent=self),
        )
