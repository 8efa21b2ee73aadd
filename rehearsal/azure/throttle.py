"""Throttling: rejection of calls above the rates of Azure Resource Manager and of the resource providers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.buckets import Buckets, Level
from rehearsal.azure.call_rates import (
    ALL_PRINCIPALS,
    ARM,
    COMPUTE,
    GET_OPERATION,
    NETWORK_READS,
    NETWORK_WRITES,
    PRIVATE_DNS_READS,
    Policy,
)
from rehearsal.azure.clock import stamp
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import location_key
from rehearsal.azure.scenario import Throttling, scenario_of

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud
    from rehearsal.azure.resource import Operation, Request
    from rehearsal.azure.resource_type import ResourceType

REMAINING_RESOURCE = "x-ms-ratelimit-remaining-resource"
REMAINING = "x-ms-ratelimit-remaining-"
_READS = ("GET", "HEAD")


class Throttle:
    """Admission check that counts calls against the published rates, scaled by the scenario."""

    def __init__(self) -> None:
        self._buckets = Buckets()

    def admit(self, cloud: Cloud, request: Request, kind: ResourceType, /) -> Mapping[str, str]:
        """Return headers with the remaining calls. Raises AzureError 429 with Retry-After if none remain.

        Azure Resource Manager counts a call even if the resource provider rejects it.
        """
        throttling = scenario_of(cloud).throttling
        if not throttling.enabled:
            return {}
        operation = "reads" if request.method in _READS else "deletes" if request.method == "DELETE" else "writes"
        headers = self._admit_to_arm(cloud, request.id.subscription, request.principal, operation, throttling)
        provider = kind.type.lower().partition("/")[0]
        if provider == "microsoft.compute":
            policy, per_resource = COMPUTE.get((kind.type.lower(), _verb(cloud, request)), (None, False))
            if policy is not None:
                target = _machine(request, kind) if per_resource else ""
                place = (request.id.subscription.lower(), location_of(cloud, request))
                return headers | self._admit_to_compute(cloud, levels_of(policy, place, target, throttling.compute), headers)
        elif provider == "microsoft.network":
            self._admit_to_network(cloud, request, kind, throttling, headers)
        return headers

    def admit_poll(self, cloud: Cloud, operation: Operation, subscription: str, principal: str) -> Mapping[str, str]:
        """Admit a poll of an operation. Returns headers, or raises AzureError as admit does."""
        throttling = scenario_of(cloud).throttling
        if not throttling.enabled:
            return {}
        headers = self._admit_to_arm(cloud, subscription, principal, "reads", throttling)
        if "/providers/microsoft.compute/" not in operation.key:
            return headers
        levels = levels_of(GET_OPERATION, (subscription.lower(), operation.location), operation.id, throttling.compute)
        return headers | self._admit_to_compute(cloud, levels, headers)

    def admit_read(self, cloud: Cloud, subscription: str, principal: str) -> Mapping[str, str]:
        """Admit a read of Azure Resource Manager itself: of a subscription, or of the tenant if it is empty. As admit does."""
        throttling = scenario_of(cloud).throttling
        return self._admit_to_arm(cloud, subscription, principal, "reads", throttling) if throttling.enabled else {}

    def dump(self) -> list[Any]:
        """Return the remaining tokens as plain JSON."""
        return self._buckets.dump()

    def load(self, data: list[Any]) -> None:
        """Restore the state that dump returned."""
        self._buckets.load(data)

    def _admit_to_arm(self, cloud: Cloud, subscription: str, principal: str, operation: str, throttling: Throttling) -> dict[str, str]:
        levels = arm_levels(operation, subscription, principal, throttling.arm)
        refused = self._buckets.take(levels, cloud.now)
        headers = {f"{REMAINING}{level.name}": str(self._buckets.at(level, cloud.now).tokens) for level in levels}
        if refused is not None:
            wait = self._buckets.at(refused, cloud.now).wait(refused.rate, cloud.now)
            scope = f"subscription '{subscription}'" if subscription else f"tenant '{cloud.tenant}'"
            raise AzureError(
                429,
                "SubscriptionRequestsThrottled" if subscription else "TenantRequestsThrottled",
                f"Number of '{operation[:-1]}' requests for {scope} actor '{principal}' exceeded. Please try again after '{wait}' seconds "
                "after additional tokens are available. Refer to https://aka.ms/arm-throttling for additional information.",
                headers={**headers, "Retry-After": str(wait)},
            )
        return headers

    def _admit_to_compute(self, cloud: Cloud, levels: list[Level], headers: Mapping[str, str]) -> dict[str, str]:
        refused = self._buckets.take(levels, cloud.now)
        left = [f"Microsoft.Compute/{level.name};{self._buckets.at(level, cloud.now).tokens}" for level in levels]
        remaining = {REMAINING_RESOURCE: ",".join(left)}
        if refused is not None:
            raise self._too_many(cloud, refused, {**headers, **remaining})
        return remaining

    def _too_many(self, cloud: Cloud, level: Level, headers: Mapping[str, str]) -> AzureError:
        """Return the error of Microsoft.Compute:
        https://learn.microsoft.com/troubleshoot/azure/virtual-machines/troubleshooting-throttling-errors"""
        bucket = self._buckets.at(level, cloud.now)
        measured = {
            "operationGroup": level.name,
            "startTime": stamp(bucket.since),
            "endTime": stamp(bucket.since + level.rate.period),
            "allowedRequestCount": level.rate.capacity,
            "measuredRequestCount": bucket.asked,
        }
        return AzureError(
            429,
            "OperationNotAllowed",
            "The server rejected the request because too many requests have been received for this subscription.",
            details=(AzureError(429, "TooManyRequests", json.dumps(measured, separators=(",", ":")), target=level.name),),
            headers={**headers, "Retry-After": str(bucket.wait(level.rate, cloud.now))},
        )

    def _admit_to_network(
        self, cloud: Cloud, request: Request, kind: ResourceType, throttling: Throttling, headers: Mapping[str, str]
    ) -> None:
        """Count a call to Microsoft.Network, by subscription and location; private DNS has its own count of reads."""
        subscription, reads = request.id.subscription.lower(), request.method in _READS
        if reads and "/privatednszones" in kind.type.lower():
            what, rate, location = "PrivateDnsReads", PRIVATE_DNS_READS, "global"
        else:
            what, rate = ("NetworkReads", NETWORK_READS) if reads else ("NetworkWrites", NETWORK_WRITES)
            location = location_of(cloud, request)
        level = Level(("network", what, subscription, location), rate.times(throttling.network), what)
        if self._buckets.take([level], cloud.now) is not None:
            wait = self._buckets.at(level, cloud.now).wait(level.rate, cloud.now)
            raise AzureError(
                429,
                "TooManyRequests",
                f"The request was throttled: more than {level.rate.capacity} {'reads' if reads else 'writes and deletes'} in "
                f"{level.rate.period / 60:.0f} minutes in subscription '{subscription}'. Please try again after '{wait}' seconds.",
                headers={**headers, "Retry-After": str(wait)},
            )


