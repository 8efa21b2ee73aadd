"""Storage accounts, their blob containers, and the policies that prevent deletes."""

from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.storage.accounts import StorageAccount
from rehearsal.azure.storage.blobs import BlobService, Container, ImmutabilityPolicy, ManagementPolicy

RESOURCE_TYPES: tuple[ResourceType, ...] = (StorageAccount(), BlobService(), Container(), ImmutabilityPolicy(), ManagementPolicy())

__all__ = ["RESOURCE_TYPES"]
