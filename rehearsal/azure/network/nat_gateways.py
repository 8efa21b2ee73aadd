"""Decides which NAT gateways Azure takes: how many addresses, and in which zones.

https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource,
https://github.com/MicrosoftDocs/azure-docs/blob/00595da9da44c880f778908815c2180ad72f60c8/articles/nat-gateway/nat-gateway-resource.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.errors import invalid
from rehearsal.azure.network.network_resource_type import NetworkKind, id_of, list_of, properties_of, zones_of
from rehearsal.azure.network.private_addresses import check_public_address_free
from rehearsal.azure.network.subnets import Subnet
from rehearsal.azure.resource import Json, Resource

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

PUBLIC_ADDRESSES = 16
"""Public addresses of one gateway, in any mix of addresses and prefixes."""
IDLE_MINUTES = range(4, 121)
"""https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource#idle-timeout-timers"""


class NatGateway(NetworkKind):
    """A NAT gateway. Without a public address it may be made, as on Azure, and leads nowhere. SNAT ports are not modelled."""

    type = "Microsoft.Network/natGateways"
    noun = "Nat gateway"
    in_use_code = "InUseNatGatewayCannotBeDeleted"
    users: Mapping[str, str] = {"subnets": Subnet.type.lower()}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """One zone or none, addresses of that zone, at most 16 of them, and nobody else's."""
        super().check(cloud, arm_id, body, previous)
        if (body.get("sku") or {}).get("name") not in ("Standard", "StandardV2"):
            raise invalid(f"NAT gateway {arm_id.text} needs sku Standard.", "sku.name", "InvalidNatGatewaySku")
        zones = zones_of(body)
        if len(zones) > 1:
            message = f"Resource {arm_id.text} has {len(zones)} zones specified. Only one zone can be specified for this resource."
            raise invalid(message, "zones", "ResourceCannotHaveMultipleZonesSpecified")
        idle = properties_of(body).get("idleTimeoutInMinutes", IDLE_MINUTES[0])
        if idle not in IDLE_MINUTES:
            message = f"NAT gateway {arm_id.text} has idle timeout {idle} min, outside {IDLE_MINUTES[0]} to {IDLE_MINUTES[-1]}."
            raise invalid(message, "properties.idleTimeoutInMinutes", "InvalidIdleTimeout")
        count = 0
        for public in _public(cloud, body):
            check_public_address_free(cloud, arm_id, public.id.text)
            _check_zone(arm_id, zones, public)
            count += _size(public)
        if count > PUBLIC_ADDRESSES:
            # Azure publishes the bound; the code is assumed.
            message = f"NAT gateway {arm_id.text} would have {count} public addresses, of at most {PUBLIC_ADDRESSES}. Use another gateway."
            raise invalid(message, arm_id.text, "NatGatewayPublicIpCountLimitReached")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Idle connections are kept for 4 minutes unless it says otherwise."""
        whole = super().complete(cloud, arm_id, body, previous)
        whole["properties"].setdefault("idleTimeoutInMinutes", IDLE_MINUTES[0])
        return whole


def _public(cloud: Cloud, body: Json) -> Iterator[Resource]:
    for reference in (*list_of(body, "publicIpAddresses"), *list_of(body, "publicIpPrefixes")):
        if (found := cloud.find(id_of(reference))) is not None:
            yield found


def _size(public: Resource) -> int:
    return IPv4Network(public.properties["ipPrefix"]).num_addresses if "ipPrefix" in public.properties else 1


def _check_zone(arm_id: ArmId, zones: tuple[str, ...], public: Resource) -> None:
    """A gateway of a zone takes addresses of that zone, or of all: https://learn.microsoft.com/azure/nat-gateway/nat-availability-zones."""
    theirs = zones_of(public.body)
    if zones and zones[0] not in theirs:
        message = (
            f"NAT gateway {arm_id.text} is in zone {zones[0]} and {public.id.text} in {', '.join(theirs) or 'no zone'}; give it public "
            "addresses of its zone."
        )
        raise invalid(message, arm_id.text, "PublicIPOrPrefixAndStandardSkuNatGatewayZoneDoNotMatch")
