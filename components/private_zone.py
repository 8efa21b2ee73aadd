"""Private DNS zone linked to one virtual network."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi_azure_native import privatedns


def private_zone(
    name: str,
    zone_name: str,
    vnet_name: str,
    vnet_id: pulumi.Input[str],
    resource_group: pulumi.Input[str],
    tags: Mapping[str, str],
    child: pulumi.ResourceOptions,
    resolution_policy: privatedns.ResolutionPolicy | None = None,
) -> tuple[privatedns.PrivateZone, privatedns.VirtualNetworkLink]:
    """Register a zone and its link to a network under logical names that begin with name, and return both."""
    zone = privatedns.PrivateZone(
        f"{name}-zone", private_zone_name=zone_name, resource_group_name=resource_group, location="global", tags=tags, opts=child
    )
    link = privatedns.VirtualNetworkLink(
        f"{name}-zone-link",
        virtual_network_link_name=vnet_name,
        private_zone_name=zone.name,
        resource_group_name=resource_group,
        location="global",
        virtual_network=privatedns.SubResourceArgs(id=vnet_id),
        registration_enabled=False,
        resolution_policy=resolution_policy,
        tags=tags,
        opts=child,
    )
    return zone, link
