"""Plan of networks, subnets, security groups and NAT gateways of a cluster and of the hub."""

from __future__ import annotations

from components.plan import addresses, naming, network_rules
from components.plan.model import HubPlan, NatGatewayPlan, NetworkPlan, PoolPlan, SubnetPlan
from components.plan.network_rules import Ranges, SecurityGroupPlan
from components.spec.cluster import Cluster, Connectivity
from components.spec.pool import NODE_SUBNET_SLOTS
from components.spec.region import Region

SNAT_PORTS_PER_ADDRESS = 64_512
"""https://github.com/MicrosoftDocs/azure-docs/blob/00595da9da44c880f778908815c2180ad72f60c8/articles/nat-gateway/nat-gateway-resource.md"""
CONTROL_PREFIX_LENGTH = 31
MOST_CONTROL_MACHINES = 64
"""Maximum control-plane machines, or runners in the hub, behind one gateway."""


def nat_gateway(name: str, role: str, prefix_length: int, machines: int, zone: str | None) -> NatGatewayPlan:
    """Return the plan of a NAT gateway; machines is the maximum of its subnets, so that growth changes nothing."""
    public = 1 << (32 - prefix_length)
    ports = public * SNAT_PORTS_PER_ADDRESS
    return NatGatewayPlan(
        role=role,
        name=name,
        prefix_name=f"{name}-ips",
        prefix_length=prefix_length,
        public_addresses=public,
        snat_ports=ports,
        machines=machines,
        snat_ports_per_machine=ports // max(machines, 1),
        zone=zone,
    )


def _ranges(cluster: Cluster, block: addresses.Network, hub: HubPlan) -> Ranges:
    """Return the address ranges for the cluster's security rules."""
    peered = cluster.connectivity is Connectivity.PEERING
    return Ranges(
        etcd=str(addresses.control_subnet(block, "etcd")),
        events=str(addresses.control_subnet(block, "events")),
        api=str(addresses.control_subnet(block, "api")),
        private_link="" if peered else str(addresses.control_subnet(block, "private-link")),
        endpoints=str(addresses.control_subnet(block, "endpoints")),
        nodes=tuple(str(network) for network in addresses.node_prefixes(block)),
        block=str(block),
        hub=(hub.address_prefix, hub.client_pool) if peered else (),
    )


def _groups(cluster: Cluster, ranges: Ranges, ingress: str | None) -> tuple[SecurityGroupPlan, ...]:
    """Return the cluster's security groups, one per role."""
    rules = {
        "etcd": network_rules.etcd_rules(ranges.etcd, ranges),
        "events": network_rules.etcd_rules(ranges.events, ranges),
        "api": network_rules.api_rules(ranges),
        "endpoints": network_rules.endpoint_rules(ranges),
        "nodes": network_rules.node_rules(ranges, ingress),
    }
    return tuple(SecurityGroupPlan(role, naming.of_cluster(cluster.name, f"nsg-{role}"), table) for role, table in rules.items())


def _control_roles(cluster: Cluster) -> tuple[str, ...]:
    """Return the roles of the cluster's control-plane subnets."""
    optional = {
        "private-link": cluster.connectivity is Connectivity.PRIVATE_LINK,
        "ingress": any(pool.load_balanced for pool in cluster.pools),
    }
    return tuple(role for role in addresses.CONTROL_ROLES if optional.get(role, True))


def _subnets(
    cluster: Cluster, block: addresses.Network, groups: tuple[SecurityGroupPlan, ...], node_slots: tuple[int, ...]
) -> tuple[SubnetPlan, ...]:
    """Return the cluster's subnets: control-plane roles, then node slots."""
    group = {item.role: item.name for item in groups}
    control_nat = naming.of_cluster(cluster.name, "nat-control")
    with_nat = ("etcd", "events", "api")
    control = tuple(
        SubnetPlan(
            role,
            naming.of_cluster(cluster.name, f"snet-{role}"),
            str(addresses.control_subnet(block, role)),
            group.get("nodes" if role == "ingress" else role),
            control_nat if role in with_nat else None,
        )
        for role in _control_roles(cluster)
    )
    nodes = tuple(
        SubnetPlan(
            f"nodes-{slot:02d}",
            naming.of_cluster(cluster.name, f"snet-nodes-{slot:02d}"),
            str(addresses.node_subnet(block, slot)),
            group["nodes"],
            naming.of_cluster(cluster.name, f"nat-nodes-{slot:02d}"),
        )
        for slot in node_slots
    )
    return control + nodes


