"""Versions of the images of OS disks: imageReference.exactVersion.

https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/get#imagereference
"""

from __future__ import annotations

import re

from rehearsal.azure.arm_id import parse
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.images.galleries import Image
from rehearsal.azure.images.image_versions import ImageVersion, latest_version
from rehearsal.azure.resource import Json, Resource, location_key
from rehearsal.azure.validation import value_at

_RELEASE = re.compile(r"(\d{2})[._]?(\d{2})")


def exact_version(cloud: Cloud, image: Json, location: str) -> str:
    """Return the version that an image reference names now in a location, empty for an image without versions (a managed image).

    The marketplace's catalog is not modelled: its latest version is assumed to be that of the month, in Canonical's form
    22.04.202601010 (https://learn.microsoft.com/azure/virtual-machines/linux/cli-ps-findimage).
    """
    text = str(image.get("id") or "")
    if not text:
        version = str(image.get("version") or ("latest" if image.get("sku") else ""))
        return version if version.lower() != "latest" else _version_of_month(cloud, str(image["sku"]))
    try:
        named = parse(text)
    except AzureError:
        return ""
    if named.type.lower() == ImageVersion.type.lower():
        return named.name
    newest = latest_version(cloud, text, location) if named.type.lower() == Image.type.lower() else None
    return newest.id.name if newest is not None else ""


def _version_of_month(cloud: Cloud, sku: str) -> str:
    release = _RELEASE.search(sku)
    major, minor = release.groups() if release else ("1", "0")
    return f"{major}.{minor}.{stamp(cloud.now)[:7].replace('-', '')}010"


def older_images(cloud: Cloud, resource: Resource) -> tuple[str, ...]:
    """Return the ids of the instances whose OS disk has another image version than the model's reference names now."""
    state = state_of(resource)
    newest = exact_version(cloud, state.models[state.model].image, resource.location)
    return tuple(str(one.id) for one in state.living() if newest and one.image != newest)


def with_exact_version(cloud: Cloud, storage: Json, body: Json, previous: Resource | None) -> Json:
    """Return a virtual machine's storageProfile with the version of the image from which it was created; body is the PUT's."""
    image = storage.get("imageReference")
    if not image:
        return storage
    known = value_at(previous.body, "properties.storageProfile.imageReference.exactVersion") if previous else None
    version = known or exact_version(cloud, image, location_key(body["location"]))
    return {**storage, "imageReference": {**image, "exactVersion": version}} if version else storage
