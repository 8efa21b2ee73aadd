"""Azure resources that a region's two stacks must register, with their planned properties, from the plan alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.endpoints import ZONES
from components.plan import naming
from components.plan.model import ClusterPlan, EtcdPlan, NatGatewayPlan, PoolPlan, RegionPlan, SubnetPlan
from components.plan.network_rules import SecurityGroupPlan
from components.spec.pool import Capacity
from rehearsal.checks.network_model import key

NETWORK, COMPUTE, VAULTS, STORAGE = "Microsoft.Network", "Microsoft.Compute", "Microsoft.KeyVault", "Microsoft.Storage"

Properties = Mapping[str, Any]
"""Planned or registered properties of a resource, by a readable name; resource ids in lower case, lists as tuples."""


@dataclass(frozen=True)
class ExpectedResource:
    """One planned resource: its Azure id and its planned properties."""

    id: str
    properties: Properties = field(default_factory=dict)


@dataclass(frozen=True)
class ResourceGroupIds:
    """Ids of one resource group and of the resources in it."""

    subscription: str
    name: str

    @property
    def id(self) -> str:
        """Return the id of the group."""
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.name}"

    def of(self, provider: str, *path: str) -> str:
        """Return the id of a resource in the group."""
        return naming.resource_id(self.subscription, self.name, provider, *path)

    def vnet(self, name: str) -> str:
        """Return the id of a virtual network in the group."""
        return self.of(NETWORK, "virtualNetworks", name)


def expected_resources(plan: RegionPlan) -> Iterator[ExpectedResource]:
    """Yield every Azure resource of the region except role assignments, whose names are not planned."""
    base = ResourceGroupIds(plan.spec.subscription, plan.base_resource_group)
    yield ExpectedResource(base.id, {"location": plan.spec.location})
    yield from _hub(plan, base)
    yield from _gallery(plan, base)
    yield from _backup(plan, base)
    for cluster in plan.clusters:
        group = ResourceGroupIds(cluster.subscription, cluster.resource_group)
        yield ExpectedResource(group.id, {"location": plan.spec.location})
        for vault in cluster.vaults:
            yield ExpectedResource(vault.id)
            yield from (ExpectedResource(f"{vault.id}/secrets/{secret}") for secret in vault.secrets)
        yield from (ExpectedResource(identity.id) for identity in cluster.identities)
        yield from _network(cluster, group, base, plan)
        yield from _endpoints(cluster, group, base, plan)
        yield from _control_plane(cluster, group)
        yield from _api_entry(cluster, group, base, plan)
        yield from _ingress(cluster, group)
        for pool in cluster.pools:
            yield from _pool(cluster, pool, group)


def _subnets(vnet: str, group: ResourceGroupIds, subnets: tuple[SubnetPlan, ...]) -> Iterator[ExpectedResource]:
    for subnet in subnets:
        properties = {
            "address prefix": (subnet.cidr,),
            "security group": key(group.of(NETWORK, "networkSecurityGroups", subnet.security_group)) if subnet.security_group else None,
            "NAT gateway": key(group.of(NETWORK, "natGateways", subnet.nat_gateway)) if subnet.nat_gateway else None,
        }
        yield ExpectedResource(f"{vnet}/subnets/{subnet.name}", properties)


def _security_groups(group: ResourceGroupIds, groups: tuple[SecurityGroupPlan, ...]) -> Iterator[ExpectedResource]:
    for item in groups:
        rules = tuple((r.name, r.priority, r.direction, r.access, r.protocol, r.sources, r.destinations, r.ports) for r in item.rules)
        yield ExpectedResource(group.of(NETWORK, "networkSecurityGroups", item.name), {"rules": rules})


def _nat_gateways(group: ResourceGroupIds, gateways: tuple[NatGatewayPlan, ...]) -> Iterator[ExpectedResource]:
    for gateway in gateways:
        prefix = group.of(NETWORK, "publicIPPrefixes", gateway.prefix_name)
        yield ExpectedResource(prefix, {"prefix length": gateway.prefix_length})
        zones = (gateway.zone,) if gateway.zone else ()
        yield ExpectedResource(group.of(NETWORK, "natGateways", gateway.name), {"public prefixes": (key(prefix),), "zones": zones})


def _zone(group: ResourceGroupIds, zone: str, vnet: str, name: str) -> Iterator[ExpectedResource]:
    """Yield a private DNS zone and its link to a network."""
    own = group.of(NETWORK, "privateDnsZones", zone)
    yield ExpectedResource(own)
    yield ExpectedResource(f"{own}/virtualNetworkLinks/{name}", {"network": key(vnet)})


def _hub(plan: RegionPlan, base: ResourceGroupIds) -> Iterator[ExpectedResource]:
    hub = plan.hub
    vnet = base.vnet(hub.vnet_name)
    resolver = base.of(NETWORK, "dnsResolvers", hub.resolver_name)

    def subnet(role: str) -> str:
        return key(f"{vnet}/subnets/{hub.subnet(role).name}")

    yield ExpectedResource(vnet, {"address prefixes": (hub.address_prefix,), "subnets written inline": 0})
    yield from _subnets(vnet, base, hub.subnets)
    yield from _security_groups(base, hub.security_groups)
    yield from _nat_gateways(base, hub.nat_gateways)
    yield ExpectedResource(resolver, {"network": key(vnet)})
    yield ExpectedResource(f"{resolver}/inboundEndpoints/inbound", {"addresses": (hub.resolver_address,), "subnets": (subnet("resolver"),)})
    yield ExpectedResource(base.of(NETWORK, "publicIPAddresses", hub.gateway_address_name))
    size = plan.spec.hub.gateway.value
    properties = {"size": size, "people's addresses": (hub.client_pool,), "subnets": (subnet("gateway"),)}
    yield ExpectedResource(base.of(NETWORK, "virtualNetworkGateways", hub.gateway_name), properties)
    yield from _zone(base, hub.private_zone, vnet, hub.vnet_name)


def _gallery(plan: RegionPlan, base: ResourceGroupIds) -> Iterator[ExpectedResource]:
    yield ExpectedResource(base.of(COMPUTE, "galleries", plan.gallery.name))
    yield from (ExpectedResource(definition) for definition in dict.fromkeys(image.definition_id for image in plan.gallery.images))
    for image in plan.gallery.images:
        yield ExpectedResource(image.version_id, {"replicas": (image.replicas,), "made from": key(image.capture)})


def _backup(plan: RegionPlan, base: ResourceGroupIds) -> Iterator[ExpectedResource]:
    account, days = base.of(STORAGE, "storageAccounts", plan.backup.account), plan.backup.retention_days
    yield ExpectedResource(account, {"SKU": plan.backup.sku})
    yield ExpectedResource(f"{account}/blobServices/default", {"days that deleted blobs are kept": days})
    yield ExpectedResource(f"{account}/managementPolicies/default")
    for cluster in plan.clusters:
        container = f"{account}/blobServices/default/containers/{cluster.backup_container}"
        yield ExpectedResource(container)
        yield ExpectedResource(f"{container}/immutabilityPolicies/default", {"days": days})


def _network(cluster: ClusterPlan, group: ResourceGroupIds, base: ResourceGroupIds, plan: RegionPlan) -> Iterator[ExpectedResource]:
    network = cluster.network
    vnet = group.vnet(network.vnet_name)
    yield ExpectedResource(vnet, {"address prefixes": network.address_prefixes, "subnets written inline": 0})
    yield from _subnets(vnet, group, network.subnets)
    yield from _security_groups(group, network.security_groups)
    yield from _nat_gateways(group, network.nat_gateways)
    if network.peering_name and network.hub_peering_name:
        hub = base.vnet(plan.hub.vnet_name)
        yield ExpectedResource(f"{vnet}/virtualNetworkPeerings/{network.peering_name}", {"network": key(hub)})
        yield ExpectedResource(f"{hub}/virtualNetworkPeerings/{network.hub_peering_name}", {"network": key(vnet)})
    yield from _zone(group, network.private_zone, vnet, network.vnet_name)
    zone = group.of(NETWORK, "privateDnsZones", network.private_zone)
    named = [(member.dns_name, member.address) for etcd in (cluster.etcd, cluster.events_etcd) for member in etcd.members]
    for name, address in (*named, (cluster.api_servers.dns_name, cluster.api_servers.address)):
        yield ExpectedResource(f"{zone}/A/{name.removesuffix(f'.{network.private_zone}')}", {"addresses": (address,)})


def _subnet_of(cluster: ClusterPlan, group: ResourceGroupIds, role: str) -> str:
    """Return the key of a cluster's subnet."""
    return key(f"{group.vnet(cluster.network.vnet_name)}/subnets/{cluster.network.subnet(role).name}")


