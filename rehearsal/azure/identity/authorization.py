"""Role definitions, role assignments, and management locks.

https://learn.microsoft.com/rest/api/authorization/role-assignments,
https://learn.microsoft.com/azure/role-based-access-control/troubleshooting,
https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.identity.identities import directory_of
from rehearsal.azure.resource import Json, Request, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import check_one_of, required_value

PRINCIPAL_TYPES = ("User", "Group", "ServicePrincipal", "ForeignGroup", "Device")
ASSIGNMENTS = 4_000
"""Role assignments in a subscription: https://learn.microsoft.com/azure/role-based-access-control/troubleshoot-limits"""


class RoleAssignment(ResourceType):
    """A role assignment on the scope in its id; it is deleted with the scope."""

    type = "Microsoft.Authorization/roleAssignments"
    put_duration = "role.put"
    has_provisioning_state = False
    delete_returns_body = True

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a role and a principal that was not deleted; refuse a second assignment of the same, and a change of an existing one."""
        if not _is_uuid(arm_id.name):
            raise invalid(
                f"The role assignment ID '{arm_id.name}' is not valid. The role assignment ID must be a GUID.",
                None,
                "InvalidRoleAssignmentId",
            )
        role = str(required_value(body, "properties.roleDefinitionId", "roleAssignment"))
        principal = str(required_value(body, "properties.principalId", "roleAssignment"))
        check_one_of(body["properties"].get("principalType"), PRINCIPAL_TYPES, "principalType")
        if not _is_uuid(principal):
            raise invalid("A valid principal ID must be provided for role assignment.", "principalId", "InvalidPrincipalId")
        if directory_of(cloud).lacks(principal):
            raise _principal_not_found(cloud, principal)
        if previous is not None:
            _check_same(previous, role, principal)
            return
        for one in self._alike(cloud, arm_id, role, principal):
            message = f"The role assignment already exists. The ID of the conflicting role assignment is {one.id.name.replace('-', '')}."
            raise conflict("RoleAssignmentExists", message)
        count = sum(1 for _ in cloud.list(f"/subscriptions/{arm_id.subscription}", self.type))
        if count >= ASSIGNMENTS:
            message = f"No more role assignments can be created in this subscription (role assignments count {count} limit {ASSIGNMENTS})."
            raise conflict("RoleAssignmentLimitExceeded", message)

    def _alike(self, cloud: Cloud, arm_id: ArmId, role: str, principal: str) -> list[Resource]:
        always_global = (cloud.resources[key] for key in cloud.index.of_type(self.type.lower()))
        requested = (arm_id.scope.lower(), _role_name(role), principal.lower())
        return [one for one in always_global if _given(one) == requested]

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add its scope and times."""
        made = previous.properties["createdOn"] if previous else stamp(cloud.now)
        result = {"principalType": "User", **body["properties"], "scope": arm_id.scope, "createdOn": made, "updatedOn": stamp(cloud.now)}
        return {**body, "properties": result}

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return whether it prevents a delete: of a custom role only."""
        return target.id.type.lower() == RoleDefinition.type.lower()

    def missing_reference_error(self, arm_id: ArmId, target: str) -> AzureError:
        """Return the refusal of a deleted role, or of a missing scope."""
        if "/roledefinitions/" in target.lower():
            message = f"The specified role definition with ID '{target.rpartition('/')[2].replace('-', '')}' does not exist."
            return AzureError(404, "RoleDefinitionDoesNotExist", message, target=target)
        return super().missing_reference_error(arm_id, target)


class RoleDefinition(ResourceType):
    """A custom role: https://learn.microsoft.com/azure/role-based-access-control/custom-roles"""

    type = "Microsoft.Authorization/roleDefinitions"
    has_provisioning_state = False
    in_use_code = "RoleDefinitionHasAssignments"

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a unique name and at least one assignable scope."""
        name = str(required_value(body, "properties.roleName", "roleDefinition"))
        if not required_value(body, "properties.assignableScopes", "roleDefinition"):
            raise invalid("A role definition must have at least one assignable scope.", "assignableScopes", "RoleDefinitionScopeMissing")
        for one in (cloud.resources[key] for key in cloud.index.of_type(self.type.lower())):
            if one.id.name.lower() != arm_id.name.lower() and one.properties["roleName"].lower() == name.lower():
                message = f"A custom role with the same name already exists in this directory. Use a different name: '{name}'."
                raise conflict("RoleDefinitionWithSameNameExists", message, "roleName")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the role's type and times."""
        made = previous.properties["createdOn"] if previous else stamp(cloud.now)
        result = {"type": "CustomRole", **body["properties"], "createdOn": made, "updatedOn": stamp(cloud.now)}
        return {**body, "properties": result}

    def is_built_in(self, cloud: Cloud, arm_id: ArmId) -> bool:
        """Return whether a role without a resource exists: built-in roles and those of other directories do, a deleted custom role does
        not.
        """
        return not directory_of(cloud).lacks(arm_id.name)

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Add the role to the directory."""
        directory_of(cloud).add(resource.id.name)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Record that the role was deleted."""
        directory_of(cloud).remove(resource.id.name)

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return False: its assignable scopes prevent no delete."""
        return False

    def in_use_error(self, resource: Resource, by: Any) -> AzureError:
        """Return the refusal to delete an assigned role."""
        message = f"There are existing role assignments referencing role (code: {self.in_use_code}); remove them first: {min(by)}."
        return conflict(self.in_use_code, message, resource.id.text)


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _role_name(role: str) -> str:
    return role.lower().rpartition("/")[2]


def _given(assignment: Resource) -> tuple[str, str, str]:
    properties = assignment.properties
    return assignment.id.scope.lower(), _role_name(properties["roleDefinitionId"]), properties["principalId"].lower()


def _check_same(previous: Resource, role: str, principal: str) -> None:
    """https://learn.microsoft.com/azure/role-based-access-control/troubleshooting#symptom---arm-template-role-assignment-returns-badrequest-status"""
    if _given(previous)[1:] != (_role_name(role), principal.lower()):
        message = "Tenant ID, application ID, principal ID, and scope are not allowed to be updated."
        raise AzureError(400, "RoleAssignmentUpdateNotPermitted", message)


