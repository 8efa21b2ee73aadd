"""Image galleries with their image versions, and the image builder."""

from rehearsal.azure.images.galleries import Gallery, Image
from rehearsal.azure.images.image_templates import ImageTemplate, RunOutput
from rehearsal.azure.images.image_versions import ImageVersion, is_replicated, latest_version
from rehearsal.azure.resource_type import Kind

KINDS: tuple[Kind, ...] = (Gallery(), Image(), ImageVersion(), ImageTemplate(), RunOutput())

__all__ = ["KINDS", "is_replicated", "latest_version"]
