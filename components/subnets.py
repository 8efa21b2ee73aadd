"""Subnets of a virtual network, written one after another, and their security groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pulumi
from pulumi_azure_native import network

from components.plan.model import SubnetPlan
from components.plan.network_rules import SecurityGroupPlan, SecurityRulePlan

RESOLVER = network.DelegationArgs(name="dns-resolver", service_name="Microsoft.Network/dnsResolvers")
"""https://learn.microsoft.com/azure/dns/dns-private-resolver-overview#subnet-restrictions"""
BY_ROLE: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "resolver": {"delegations": [RESOLVER]},
        # Without it, Azure ignores the subnet's security group for private endpoints: https://learn.microsoft.com/azure/private-link/disable-private-endpoint-network-policy
        "endpoints": {"private_endpoint_network_policies": "NetworkSecurityGroupEnabled"},
        # A private link service cannot use an address in a subnet with this policy: https://learn.microsoft.com/azure/private-link/disable-private-link-service-network-policy
        "private-link": {"private_link_service_network_policies": "Disabled"},
    }
)
"""Additional properties of subnets by role."""


@dataclass(frozen=True)
class SubnetsArgs:
    """Subnets in the order in which they are written; gateways maps names of NAT gateways to their ids."""

    subnets: tuple[SubnetPlan, ...]
    security_groups: tuple[SecurityGroupPlan, ...]
    resource_group: pulumi.Input[str]
    virtual_network: pulumi.Input[str]
    location: str
    tags: Mapping[str, str]
    gateways: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)


class Subnets(pulumi.ComponentResource):
    """Subnets of one virtual network with their security groups; `last` is the subnet that is written last."""

    ids: dict[str, pulumi.Output[str]]
    last: pulumi.Resource

    def __init__(self, name: str, args: SubnetsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:subnets:Subnets", name, {}, opts)
        groups = {plan.name: self._security_group(f"{name}-{plan.role}", plan, args) for plan in args.security_groups}
        written: dict[str, network.Subnet] = {}
        for plan in args.subnets:
            # Azure writes one subnet of a network at a time and refuses others, and the provider retries only three times:
            # https://github.com/pulumi/pulumi-azure-native/issues/903
            after = list(written.values())[-1:]
            opts_of = pulumi.ResourceOptions(parent=self, depends_on=after)
            written[plan.role] = self._subnet(f"{name}-{plan.role}", plan, args, groups, opts_of)
        self.ids = {role: subnet.id for role, subnet in written.items()}
        self.last = written[args.subnets[-1].role]
        self.register_outputs({"ids": self.ids})

    def _security_group(self, name: str, plan: SecurityGroupPlan, args: SubnetsArgs) -> network.NetworkSecurityGroup:
        return network.NetworkSecurityGroup(
            name,
            network_security_group_name=plan.name,
            resource_group_name=args.resource_group,
            location=args.location,
            security_rules=[security_rule(rule) for rule in plan.rules],
            tags=args.tags,
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _subnet(
        self,
        name: str,
        plan: SubnetPlan,
        args: SubnetsArgs,
        groups: Mapping[str, network.NetworkSecurityGroup],
        opts: pulumi.ResourceOptions,
    ) -> network.Subnet:
        group = network.NetworkSecurityGroupArgs(id=groups[plan.security_group].id) if plan.security_group else None
        gateway = network.SubResourceArgs(id=args.gateways[plan.nat_gateway]) if plan.nat_gateway else None
        return network.Subnet(
            name,
            subnet_name=plan.name,
            resource_group_name=args.resource_group,
            virtual_network_name=args.virtual_network,
            address_prefix=plan.cidr,
            default_outbound_access=False,
            network_security_group=group,
            nat_gateway=gateway,
            opts=opts,
            **BY_ROLE.get(plan.role, {}),
        )


def security_rule(rule: SecurityRulePlan) -> network.SecurityRuleArgs:
    """Return one rule; Azure accepts a service tag or `*` only in singular fields, and several ranges only in plural fields."""
    return network.SecurityRuleArgs(
        name=rule.name,
        priority=rule.priority,
        direction=rule.direction,
        access=rule.access,
        protocol=rule.protocol,
        source_port_range="*",
        source_address_prefix=_only(rule.sources),
        source_address_prefixes=_several(rule.sources),
        destination_address_prefix=_only(rule.destinations),
        destination_address_prefixes=_several(rule.destinations),
        destination_port_range=_only(rule.ports),
        destination_port_ranges=_several(rule.ports),
    )


def _only(values: tuple[str, ...]) -> str | None:
    return values[0] if len(values) == 1 else None


def _several(values: tuple[str, ...]) -> list[str] | None:
    return list(values) if len(values) > 1 else None