def plan_network(region: Region, cluster: Cluster, pools: tuple[PoolPlan, ...], hub: HubPlan) -> NetworkPlan:
    """Return the plan of a cluster's virtual network."""
    block = addresses.cluster_block(region.address_space, cluster.slot)
    services = addresses.service_range(block)
    balanced = any(pool.load_balanced for pool in cluster.pools)
    ingress = str(addresses.control_subnet(block, "ingress")) if balanced else None
    groups = _groups(cluster, _ranges(cluster, block, hub), ingress)
    owner = {int(role.removeprefix("nodes-")): pool for pool in pools for role in pool.subnet_roles}
    slots = tuple(slot for slot in sorted(owner) if slot < NODE_SUBNET_SLOTS)
    gateways = tuple(
        nat_gateway(
            naming.of_cluster(cluster.name, f"nat-nodes-{slot:02d}"),
            f"nodes-{slot:02d}",
            cluster.nat_prefix_length,
            owner[slot].machines_per_subnet,
            owner[slot].spec.zone.value,
        )
        for slot in slots
    )
    control = nat_gateway(naming.of_cluster(cluster.name, "nat-control"), "control", CONTROL_PREFIX_LENGTH, MOST_CONTROL_MACHINES, None)
    peered = cluster.connectivity is Connectivity.PEERING
    return NetworkPlan(
        vnet_name=naming.of_cluster(cluster.name, "vnet"),
        block=str(block),
        address_prefixes=tuple(str(network) for network in addresses.cluster_prefixes(block)),
        service_cidr=str(services),
        dns_service_address=addresses.host(services, 10),
        kubernetes_service_address=addresses.host(services, 1),
        subnets=_subnets(cluster, block, groups, slots),
        security_groups=groups,
        nat_gateways=(control, *gateways),
        private_zone=f"{cluster.name}.{region.name}.{region.domain}",
        peering_name=f"{cluster.name}-to-hub" if peered else None,
        hub_peering_name=f"hub-to-{cluster.name}" if peered else None,
    )


def plan_hub(region: Region) -> HubPlan:
    """Return the plan of the region's hub."""
    block = addresses.hub_block(region.address_space)
    prefix, people = str(addresses.hub_network(block)), str(addresses.client_pool(block))
    group = SecurityGroupPlan("hub", naming.of_hub(region.name, "nsg"), network_rules.hub_rules(prefix, people))
    gateway = nat_gateway(naming.of_hub(region.name, "nat"), "runner", CONTROL_PREFIX_LENGTH, MOST_CONTROL_MACHINES, None)
    names = {"gateway": "GatewaySubnet"}
    subnets = tuple(
        SubnetPlan(
            role,
            names.get(role, naming.of_hub(region.name, f"snet-{role}")),
            str(addresses.hub_subnet(block, role)),
            None if role == "gateway" else group.name,
            gateway.name if role == "runner" else None,
        )
        for role in addresses.HUB_ROLES
    )
    return HubPlan(
        vnet_name=naming.of_hub(region.name, "vnet"),
        address_prefix=prefix,
        subnets=subnets,
        security_groups=(group,),
        nat_gateways=(gateway,),
        gateway_name=naming.of_hub(region.name, "gateway"),
        gateway_address_name=naming.of_hub(region.name, "gateway-ip"),
        client_pool=people,
        resolver_name=naming.of_hub(region.name, "resolver"),
        resolver_address=addresses.host(addresses.hub_subnet(block, "resolver"), addresses.FIRST_USABLE),
        private_zone=f"{region.name}.{region.domain}",
    )
