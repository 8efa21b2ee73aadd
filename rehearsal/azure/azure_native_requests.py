"""Says how azure-native calls Azure: what it sends again, how long it waits, how often it looks, what it leaves to other resources.

https://github.com/pulumi/pulumi-azure-native/blob/006a62afe453b416e5d5c98d2d91c4c7281f52f9/provider/pkg/azure/client_azcore.go
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

RETRIES = 3
RETRIED = frozenset({408, 429, 500, 502, 503, 504})
RETRIED_CONFLICT = "AnotherOperationInProgress"
FIRST_DELAY, LONGEST_DELAY = 20.0, 120.0
"""Attempts, HTTP statuses and the one conflict, and seconds; where Azure asks for longer than the longest delay, it gives up:
https://github.com/Azure/azure-sdk-for-go/blob/0f9d9f4df19f46db7ff7c6ea7d5a3034f09e737e/sdk/azcore/runtime/policy_retry.go"""
POLL_SECONDS: Mapping[str, float] = MappingProxyType({"PUT": 10.0, "POST": 10.0, "DELETE": 30.0})
"""Seconds between two looks at a running operation."""

MAINTAINED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "network:LoadBalancer": ("backendAddressPools", "inboundNatRules"),
        "network:NetworkSecurityGroup": ("securityRules",),
        "network:RouteTable": ("routes",),
        "network:VirtualNetwork": ("subnets", "virtualNetworkPeerings"),
    }
)
"""Properties that azure-native sends as Azure has them where the program says nothing of them, because resources of their own write them:
https://www.pulumi.com/registry/packages/azure-native/api-docs/network/virtualnetwork/"""
SINGLETONS = ("storage:BlobServiceProperties",)
"""Types that come with their parent, so that the first to declare one takes it over."""


def back_off(attempt: int) -> float:
    """Seconds before what failed so many times is sent again, where Azure names no time."""
    return min(FIRST_DELAY * float(2**attempt - 1), LONGEST_DELAY)
