"""Data model of planned networks: subnets, NAT gateways, a cluster's network and the region's hub."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.network_rules import SecurityGroupPlan


@dataclass(frozen=True)
class SubnetPlan:
    """One subnet: its role ("etcd", "api", "endpoints", "private-link", "ingress" or "nodes-NN"), CIDR, security group and NAT gateway.

    security_group and nat_gateway are physical names, None if Azure forbids one or the subnet needs none.
    """

    role: str
    name: str
    cidr: str
    security_group: str | None
    nat_gateway: str | None


@dataclass(frozen=True)
class NatGatewayPlan:
    """One NAT gateway with its public prefix; zone is None for a gateway in no zone.

    snat_ports is the number of ports for prefix_length, machines the maximum number of machines behind the gateway.
    """

    role: str
    name: str
    prefix_name: str
    prefix_length: int
    public_addresses: int
    snat_ports: int
    machines: int
    snat_ports_per_machine: int
    zone: str | None


@dataclass(frozen=True)
class NetworkPlan:
    """One cluster's virtual network; address_prefixes, subnets and gateways have full size per slot, for any number of machines."""

    vnet_name: str
    block: str
    address_prefixes: tuple[str, ...]
    service_cidr: str
    dns_service_address: str
    kubernetes_service_address: str
    subnets: tuple[SubnetPlan, ...]
    security_groups: tuple[SecurityGroupPlan, ...]
    nat_gateways: tuple[NatGatewayPlan, ...]
    private_zone: str
    peering_name: str | None
    hub_peering_name: str | None

    def subnet(self, role: str) -> SubnetPlan:
        """Return the subnet of a role; raise KeyError if there is none."""
        for subnet in self.subnets:
            if subnet.role == role:
                return subnet
        raise KeyError(role)


@dataclass(frozen=True)
class HubPlan:
    """The region's hub: the network with the VPN gateway; client_pool is the address range of VPN clients."""

    vnet_name: str
    address_prefix: str
    subnets: tuple[SubnetPlan, ...]
    security_groups: tuple[SecurityGroupPlan, ...]
    nat_gateways: tuple[NatGatewayPlan, ...]
    gateway_name: str
    gateway_address_name: str
    client_pool: str
    resolver_name: str
    resolver_address: str
    private_zone: str

    def subnet(self, role: str) -> SubnetPlan:
        """Return the subnet of a role; raise KeyError if there is none."""
        for subnet in self.subnets:
            if subnet.role == role:
                return subnet
        raise KeyError(role)
