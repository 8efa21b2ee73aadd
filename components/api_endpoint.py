"""Access from the hub to a cluster's API servers: peering, or a private link for networks that are not peered."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network, privatedns

from components.base_outputs import BaseOutputs
from components.plan.model import ClusterPlan, RegionPlan

RECORD_SECONDS = 300


@dataclass(frozen=True)
class ApiEndpointArgs:
    """Access to a cluster's API servers; private_link_subnet_id is None if hub and cluster are peered."""

    region: RegionPlan
    plan: ClusterPlan
    resource_group: pulumi.Input[str]
    frontend_id: pulumi.Input[str]
    private_link_subnet_id: pulumi.Input[str] | None
    base: BaseOutputs
    base_provider: pulumi.ProviderResource


class ApiEndpoint(pulumi.ComponentResource):
    """DNS record and private endpoint of the API servers in the hub, in the base stack's resource group."""

    def __init__(self, name: str, args: ApiEndpointArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:api_endpoint:ApiEndpoint", name, {}, opts)
        plan = args.plan.api_servers
        if args.private_link_subnet_id is not None:
            service = self._service(f"{name}-link", args, args.private_link_subnet_id)
            self._endpoint(f"{name}-endpoint", args, service)
        privatedns.PrivateRecordSet(
            f"{name}-record",
            resource_group_name=args.base.resource_group,
            private_zone_name=args.base.hub_private_zone,
            record_type="A",
            relative_record_set_name=plan.dns_name.removesuffix(f".{args.region.hub.private_zone}"),
            ttl=RECORD_SECONDS,
            a_records=[privatedns.ARecordArgs(ipv4_address=plan.endpoint_address or plan.address)],
            opts=pulumi.ResourceOptions(parent=self, provider=args.base_provider),
        )
        self.register_outputs({})

    def _service(self, name: str, args: ApiEndpointArgs, subnet_id: pulumi.Input[str]) -> network.PrivateLinkService:
        """Return the private link service in the cluster, visible to and approved for the region's subscription (the hub's) only."""
        plan, hub = args.plan.api_servers, [args.region.spec.subscription]
        return network.PrivateLinkService(
            name,
            resource_group_name=args.resource_group,
            service_name=plan.private_link_name,
            location=args.region.spec.location,
            load_balancer_frontend_ip_configurations=[network.FrontendIPConfigurationArgs(id=args.frontend_id)],
            ip_configurations=[
                {
                    "name": f"source-{number}",
                    "primary": number == 0,
                    "subnet": {"id": subnet_id},
                    "private_ip_address": address,
                    "private_ip_allocation_method": network.IPAllocationMethod.STATIC,
                    "private_ip_address_version": network.IPVersion.I_PV4,
                }
                for number, address in enumerate(plan.private_link_addresses)
            ],
            # API servers expect TLS from the first byte and do not support the PROXY header.
            enable_proxy_protocol=False,
            visibility=network.PrivateLinkServicePropertiesVisibilityArgs(subscriptions=hub),
            auto_approval=network.PrivateLinkServicePropertiesAutoApprovalArgs(subscriptions=hub),
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _endpoint(self, name: str, args: ApiEndpointArgs, service: network.PrivateLinkService) -> None:
        plan = args.plan.api_servers
        network.PrivateEndpoint(
            name,
            resource_group_name=args.base.resource_group,
            private_endpoint_name=plan.endpoint_name,
            location=args.region.spec.location,
            subnet={"id": args.base.hub_endpoints_subnet_id},
            private_link_service_connections=[network.PrivateLinkServiceConnectionArgs(name="api", private_link_service_id=service.id)],
            # A custom private link service has no groups or members to specify with the address.
            ip_configurations=[network.PrivateEndpointIPConfigurationArgs(name="api", private_ip_address=plan.endpoint_address)],
            tags=args.plan.tags,
            opts=pulumi.ResourceOptions(parent=self, provider=args.base_provider),
        )
