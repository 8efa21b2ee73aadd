"""Managed identities, roles and locks: who may do what to which resource."""

from rehearsal.azure.identity.directory import Directory, directory_of
from rehearsal.azure.identity.identities import FederatedCredential, UserAssignedIdentity
from rehearsal.azure.identity.locks import LockGate, ManagementLock
from rehearsal.azure.identity.roles import RoleAssignment, RoleDefinition
from rehearsal.azure.resource_type import Kind

KINDS: tuple[Kind, ...] = (UserAssignedIdentity(), FederatedCredential(), RoleAssignment(), RoleDefinition(), ManagementLock())

__all__ = ["KINDS", "Directory", "LockGate", "directory_of"]
