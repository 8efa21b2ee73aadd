"""Managed identities of a resource as a GET answers them.

https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/overview
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rehearsal.azure.resource import Json, Resource

if TYPE_CHECKING:
    from rehearsal.azure.store import Store


def identity_body(store: Store, key: str, identity: Json) -> Json:
    """Return an identity with the principals that Azure adds: its own, and those of the existing user-assigned ones."""
    result = dict(identity)
    kind = str(identity.get("type", "None"))
    if "SystemAssigned" in kind:
        result |= {"principalId": store.stable_uuid("principal", key), "tenantId": store.tenant}
    assigned = identity.get("userAssignedIdentities")
    if isinstance(assigned, Mapping):
        result["userAssignedIdentities"] = {one: _principal(store.find(one)) for one in assigned}
    return result


def _principal(identity: Resource | None) -> Json:
    inner = identity.properties if identity else {}
    return {name: inner[name] for name in ("principalId", "clientId") if name in inner}
