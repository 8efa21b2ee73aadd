"""Decides whether an image can be used where a machine is to run: a gallery version must be replicated there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.azure.arm_id import parse
from rehearsal.azure.errors import AzureError
from rehearsal.azure.images.galleries import Image
from rehearsal.azure.images.versions import ImageVersion, latest, replicated
from rehearsal.azure.resource import Json

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

MANAGED = "microsoft.compute/images"


def is_managed(image: Json) -> bool:
    """Whether an image reference names a managed image, of which a scale set takes fewer machines."""
    return bool(image.get("id")) and parse(str(image["id"])).type.lower() == MANAGED


def check_image(cloud: Cloud, image: Json, location: str) -> None:
    """AzureError where a gallery image does not exist or is not replicated to the location; other images are taken as existing."""
    text = str(image.get("id") or "")
    if not text:
        return
    kind = parse(text).type.lower()
    if kind == ImageVersion.type.lower():
        usable = cloud.find(text) is not None and replicated(cloud, text, location)
    elif kind == Image.type.lower():
        usable = latest(cloud, text, location) is not None
    else:
        return
    if not usable:
        message = (
            f"The gallery image {text} is not available in {location} region. Please contact image owner to replicate to this region, or "
            "change your requested region."
        )
        raise AzureError(404, "GalleryImageNotFound", message, target="imageReference")
