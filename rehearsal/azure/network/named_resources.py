"""Decides whether what a network resource names is the sort of thing that belongs there: a subnet where a subnet is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Json

_NETWORK = "Microsoft.Network"
WANTED: Mapping[str, str] = {
    "subnet": f"{_NETWORK}/virtualNetworks/subnets",
    "virtualNetwork": f"{_NETWORK}/virtualNetworks",
    "remoteVirtualNetwork": f"{_NETWORK}/virtualNetworks",
    "publicIPAddress": f"{_NETWORK}/publicIPAddresses",
    "publicIpAddresses": f"{_NETWORK}/publicIPAddresses",
    "publicIPPrefix": f"{_NETWORK}/publicIPPrefixes",
    "publicIpPrefixes": f"{_NETWORK}/publicIPPrefixes",
    "natGateway": f"{_NETWORK}/natGateways",
    "networkSecurityGroup": f"{_NETWORK}/networkSecurityGroups",
    "routeTable": f"{_NETWORK}/routeTables",
    "frontendIPConfiguration": f"{_NETWORK}/loadBalancers/frontendIPConfigurations",
    "loadBalancerFrontendIpConfigurations": f"{_NETWORK}/loadBalancers/frontendIPConfigurations",
    "backendAddressPool": f"{_NETWORK}/loadBalancers/backendAddressPools",
    "loadBalancerBackendAddressPools": f"{_NETWORK}/loadBalancers/backendAddressPools",
    "probe": f"{_NETWORK}/loadBalancers/probes",
    "privateDnsZoneId": f"{_NETWORK}/privateDnsZones",
    "privateLinkServiceId": "",
}
"""Types by the property that names one, or several in a list; empty for any type."""


def check_named(arm_id: ArmId, body: Json) -> None:
    """Refuse a body that names something of another type, or nothing that is an id: AzureError LinkedInvalidPropertyId.

    Whether it exists the model looks up itself.
    """
    for path, text, wanted in _named(body, ""):
        try:
            found = parse(text).type
        except AzureError:
            found = ""
        if not found or (wanted and found.lower() != wanted.lower()):
            message = (
                f"Property id '{text}' at path '{path}' of {arm_id.text} is invalid. Expect fully qualified resource Id that start with "
                f"'/subscriptions/{{subscriptionId}}'{f', of type {wanted}' if wanted else ''}."
            )
            raise invalid(message, path, "LinkedInvalidPropertyId")


def _named(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """Path, id and wanted type of everything that a body names by a property of the table."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _named(item, f"{path}[{number}]")
    elif isinstance(value, Mapping):
        for name, item in value.items():
            inner = f"{path}.{name}" if path else name
            if name not in WANTED:
                yield from _named(item, inner)
                continue
            for one in item if isinstance(item, list) else [item]:
                text = one.get("id") if isinstance(one, Mapping) else one
                if text is not None:
                    yield inner, str(text), WANTED[name]
                if isinstance(one, Mapping):
                    yield from _named(one.get("properties"), f"{inner}.properties")