def arm_levels(operation: str, subscription: str, principal: str, factor: float) -> list[Level]:
    """Return the buckets of a call to Azure Resource Manager: those of its subscription, or without one that of the tenant.

    The names, and 15 times as many calls of all principals, are in published responses (249 of 250 reads beside 3,749):
    https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling
    """
    rate = ARM[operation].times(factor)
    if not subscription:
        return [Level(("arm", operation, "", principal), rate, f"tenant-{operation}")]
    key = ("arm", operation, subscription.lower())
    everyone = Level(key, rate.times(ALL_PRINCIPALS), f"subscription-global-{operation}")
    return [Level((*key, principal), rate, f"subscription-{operation}"), everyone]


def levels_of(policy: Policy, place: tuple[str, str], target: str, factor: float) -> list[Level]:
    """Return the bucket of a subscription and location, and that of a resource if it has one."""
    whole = Level(("compute", policy.name, *place), policy.subscription.times(factor), f"{policy.name}SubscriptionMaximum")
    if not target or policy.resource is None:
        return [whole]
    return [whole, Level(("compute", policy.name, *place, target), policy.resource.times(factor), f"{policy.name}Resource")]


def _machine(request: Request, kind: ResourceType) -> str:
    """Return the key of the machine or scale set that a call counts for: an extension's parent."""
    whole = request.id.parent if kind.type.lower().endswith(("/extensions", "/rollingupgrades")) and not request.action else None
    return (whole or request.id.text).lower()


def _verb(cloud: Cloud, request: Request) -> str:
    """Return the verb of a call, as in COMPUTE."""
    if request.action:
        return request.action.lower()
    match request.method:
        case "PUT":
            return "update" if request.id.key in cloud.resources else "create"
        case "PATCH":
            return "update"
        case "DELETE":
            return "remove"
        case _:
            return "get"


def location_of(cloud: Cloud, request: Request) -> str:
    """Return the location of a call's resource or of its nearest ancestor with one; empty for a list over several locations."""
    arm_id: ArmId | None = request.id
    while arm_id is not None:
        resource = cloud.resources.get(arm_id.key)
        if resource is not None and resource.location:
            return resource.location
        arm_id = parse(arm_id.parent) if arm_id.parent else None
    return location_key((request.body or {}).get("location", ""))
