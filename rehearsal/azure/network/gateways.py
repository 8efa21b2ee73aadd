"""Virtual network gateways and NAT gateways.

https://learn.microsoft.com/azure/vpn-gateway/vpn-gateway-about-vpn-gateway-settings,
https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource,
https://github.com/MicrosoftDocs/azure-docs/blob/00595da9da44c880f778908815c2180ad72f60c8/articles/nat-gateway/nat-gateway-resource.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import invalid
from rehearsal.azure.network.ip_configurations import AddressHolder, check_public_address_free
from rehearsal.azure.network.network_resource_type import NetworkResourceType, id_of, list_of, properties_of, zones_of
from rehearsal.azure.network.subnets import Subnet, network_of
from rehearsal.azure.resource import Json, Resource

SUBNET = "gatewaysubnet"
RETIRED_SKUS = ("VpnGw1", "VpnGw2", "VpnGw3", "VpnGw4", "VpnGw5")
"""Sizes without zones, which Azure does not create since November 2025:
https://learn.microsoft.com/azure/vpn-gateway/gateway-sku-consolidation
"""


class VirtualNetworkGateway(AddressHolder):
    """A VPN or ExpressRoute gateway. Connections, clients and routes are not modelled."""

    type = "Microsoft.Network/virtualNetworkGateways"
    noun = "Virtual network gateway"
    put_duration = "gateway.put"
    delete_duration = "gateway.delete"
    items = ("ipConfigurations",)
    defaults: Mapping[str, Any] = {"activeActive": False, "enableBgp": False}
    typed_items = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a gateway outside GatewaySubnet, a second one of its type in a network, and public addresses without the zones of its
        size.
        """
        super().check(cloud, arm_id, body, previous)
        inner = properties_of(body)
        sku = str((inner.get("sku") or {}).get("name", ""))
        if sku in RETIRED_SKUS and previous is None:
            message = f"Gateway {arm_id.text} has size {sku}, of which no new ones are made; choose {sku}AZ."
            raise invalid(message, "properties.sku.name", "NonAzSkusNotAllowedForVPNGateway")
        items = list_of(body, "ipConfigurations")
        if not items:
            raise invalid(f"Gateway {arm_id.text} has no ipConfigurations.", "properties.ipConfigurations", "InvalidRequestFormat")
        for item in items:
            subnet = id_of(properties_of(item).get("subnet"))
            if not subnet or parse(subnet).name.lower() != SUBNET:
                message = f"Gateway {arm_id.text} is in subnet {subnet or 'none'}; it must be in the one called GatewaySubnet."
                raise invalid(message, "properties.ipConfigurations", "GatewayNotInGatewaySubnet")
            self._check_alone(cloud, arm_id, subnet, str(inner.get("gatewayType", "")))
            self._check_public(cloud, arm_id, id_of(properties_of(item).get("publicIPAddress")), sku)

    def _check_alone(self, cloud: Cloud, arm_id: ArmId, subnet: str, sort: str) -> None:
        for key in cloud.index.users(subnet.lower()):
            other = cloud.resources[key]
            if key != arm_id.key and other.id.type.lower() == self.type.lower() and other.properties.get("gatewayType") == sort:
                # The code is assumed.
                message = f"Virtual network {network_of(subnet)} has gateway {other.id.text} of type {sort} already, and may have one."
                raise invalid(message, arm_id.text, "OnlyOneGatewayOfTypeAllowedInVirtualNetwork")

    def _check_public(self, cloud: Cloud, arm_id: ArmId, address: str, sku: str) -> None:
        check_public_address_free(cloud, arm_id, address)
        public = cloud.find(address) if address else None
        if public is not None and sku.startswith("VpnGw") and sku.endswith("AZ") and not zones_of(public.body):
            message = (
                f"Standard Public IPs associated with VPN gateways with AZ VPN skus must have zones configured; {public.id.text} has none."
            )
            raise invalid(message, arm_id.text, "VmssVpnGatewayPublicIpsMustHaveZonesConfigured")


PUBLIC_ADDRESSES = 16
"""Public addresses of one gateway, as addresses and prefixes in any combination."""
IDLE_MINUTES = 4
"""Idle timeout by default: https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource#idle-timeout-timers"""


class NatGateway(NetworkResourceType):
    """A NAT gateway. As on Azure, it can exist without a public address. SNAT ports are not modelled."""

    type = "Microsoft.Network/natGateways"
    noun = "Nat gateway"
    in_use_code = "InUseNatGatewayCannotBeDeleted"
    users: Mapping[str, str] = {"subnets": Subnet.type.lower()}
    defaults: Mapping[str, Any] = {"idleTimeoutInMinutes": IDLE_MINUTES}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse another sku, several zones, addresses of another zone or resource, and more than 16 addresses."""
        super().check(cloud, arm_id, body, previous)
        if (body.get("sku") or {}).get("name") not in ("Standard", "StandardV2"):
            raise invalid(f"NAT gateway {arm_id.text} needs sku Standard.", "sku.name", "InvalidNatGatewaySku")
        zones = zones_of(body)
        if len(zones) > 1:
            message = f"Resource {arm_id.text} has {len(zones)} zones specified. Only one zone can be specified for this resource."
            raise invalid(message, "zones", "ResourceCannotHaveMultipleZonesSpecified")
        count = 0
        for public in _public(cloud, body):
            check_public_address_free(cloud, arm_id, public.id.text)
            _check_zone(arm_id, zones, public)
            count += _size(public)
        if count > PUBLIC_ADDRESSES:
            # Azure publishes the bound; the code is assumed.
            message = f"NAT gateway {arm_id.text} would have {count} public addresses, of at most {PUBLIC_ADDRESSES}. Use another gateway."
            raise invalid(message, arm_id.text, "NatGatewayPublicIpCountLimitReached")


def _public(cloud: Cloud, body: Json) -> Iterator[Resource]:
    for reference in (*list_of(body, "publicIpAddresses"), *list_of(body, "publicIpPrefixes")):
        if (found := cloud.find(id_of(reference))) is not None:
            yield found


def _size(public: Resource) -> int:
    return IPv4Network(public.properties["ipPrefix"]).num_addresses if "ipPrefix" in public.properties else 1


def _check_zone(arm_id: ArmId, zones: tuple[str, ...], public: Resource) -> None:
    """Refuse a public address that does not cover the gateway's zone:
    https://learn.microsoft.com/azure/nat-gateway/nat-availability-zones
    """
    theirs = zones_of(public.body)
    if zones and zones[0] not in theirs:
        message = (
            f"NAT gateway {arm_id.text} is in zone {zones[0]} and {public.id.text} in {', '.join(theirs) or 'no zone'}; give it public "
            "addresses of its zone."
        )
        raise invalid(message, arm_id.text, "PublicIPOrPrefixAndStandardSkuNatGatewayZoneDoNotMatch")
