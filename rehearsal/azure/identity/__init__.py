"""Managed identities, role assignments and definitions, and management locks."""

from rehearsal.azure.identity.authorization import LockCheck, ManagementLock, RoleAssignment, RoleDefinition
from rehearsal.azure.identity.identities import Directory, FederatedCredential, UserAssignedIdentity, directory_of
from rehearsal.azure.resource_type import Kind

KINDS: tuple[Kind, ...] = (UserAssignedIdentity(), FederatedCredential(), RoleAssignment(), RoleDefinition(), ManagementLock())

__all__ = ["KINDS", "Directory", "LockCheck", "directory_of"]
