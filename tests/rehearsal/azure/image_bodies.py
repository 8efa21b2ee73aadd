"""Bodies of gallery resources for their tests, and a gallery with one image definition."""

from __future__ import annotations

from typing import Any

from plain_calls import GROUP, LOCATION, Calls

GALLERY = "Microsoft.Compute/galleries/pictures"
IMAGE = f"{GALLERY}/images/node"
SOURCE = f"{GROUP}/providers/Microsoft.Compute/images/captured"
TEMPLATE = "Microsoft.VirtualMachineImages/imageTemplates/build"
HOUR = 3600.0


def image(**changes: Any) -> dict[str, Any]:
    """Body of an image definition."""
    identifier = {"publisher": "p", "offer": "o", "sku": "node"}
    properties = {"osType": "Linux", "osState": "Generalized", "hyperVGeneration": "V2", "identifier": identifier, "features": []}
    return {"location": LOCATION, "properties": {**properties, **changes}}


def version(*regions: str | dict[str, Any], **profile: Any) -> dict[str, Any]:
    """Body of an image version with target regions."""
    targets = [{"name": one} if isinstance(one, str) else one for one in regions]
    return {
        "location": LOCATION,
        "properties": {"storageProfile": {"source": {"id": SOURCE}}, "publishingProfile": {"targetRegions": targets, **profile}},
    }


def template(**output: Any) -> dict[str, Any]:
    """Body of an image template that writes to the gallery."""
    distribute = {"type": "SharedImage", "runOutputName": "out", "galleryImageId": f"{GROUP}/providers/{IMAGE}", **output}
    source = {"type": "PlatformImage", "publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2204", "version": "latest"}
    return {"location": LOCATION, "identity": {"type": "None"}, "properties": {"source": source, "distribute": [distribute]}}


def at_version(name: str) -> str:
    return f"{GROUP}/providers/{IMAGE}/versions/{name}"


def calls_with_image() -> Calls:
    """Calls to a cloud with a gallery and an image definition in it."""
    made = Calls()
    made.put(GALLERY, {"location": LOCATION})
    made.put(IMAGE, image())
    return made