def _endpoints(cluster: ClusterPlan, group: ResourceGroupIds, base: ResourceGroupIds, plan: RegionPlan) -> Iterator[ExpectedResource]:
    vnet = group.vnet(cluster.network.vnet_name)
    for zone in ZONES.values():
        yield from _zone(group, zone, vnet, cluster.network.vnet_name)
    targets = [(vault.endpoint_name, "vault", vault.id) for vault in cluster.vaults]
    targets.append((cluster.backup_endpoint_name, "blob", base.of(STORAGE, "storageAccounts", plan.backup.account)))
    for name, kind, target in targets:
        endpoint = group.of(NETWORK, "privateEndpoints", name)
        yield ExpectedResource(endpoint, {"target": (key(target),), "subnets": (_subnet_of(cluster, group, "endpoints"),), "addresses": ()})
        zone = key(group.of(NETWORK, "privateDnsZones", ZONES[kind]))
        yield ExpectedResource(f"{endpoint}/privateDnsZoneGroups/default", {"zones": (zone,)})


def _control_plane(cluster: ClusterPlan, group: ResourceGroupIds) -> Iterator[ExpectedResource]:
    for etcd in (cluster.etcd, cluster.events_etcd):
        yield from _etcd(cluster, etcd, group)
    servers = cluster.api_servers
    subnet = _subnet_of(cluster, group, "api")
    yield ExpectedResource(group.of(NETWORK, "loadBalancers", servers.load_balancer), {"front ends": ((servers.address, subnet),)})
    properties = {
        "machines": servers.count,
        "size": servers.size.name,
        "zones": servers.zones,
        "subnets": (subnet,),
        "ipConfigurations per machine": 1,
        "image": key(servers.image.machine_image_id),
        "host name prefix": servers.computer_name_prefix,
        "identities": (key(cluster.identity("control").id),),
        "one placement group": False,
        "spot": False,
    }
    yield ExpectedResource(group.of(COMPUTE, "virtualMachineScaleSets", servers.name), properties)


