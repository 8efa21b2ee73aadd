"""Managed identities, role assignments and definitions, and management locks."""

from rehearsal.azure.identity.authorization import LockCheck, ManagementLock, RoleAssignment, RoleDefinition
from rehearsal.azure.identity.identities import Directory, FederatedCredential, UserAssignedIdentity, directory_of
from rehearsal.azure.resource_type import ResourceType

RESOURCE_TYPES: tuple[ResourceType, ...] = (
    UserAssignedIdentity(),
    FederatedCredential(),
    RoleAssignment(),
    RoleDefinition(),
    ManagementLock(),
)

__all__ = ["RESOURCE_TYPES", "Directory", "LockCheck", "directory_of"]
