"""Outages of a scenario: requests that fail because a service is unavailable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rehearsal.azure.errors import AzureError
from rehearsal.azure.scenario import Outage, elapsed, scenario_of
from rehearsal.azure.throttle import location_of

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud
    from rehearsal.azure.resource import Request
    from rehearsal.azure.resource_type import ResourceType

RETRY_AFTER = 30
"""Seconds in Retry-After while a service is unavailable; Azure publishes no figure."""


class ApiOutage:
    """Admission check that fails requests during an outage. Running operations continue, because machines do not need the API."""

    def __init__(self) -> None:
        self._asked = 0

    def admit(self, cloud: Cloud, request: Request, kind: ResourceType, /) -> Mapping[str, str]:
        """Return no headers. Raises AzureError ServiceUnavailable (503) or InternalServerError (500) during an outage."""
        for number, outage in enumerate(scenario_of(cloud).outages):
            if not (outage.holds(elapsed(cloud)) and _meant(outage, cloud, request, kind)):
                continue
            self._asked += 1
            if cloud.draw("outage", number, self._asked) < outage.rate:
                raise _refusal(outage, kind.type.partition("/")[0])
        return {}

    def dump(self) -> dict[str, Any]:
        """Return the number of requests during outages as plain JSON; each has its own draw."""
        return {"asked": self._asked}

    def load(self, data: dict[str, Any]) -> None:
        """Restore the state that dump returned."""
        self._asked = data["asked"]


def _meant(outage: Outage, cloud: Cloud, request: Request, kind: ResourceType) -> bool:
    provider = kind.type.partition("/")[0].lower()
    if outage.services and provider not in {service.lower() for service in outage.services}:
        return False
    return outage.location is None or location_of(cloud, request) == outage.location


def _refusal(outage: Outage, provider: str) -> AzureError:
    if outage.status == 503:
        message = f"The service {provider} is temporarily unavailable. Please try again later."
        return AzureError(503, "ServiceUnavailable", message, headers={"Retry-After": str(RETRY_AFTER)})
    return AzureError(500, "InternalServerError", f"Encountered internal server error in {provider}. Please try again later.")
