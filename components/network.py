"""Virtual network of a cluster: subnets, NAT gateways, DNS names, endpoints and the optional peering with the hub."""

from __future__ import annotations

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import network, privatedns

from components.base_outputs import BaseOutputs
from components.endpoints import Endpoint, Endpoints, EndpointsArgs
from components.nat_gateway import nat_gateway
from components.plan.model import ClusterPlan, RegionPlan
from components.private_zone import private_zone
from components.subnets import Subnets, SubnetsArgs

RECORD_TTL_SECONDS = 300
"""Records have fixed addresses; the TTL only limits the duration of an error."""


@dataclass(frozen=True)
class NetworkArgs:
    """base_provider acts in the base stack's subscription, which contains the hub's side of a peering."""

    plan: ClusterPlan
    region: RegionPlan
    resource_group: pulumi.Input[str]
    base: BaseOutputs
    base_provider: pulumi.ProviderResource


class Network(pulumi.ComponentResource):
    """The network; subnet_ids maps a role ("etcd", "api", "nodes-00", …) to a subnet's id.

    names is ready when all names that a machine needs at boot resolve.
    """

    vnet_id: pulumi.Output[str]
    subnet_ids: dict[str, pulumi.Output[str]]
    names: tuple[pulumi.Resource, ...]

    def __init__(self, name: str, args: NetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:network:Network", name, {}, opts)
        plan, location, child = args.plan, args.region.spec.location, pulumi.ResourceOptions(parent=self)
        vnet = network.VirtualNetwork(
            f"{name}-vnet",
            virtual_network_name=plan.network.vnet_name,
            resource_group_name=args.resource_group,
            location=location,
            address_space=network.AddressSpaceArgs(address_prefixes=plan.network.address_prefixes),
            tags=plan.tags,
            opts=child,
        )
        gateways = {
            gateway.name: nat_gateway(f"{name}-nat-{gateway.role}", gateway, args.resource_group, location, plan.tags, child)
            for gateway in plan.network.nat_gateways
        }
        subnets = Subnets(
            f"{name}-subnets",
            SubnetsArgs(plan.network.subnets, plan.network.security_groups, args.resource_group, vnet.name, location, plan.tags, gateways),
            child,
        )
        records = self._zone(name, args, vnet)
        endpoints = Endpoints(
            f"{name}-endpoints",
            EndpointsArgs(
                endpoints=endpoints_of(plan, args.base),
                resource_group=args.resource_group,
                location=location,
                tags=plan.tags,
                vnet_id=vnet.id,
                link_name=plan.network.vnet_name,
                subnet_id=subnets.ids["endpoints"],
                after=self._peering(name, args, vnet, subnets.last),
            ),
            child,
        )
        self.vnet_id = vnet.id
        self.subnet_ids = subnets.ids
        self.names = (*records, *endpoints.groups)
        self.register_outputs({"vnet_id": self.vnet_id, "subnet_ids": self.subnet_ids})

    def _zone(self, name: str, args: NetworkArgs, vnet: network.VirtualNetwork) -> tuple[pulumi.Resource, ...]:
        """Create the cluster's zone; return its link to the network, and the records of etcd members and API servers."""
        plan, child = args.plan, pulumi.ResourceOptions(parent=self)
        zone, link = private_zone(name, plan.network.private_zone, plan.network.vnet_name, vnet.id, args.resource_group, plan.tags, child)
        records = tuple(
            privatedns.PrivateRecordSet(
                f"{name}-record-{record}",
                relative_record_set_name=record,
                record_type="A",
                private_zone_name=zone.name,
                resource_group_name=args.resource_group,
                ttl=RECORD_TTL_SECONDS,
                a_records=[privatedns.ARecordArgs(ipv4_address=address)],
                opts=child,
            )
            for record, address in records_of(plan).items()
        )
        return (link, *records)

    def _peering(self, name: str, args: NetworkArgs, vnet: network.VirtualNetwork, after: pulumi.Resource) -> pulumi.Resource:
        """Create both sides of the peering with the hub if the cluster is peered; return the last write to the cluster's network."""
        plan = args.plan.network
        if plan.peering_name is None or plan.hub_peering_name is None:
            return after
        hub_side = network.VirtualNetworkPeering(
            f"{name}-peering-hub-side",
            virtual_network_peering_name=plan.hub_peering_name,
            virtual_network_name=args.region.hub.vnet_name,
            resource_group_name=args.base.resource_group,
            remote_virtual_network=network.SubResourceArgs(id=vnet.id),
            allow_virtual_network_access=True,
            allow_forwarded_traffic=False,
            allow_gateway_transit=True,
            use_remote_gateways=False,
            # A peering writes to both networks, which accept one write at a time.
            opts=pulumi.ResourceOptions(parent=self, provider=args.base_provider, depends_on=[after]),
        )
        return network.VirtualNetworkPeering(
            f"{name}-peering",
            virtual_network_peering_name=plan.peering_name,
            virtual_network_name=vnet.name,
            resource_group_name=args.resource_group,
            remote_virtual_network=network.SubResourceArgs(id=args.base.hub_vnet_id),
            allow_virtual_network_access=True,
            allow_forwarded_traffic=False,
            allow_gateway_transit=False,
            use_remote_gateways=True,
            # The hub must offer its gateway before the cluster may use it: https://learn.microsoft.com/azure/vpn-gateway/vpn-gateway-peering-gateway-transit
            opts=pulumi.ResourceOptions(parent=self, depends_on=[hub_side]),
        )


def records_of(plan: ClusterPlan) -> dict[str, str]:
    """Return addresses by name in the cluster's zone."""
    members = (*plan.etcd.members, *plan.events_etcd.members)
    named = {member.dns_name: member.address for member in members} | {plan.api_servers.dns_name: plan.api_servers.address}
    return {dns_name.removesuffix(f".{plan.network.private_zone}"): address for dns_name, address in named.items()}


def endpoints_of(plan: ClusterPlan, base: BaseOutputs) -> tuple[Endpoint, ...]:
    """Return a private endpoint per vault of the cluster, and one for the backup account."""
    vaults = (Endpoint(f"vault-{vault.role}", vault.endpoint_name, "vault", base.vault_id(plan.name, vault.role)) for vault in plan.vaults)
    return (*vaults, Endpoint("backup", plan.backup_endpoint_name, "blob", base.backup_account_id))
