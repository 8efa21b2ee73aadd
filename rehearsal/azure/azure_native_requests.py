"""Request behavior of azure-native: retries, delays, polling intervals, and properties that it leaves to other resources.

https://github.com/pulumi/pulumi-azure-native/blob/006a62afe453b416e5d5c98d2d91c4c7281f52f9/provider/pkg/azure/client_azcore.go
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

RETRIES = 3
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
RETRIED_CONFLICT = "AnotherOperationInProgress"
FIRST_DELAY, LONGEST_DELAY = 20.0, 120.0
"""Number of retries, HTTP statuses and the one conflict code that are retried, and delays in seconds. azure-native gives up if Azure
requests more than the longest delay:
https://github.com/Azure/azure-sdk-for-go/blob/0f9d9f4df19f46db7ff7c6ea7d5a3034f09e737e/sdk/azcore/runtime/policy_retry.go"""
POLL_SECONDS: Mapping[str, float] = MappingProxyType({"PUT": 10.0, "POST": 10.0, "DELETE": 30.0})
"""Seconds between two polls of a running operation."""

MAINTAINED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "network:LoadBalancer": ("backendAddressPools", "inboundNatRules"),
        "network:NetworkSecurityGroup": ("securityRules",),
        "network:RouteTable": ("routes",),
        "network:VirtualNetwork": ("subnets", "virtualNetworkPeerings"),
    }
)
"""Properties that separate resources write. If the program omits them, azure-native sends their current values:
https://www.pulumi.com/registry/packages/azure-native/api-docs/network/virtualnetwork/"""
SINGLETONS = ("storage:BlobServiceProperties",)
"""Types that Azure creates with their parent, so that the first declaration adopts the resource."""


def back_off(attempt: int) -> float:
    """Return the seconds before retry number `attempt` if Azure specifies no time."""
    return min(FIRST_DELAY * float(2**attempt - 1), LONGEST_DELAY)