def _etcd(cluster: ClusterPlan, etcd: EtcdPlan, group: ResourceGroupIds) -> Iterator[ExpectedResource]:
    for member in etcd.members:
        nic = group.of(NETWORK, "networkInterfaces", member.nic_name)
        yield ExpectedResource(nic, {"addresses": (member.address,), "subnets": (_subnet_of(cluster, group, etcd.role),)})
        properties = {
            "size": etcd.size.name,
            "zones": (member.zone,),
            "interfaces": (key(nic),),
            "image": key(etcd.image.machine_image_id),
            "host name": member.name,
            "identities": (key(cluster.identity("etcd").id),),
        }
        yield ExpectedResource(group.of(COMPUTE, "virtualMachines", member.name), properties)


def _api_entry(cluster: ClusterPlan, group: ResourceGroupIds, base: ResourceGroupIds, plan: RegionPlan) -> Iterator[ExpectedResource]:
    """Yield the hub's resources for access to the API servers: their DNS record, and the private link where it exists."""
    servers = cluster.api_servers
    record = servers.dns_name.removesuffix(f".{plan.hub.private_zone}")
    zone = base.of(NETWORK, "privateDnsZones", plan.hub.private_zone)
    yield ExpectedResource(f"{zone}/A/{record}", {"addresses": (servers.endpoint_address or servers.address,)})
    if servers.private_link_name and servers.endpoint_name:
        service = group.of(NETWORK, "privateLinkServices", servers.private_link_name)
        yield ExpectedResource(
            service, {"addresses": servers.private_link_addresses, "subnets": (_subnet_of(cluster, group, "private-link"),)}
        )
        entry = key(f"{base.vnet(plan.hub.vnet_name)}/subnets/{plan.hub.subnet('endpoints').name}")
        properties = {"target": (key(service),), "subnets": (entry,), "addresses": (servers.endpoint_address,)}
        yield ExpectedResource(base.of(NETWORK, "privateEndpoints", servers.endpoint_name), properties)


def _ingress(cluster: ClusterPlan, group: ResourceGroupIds) -> Iterator[ExpectedResource]:
    if cluster.ingress is not None:
        front_end = (cluster.ingress.address, _subnet_of(cluster, group, "ingress"))
        yield ExpectedResource(group.of(NETWORK, "loadBalancers", cluster.ingress.load_balancer), {"front ends": (front_end,)})


def _pool(cluster: ClusterPlan, pool: PoolPlan, group: ResourceGroupIds) -> Iterator[ExpectedResource]:
    for item in pool.scale_sets:
        properties = {
            "machines": item.capacity,
            "size": pool.size.name,
            "zones": (pool.spec.zone.value,),
            "subnets": (_subnet_of(cluster, group, item.subnet_role),),
            "ipConfigurations per machine": pool.addresses_per_machine,
            "image": key(pool.image.machine_image_id),
            "host name prefix": item.computer_name_prefix,
            "identities": (key(cluster.identity("node").id),),
            "one placement group": item.single_placement_group,
            "spot": pool.spec.capacity is Capacity.SPOT,
        }
        yield ExpectedResource(group.of(COMPUTE, "virtualMachineScaleSets", item.name), properties)
