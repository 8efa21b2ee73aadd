"""NAT gateway of a subnet, with its own public IP prefix."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_azure_native import network

from components.plan.locations import ALL_ZONES
from components.plan.model import NatGatewayPlan


def nat_gateway(
    name: str,
    plan: NatGatewayPlan,
    resource_group: pulumi.Input[str],
    location: str,
    tags: Mapping[str, str],
    child: pulumi.ResourceOptions,
) -> pulumi.Output[str]:
    """Register a NAT gateway and its prefix under logical names that begin with name, and return the gateway's id."""
    prefix = network.PublicIPPrefix(
        f"{name}-addresses",
        public_ip_prefix_name=plan.prefix_name,
        resource_group_name=resource_group,
        location=location,
        prefix_length=plan.prefix_length,
        public_ip_address_version="IPv4",
        sku=network.PublicIPPrefixSkuArgs(name="Standard", tier="Regional"),
        zones=[plan.zone] if plan.zone else list(ALL_ZONES),
        tags=tags,
        opts=child,
    )
    gateway = network.NatGateway(
        name,
        nat_gateway_name=plan.name,
        resource_group_name=resource_group,
        location=location,
        sku=network.NatGatewaySkuArgs(name="Standard"),
        public_ip_prefixes=[network.SubResourceArgs(id=prefix.id)],
        zones=[plan.zone] if plan.zone else None,
        tags=tags,
        opts=child,
    )
    return gateway.id
