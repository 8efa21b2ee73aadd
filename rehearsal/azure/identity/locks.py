"""Decides what management locks forbid: on a subscription, a group or a resource, for itself and all below it.

https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources
"""

from __future__ import annotations

from collections.abc import Mapping

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import conflict
from rehearsal.azure.resource import Json, Request, Resource
from rehearsal.azure.resource_type import Kind
from rehearsal.azure.validation import needed, one_of

NO_DELETE, READ_ONLY = "CanNotDelete", "ReadOnly"


class ManagementLock(Kind):
    """A management lock; what it forbids the gate turns away."""

    type = "Microsoft.Authorization/locks"
    tells_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """One of two levels."""
        one_of(needed(body, "properties.level", "lock"), (NO_DELETE, READ_ONLY), "level")


class LockGate:
    """Turns requests away that a lock forbids. A deletion from within, as of a group that is emptied, was asked for at its start."""

    def admit(self, cloud: Cloud, request: Request, kind: Kind, /) -> Mapping[str, str]:
        """No headers; AzureError ScopeLocked."""
        if request.method in ("GET", "HEAD") or request.action == "list" or kind.type == ManagementLock.type:
            return {}
        locks = [cloud.resources[key] for key in cloud.index.of_type(ManagementLock.type.lower())]
        deleting = request.method == "DELETE"
        locked = [one.id.scope for one in locks if _forbids(one, request.id.key, deleting)]
        if locked:
            verb = {"DELETE": "delete", "POST": "action"}.get(request.method, "write")
            # The sentence of https://github.com/Azure-Player/azure.datafactory.devops/issues/183
            message = (
                f"The scope '{request.id.text}' cannot perform {verb} operation because following scope(s) are locked: "
                f"'{', '.join(dict.fromkeys(locked))}'. Please remove the lock and try again."
            )
            raise conflict("ScopeLocked", message, request.id.text)
        return {}


def _forbids(lock: Resource, key: str, deleting: bool) -> bool:
    """Whether a lock lies on what is asked about or above it, or, where that is to be deleted with all in it, below it."""
    scope = lock.id.scope.lower()
    above = key == scope or key.startswith(f"{scope}/")
    if deleting:
        return above or scope.startswith(f"{key}/")
    return above and lock.properties["level"] == READ_ONLY
