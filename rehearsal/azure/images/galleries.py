"""Image galleries and their image definitions.

https://learn.microsoft.com/azure/virtual-machines/azure-compute-gallery has the limits,
https://learn.microsoft.com/rest/api/compute/gallery-images/create-or-update what is fixed at creation.
"""

from __future__ import annotations

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import conflict, property_change_not_allowed
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import check_one_of, check_unchanged, required_location, required_value, value_at, without_nulls

GALLERIES, DEFINITIONS, VERSIONS = 100, 1_000, 10_000
"""Limits per subscription and region: https://learn.microsoft.com/azure/virtual-machines/azure-compute-gallery#limits"""


def check_count_limit(cloud: Cloud, arm_id: ArmId, location: str, resource_type: str, limit: int) -> None:
    """Refuse more resources of a type than a subscription can have in a region; AzureError QuotaExceeded. The limit is published, the
    code is not.
    """
    inside = cloud.list(f"/subscriptions/{arm_id.subscription}", resource_type)
    count = sum(1 for one in inside if one.location == location)
    if count >= limit:
        what = resource_type.rpartition("/")[2]
        raise conflict("QuotaExceeded", f"The subscription holds {count} gallery {what} in {location}, of at most {limit}.", arm_id.name)


def check_empty(cloud: Cloud, resource: Resource) -> None:
    """Refuse to delete a resource with children: https://github.com/jenkins-infra/azure/pull/1544 shows the sentence."""
    inner = [cloud.resources[key].id for key in cloud.index.children(resource.key) if "/providers/" not in key[len(resource.key) :]]
    if inner:
        named = ", ".join(one.text.rpartition("/providers/")[2] for one in inner[:5])
        message = (
            f"Cannot delete resource while nested resources exist. Some existing nested resource IDs include: '{named}'. "
            "Please delete all nested resources before deleting this resource."
        )
        raise conflict("CannotDeleteResource", message, resource.id.text)


class Gallery(ResourceType):
    """A gallery: https://learn.microsoft.com/rest/api/compute/galleries."""

    type = "Microsoft.Compute/galleries"
    put_duration = "image.put"
    deletable_in_use = True

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse more galleries than the limit."""
        location = required_location(body)
        if previous is None:
            check_count_limit(cloud, arm_id, location, self.type, GALLERIES)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the globally unique name of subscription and name."""
        unique = {"uniqueName": f"{arm_id.subscription}-{arm_id.name.upper()}"}
        return {**body, "properties": {**without_nulls(body.get("properties")), "identifier": unique}}

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse to delete a gallery with image definitions."""
        check_empty(cloud, resource)


class Image(ResourceType):
    """An image definition: https://learn.microsoft.com/rest/api/compute/gallery-images."""

    type = "Microsoft.Compute/galleries/images"
    put_duration = "image.put"
    deletable_in_use = True
    FIXED = (
        "properties.identifier.publisher",
        "properties.identifier.offer",
        "properties.identifier.sku",
        "properties.osType",
        "properties.osState",
        "properties.hyperVGeneration",
        "properties.architecture",
        "properties.purchasePlan",
    )

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a valid and fixed identifier, OS and hardware; features can only change if allowUpdateImage is set."""
        location = required_location(body)
        for path in ("osType", "osState", "identifier.publisher", "identifier.offer", "identifier.sku"):
            required_value(body, f"properties.{path}", "galleryImage")
        check_one_of(value_at(body, "properties.osType"), ("Linux", "Windows"), "galleryImage.properties.osType")
        check_one_of(value_at(body, "properties.osState"), ("Generalized", "Specialized"), "galleryImage.properties.osState")
        check_one_of(value_at(body, "properties.hyperVGeneration"), ("V1", "V2"), "galleryImage.properties.hyperVGeneration")
        check_one_of(value_at(body, "properties.architecture"), ("x64", "Arm64"), "galleryImage.properties.architecture")
        check_unchanged(body, previous, self.FIXED, "galleryImage")
        if previous is None:
            check_count_limit(cloud, arm_id, location, self.type, DEFINITIONS)
            self._check_identifier(cloud, arm_id, body)
        else:
            self._check_features(body, previous)

    def _check_features(self, body: Json, previous: Resource) -> None:
        """Refuse a change of features: https://learn.microsoft.com/azure/virtual-machines/image-version#update-resources describes when
        they can change.
        """
        old, new = previous.properties.get("features") or [], value_at(body, "properties.features") or []
        if new != old and not value_at(body, "properties.allowUpdateImage"):
            raise property_change_not_allowed("galleryImage.properties.features", old, new)

    def _check_identifier(self, cloud: Cloud, arm_id: ArmId, body: Json) -> None:
        """Refuse a second definition of a gallery with the same publisher, offer and sku. The rule is published, the code is not."""
        identifier = _identifier(body["properties"])
        for one in cloud.list(str(arm_id.parent), self.type):
            if _identifier(one.properties) == identifier:
                message = f"Image definition '{one.id.name}' of the gallery has publisher, offer and sku '{'/'.join(identifier)}' already."
                raise conflict("Conflict", message, "galleryImage.properties.identifier")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults: generation V1 and x64, as in API versions before 2025-03-03."""
        return {**body, "properties": {"hyperVGeneration": "V1", "architecture": "x64", **without_nulls(body["properties"])}}

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse to delete a definition with versions."""
        check_empty(cloud, resource)


def _identifier(properties: Json) -> tuple[str, ...]:
    identifier = properties["identifier"]
    return tuple(str(identifier[part]).lower() for part in ("publisher", "offer", "sku"))