def _principal_not_found(cloud: Cloud, principal: str) -> AzureError:
    """Return the refusal of a deleted principal, with the sentence of https://github.com/Azure/HubAndSpokeResearchEnclave/issues/50"""
    message = (
        f"Principal {principal.replace('-', '')} does not exist in the directory {cloud.tenant}. Check that you have the correct principal "
        "ID. If you are creating this principal and then immediately assigning a role, this error might be related to a replication delay. "
        "In this case, set the role assignment principalType property to a value, such as ServicePrincipal, User, or Group.  "
        "See https://aka.ms/docs-principaltype"
    )
    return AzureError(400, "PrincipalNotFound", message)


NO_DELETE, READ_ONLY = "CanNotDelete", "ReadOnly"


class ManagementLock(ResourceType):
    """A management lock; LockCheck refuses the requests that it forbids."""

    type = "Microsoft.Authorization/locks"
    has_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse an unknown level."""
        check_one_of(required_value(body, "properties.level", "lock"), (NO_DELETE, READ_ONLY), "level")


class LockCheck:
    """Refusal of requests that a lock forbids. Deletes within a group's deletion were checked at its start."""

    def admit(self, cloud: Cloud, request: Request, kind: ResourceType, /) -> Mapping[str, str]:
        """Return no headers; AzureError ScopeLocked."""
        if request.method in ("GET", "HEAD") or request.action == "list" or kind.type == ManagementLock.type:
            return {}
        locks = [cloud.resources[key] for key in cloud.index.of_type(ManagementLock.type.lower())]
        deleting = request.method == "DELETE"
        locked = [one.id.scope for one in locks if _forbids(one, request.id.key, deleting)]
        if locked:
            verb = {"DELETE": "delete", "POST": "action"}.get(request.method, "write")
            # Message from https://github.com/Azure-Player/azure.datafactory.devops/issues/183
            message = (
                f"The scope '{request.id.text}' cannot perform {verb} operation because following scope(s) are locked: "
                f"'{', '.join(dict.fromkeys(locked))}'. Please remove the lock and try again."
            )
            raise conflict("ScopeLocked", message, request.id.text)
        return {}


def _forbids(lock: Resource, key: str, deleting: bool) -> bool:
    """Return whether a lock forbids a request: a lock on the resource or above it, or for a delete also one below it."""
    scope = lock.id.scope.lower()
    above = key == scope or key.startswith(f"{scope}/")
    if deleting:
        return above or scope.startswith(f"{key}/")
    return above and lock.properties["level"] == READ_ONLY
