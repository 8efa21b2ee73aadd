"""Azure's public locations, with and without availability zones."""

from __future__ import annotations

from components.plan.locations import ZONAL_LOCATIONS
from rehearsal.azure.arm_id import GROUP_TYPE
from rehearsal.azure.errors import invalid
from rehearsal.azure.resource import Json, location_key

LOCATIONS_WITHOUT_ZONES = (
    "australiacentral",
    "australiacentral2",
    "australiasoutheast",
    "brazilsoutheast",
    "canadaeast",
    "francesouth",
    "germanynorth",
    "jioindiacentral",
    "jioindiawest",
    "koreasouth",
    "northcentralus",
    "norwaywest",
    "southafricawest",
    "southindia",
    "switzerlandwest",
    "uaecentral",
    "ukwest",
    "westcentralus",
    "westindia",
    "westus",
)
"""Public locations without availability zones, including those with restricted access:
https://learn.microsoft.com/azure/reliability/regions-list"""

LOCATIONS = frozenset({*ZONAL_LOCATIONS, *LOCATIONS_WITHOUT_ZONES})
_LISTED = ",".join(sorted(LOCATIONS))


def check_location(resource_type: str, body: Json) -> None:
    """Raise AzureError for an unknown location. Case and spaces do not matter.

    The messages are those of https://github.com/Azure/azure-cli/issues/16368 and https://github.com/Azure/azure-rest-api-specs/pull/8577.
    """
    location = body.get("location")
    if not location or location_key(location) in LOCATIONS:
        return
    if resource_type == GROUP_TYPE:
        message = f"The provided location '{location}' is not available for resource group. List of available regions is '{_LISTED}'."
        raise invalid(message, "location", "LocationNotAvailableForResourceGroup")
    message = (
        f"The provided location '{location}' is not available for resource type '{resource_type}'. List of available regions for the "
        f"resource type is '{_LISTED}'."
    )
    raise invalid(message, "location", "LocationNotAvailableForResourceType")
