"""Image versions: their target regions, replicas, and the time from which a region can use them.

https://learn.microsoft.com/rest/api/compute/gallery-image-versions and
https://learn.microsoft.com/azure/virtual-machines/azure-compute-gallery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import conflict, invalid, property_change_not_allowed
from rehearsal.azure.images.galleries import VERSIONS, check_count_limit
from rehearsal.azure.resource import Json, Resource, location_key
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.validation import check_one_of, check_unchanged, required_location, required_value, value_at, without_nulls

REPLICAS = 100
"""Replicas of a version in one region: https://learn.microsoft.com/azure/virtual-machines/azure-compute-gallery#limits"""
STORAGE = ("Standard_LRS", "Standard_ZRS", "Premium_LRS", "PremiumV2_LRS")
HIGHEST = 2**31 - 1
"""Each part of a version is a 32-bit integer: https://learn.microsoft.com/azure/virtual-machines/shared-image-galleries#image-versions"""


@dataclass(slots=True)
class Replication:
    """Start and end of the copies of a version by region in lower case, in seconds since 1970."""

    regions: dict[str, tuple[float, float]]


def is_replicated(cloud: Cloud, version_id: str, location: str) -> bool:
    """Return whether a region can use an image version now; AzureError ResourceNotFound if the version does not exist."""
    copy = cloud.get(version_id).state.regions.get(location_key(location))
    return copy is not None and copy[1] <= cloud.now


def latest_version(cloud: Cloud, image_id: str, location: str) -> Resource | None:
    """Return the highest version of an image definition that is replicated to a region and not excluded from "latest"; None without one."""
    region = location_key(location)
    versions = (one for one in cloud.list(image_id, ImageVersion.type) if is_replicated(cloud, one.id.text, region))
    return max(
        (one for one in versions if not _excluded_from_latest(one, region)), key=lambda one: version_numbers(one.id.name), default=None
    )


def version_numbers(name: str) -> tuple[int, int, int]:
    """Return major, minor and patch of a version's name; AzureError InvalidParameter."""
    parts = name.split(".")
    if len(parts) == 3 and all(part.isascii() and part.isdigit() and int(part) <= HIGHEST for part in parts):
        return int(parts[0]), int(parts[1]), int(parts[2])
    message = (
        f"The gallery image version name '{name}' is invalid; it has the form MajorVersion.MinorVersion.Patch, each from 0 to {HIGHEST}."
    )
    raise invalid(message, "galleryImageVersionName")


UNKNOWN_GB = 30
"""Size of a disk whose source is not modelled, in GB."""


class ImageVersion(ResourceType):
    """An image version."""

    type = "Microsoft.Compute/galleries/images/versions"
    delete_duration = "image.put"
    deletable_in_use = True

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a numeric name, a fixed source, and target regions that include the home region, with at most 100 replicas each."""
        location = required_location(body)
        version_numbers(arm_id.name)
        required_value(body, "properties.storageProfile", "galleryImageVersion")
        source = value_at(body, "properties.storageProfile.source") or value_at(body, "properties.storageProfile.osDiskImage.source")
        if not source:
            raise invalid("Required parameter 'galleryImageVersion.properties.storageProfile.source' is missing (null).", "source")
        paths = ("properties.storageProfile.source", "properties.publishingProfile.replicationMode")
        check_unchanged(body, previous, paths, "galleryImageVersion")
        if previous is None:
            check_count_limit(cloud, arm_id, location, self.type, VERSIONS)
        _check_targets(body, location)
        _end_of_life(body)
        if previous is not None and not value_at(previous.body, "properties.safetyProfile.allowDeletionOfReplicatedLocations"):
            removed = previous.state.regions.keys() - _targets(body, location).keys()
            if removed:
                raise property_change_not_allowed("galleryImageVersion.properties.publishingProfile.targetRegions", sorted(removed), [])

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults: the home region, one replica on Standard_LRS; the publication date is that of the first PUT."""
        properties = body["properties"]
        sent = without_nulls(properties.get("publishingProfile"))
        published = value_at(previous.body, "properties.publishingProfile.publishedDate") if previous else stamp(cloud.now)
        defaults = {"replicaCount": 1, "excludeFromLatest": False, "storageAccountType": "Standard_LRS", "replicationMode": "Full"}
        profile = {**defaults, "targetRegions": list(_targets(body, required_location(body)).values()), **sent, "publishedDate": published}
        profile["targetRegions"] = [_target(one, profile) for one in profile["targetRegions"]]
        safety = {
            "reportedForPolicyViolation": False,
            "allowDeletionOfReplicatedLocations": True,
            "policyViolations": [],
            **without_nulls(properties.get("safetyProfile")),
        }
        storage = _storage_profile(cloud, properties["storageProfile"])
        return {**body, "properties": {**properties, "publishingProfile": profile, "safetyProfile": safety, "storageProfile": storage}}

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Start a copy to each new region, and forget regions that are no longer named."""
        before = resource.state.regions if resource.state else {}
        regions = _targets(resource.body, resource.location)
        resource.state = Replication({name: before.get(name) or self._copy(cloud, resource, name) for name in regions})

    def _copy(self, cloud: Cloud, resource: Resource, region: str) -> tuple[float, float]:
        return (cloud.now, cloud.now + operation_seconds(cloud, "image.replicate", resource.key, region, resource.version))

    def put_seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float:
        """Return the time until the last copy ends; without a copy, the duration of a small change."""
        last: float = max(end for _, end in resource.state.regions.values())
        return max(last - cloud.now, operation_seconds(cloud, "image.put", resource.key, resource.version))

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete before the end of life if the safety profile blocks it."""
        ends = _end_of_life(resource.body)
        if not value_at(resource.body, "properties.safetyProfile.blockDeletionBeforeEndOfLife") or ends is None:
            return
        if ends.timestamp() > cloud.now:
            message = f"Image version {resource.id.text} is kept until {ends.isoformat()}: blockDeletionBeforeEndOfLife is set."
            raise conflict("OperationNotAllowed", message, "galleryImageVersion.properties.safetyProfile.blockDeletionBeforeEndOfLife")

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return False: a version is a copy, and its source can be deleted."""
        return False

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body, with the replication status if `$expand=ReplicationStatus` requests it."""
        if query.get("$expand", "").lower() != "replicationstatus":
            return resource.body
        return {**resource.body, "properties": {**resource.properties, "replicationStatus": _status(cloud, resource)}}

    def dump(self, state: Any) -> Any:
        return state.regions

    def load(self, data: Any) -> Replication:
        return Replication({name: (begin, end) for name, (begin, end) in data.items()})


