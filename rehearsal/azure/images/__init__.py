"""Image galleries with their image versions, and the image builder."""

from rehearsal.azure.images.galleries import Gallery, Image
from rehearsal.azure.images.image_templates import ImageTemplate, RunOutput
from rehearsal.azure.images.image_versions import ImageVersion, is_replicated, latest_version
from rehearsal.azure.resource_type import ResourceType

RESOURCE_TYPES: tuple[ResourceType, ...] = (Gallery(), Image(), ImageVersion(), ImageTemplate(), RunOutput())

__all__ = ["RESOURCE_TYPES", "is_replicated", "latest_version"]