def _storage_profile(cloud: Cloud, sent: Json) -> Json:
    """Return the disks of a version with their sizes: those of source disks that exist, and 30 GB for others, as most Linux images have.

    https://learn.microsoft.com/rest/api/compute/gallery-image-versions/get#galleryosdiskimage
    """
    shown = {**sent, "osDiskImage": {"hostCaching": "ReadWrite", **(sent.get("osDiskImage") or {})}}
    shown["osDiskImage"]["sizeInGB"] = _size(cloud, shown["osDiskImage"])
    if sent.get("dataDiskImages"):
        shown["dataDiskImages"] = [{**one, "sizeInGB": _size(cloud, one)} for one in sent["dataDiskImages"]]
    return shown


def _size(cloud: Cloud, image: Json) -> int:
    source = image.get("source") or {}
    disk = cloud.find(str(source.get("id") or ""))
    return int(disk.properties.get("diskSizeGB") or UNKNOWN_GB) if disk is not None else UNKNOWN_GB


def _end_of_life(body: Json) -> datetime | None:
    """Return the end of a version's life, by default in UTC; AzureError InvalidParameter for an invalid time."""
    text = value_at(body, "properties.publishingProfile.endOfLifeDate")
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError as error:
        where = "galleryImageVersion.properties.publishingProfile.endOfLifeDate"
        raise invalid(f"The value '{text}' of parameter {where} is no date and time.", where) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _targets(body: Json, location: str) -> dict[str, Json]:
    """Return the target regions by region; the home region if none are named."""
    named = value_at(body, "properties.publishingProfile.targetRegions") or [{"name": location}]
    return {location_key(one["name"]): one for one in named}


def _target(region: Json, profile: Json) -> Json:
    return {"regionalReplicaCount": profile["replicaCount"], "storageAccountType": profile["storageAccountType"], **without_nulls(region)}


def _check_targets(body: Json, location: str) -> None:
    where = "galleryImageVersion.properties.publishingProfile"
    named = value_at(body, "properties.publishingProfile.targetRegions") or [{"name": location}]
    regions = [location_key(required_value(one, "name", f"{where}.targetRegions")) for one in named]
    if len(set(regions)) < len(regions):
        raise invalid(f"Parameter '{where}.targetRegions' names a region twice: {', '.join(regions)}.", f"{where}.targetRegions")
    if location not in regions:
        # Message from https://github.com/hashicorp/packer/issues/8895
        shown = ", ".join(regions)
        message = f"Gallery image version publishing profile regions '{shown}' must contain the location of image version '{location}'."
        raise invalid(message, f"{where}.targetRegions")
    for one in ({"regionalReplicaCount": value_at(body, "properties.publishingProfile.replicaCount")}, *named):
        count = one.get("regionalReplicaCount")
        check_one_of(one.get("storageAccountType"), STORAGE, f"{where}.targetRegions.storageAccountType")
        if count is not None and not 1 <= count <= REPLICAS:
            message = f"The value '{count}' of parameter {where}.targetRegions.regionalReplicaCount is out of range 1 to {REPLICAS}."
            raise invalid(message, f"{where}.targetRegions.regionalReplicaCount")


def _excluded_from_latest(version: Resource, region: str) -> bool:
    profile = version.properties["publishingProfile"]
    own = _targets(version.body, version.location)[region].get("excludeFromLatest")
    return bool(profile["excludeFromLatest"] or own)


def _status(cloud: Cloud, resource: Resource) -> Json:
    """https://learn.microsoft.com/rest/api/compute/gallery-image-versions/get#replicationstatus"""
    summary = [_region_status(cloud.now, name, begin, end) for name, (begin, end) in resource.state.regions.items()]
    whole = all(one["state"] == "Completed" for one in summary)
    return {"aggregatedState": "Completed" if whole else "InProgress", "summary": summary}


def _region_status(now: float, region: str, begin: float, end: float) -> Json:
    if end <= now:
        return {"region": region, "state": "Completed", "details": "", "progress": 100}
    return {"region": region, "state": "Replicating", "details": "", "progress": int(100 * (now - begin) / (end - begin))}
