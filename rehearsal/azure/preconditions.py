"""Preconditions of every request: versions, names and locations, and the merge of a PATCH."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import GROUP_TYPE, ArmId
from rehearsal.azure.clock import stamp
from rehearsal.azure.errors import AzureError, conflict, invalid, not_found
from rehearsal.azure.resource import Json, Request, Resource, location_key

RETRY_AFTER = 10
"""Seconds in Retry-After while another operation ends; Azure publishes no figure."""


def etag(resource: Resource) -> str:
    """Return the resource's version as in a header and a body."""
    return f'W/"{uuid.uuid5(uuid.NAMESPACE_URL, f"{resource.key}/{resource.created}/{resource.version}")}"'


def system_data(resource: Resource) -> Json:
    """Return the creator and the times of a resource."""
    return {"createdBy": resource.owner, "createdAt": stamp(resource.created), "lastModifiedAt": stamp(resource.changed)}


def being_deleted(arm_id: ArmId) -> AzureError:
    """Return the error for a change of a resource that is being deleted: https://github.com/Azure/azure-cli/issues/21121 shows that of a
    group."""
    if arm_id.type == GROUP_TYPE:
        message = f"The resource group '{arm_id.group}' is in deprovisioning state and cannot perform this operation."
        return conflict("ResourceGroupBeingDeleted", message, arm_id.group)
    return conflict("ResourceBeingDeleted", f"{arm_id.text} is being deleted.", arm_id.text)


def reference_being_deleted(arm_id: ArmId, target: str) -> AzureError:
    """Return the error for a reference to a resource that is being deleted, in the form of
    https://github.com/hashicorp/terraform/issues/7153."""
    message = f"Cannot proceed with operation because resource {target} used by resource {arm_id.text} is not in Succeeded state."
    detail = AzureError(429, "ReferencedResourceNotProvisioned", f"{message} Resource is in Deleting state.", target=target)
    summary = "A retryable error occurred."
    return AzureError(429, "RetryableError", summary, target=target, details=(detail,), headers={"Retry-After": str(RETRY_AFTER)})


def resource_not_found(arm_id: ArmId) -> AzureError:
    if arm_id.type == GROUP_TYPE:
        return AzureError(404, "ResourceGroupNotFound", f"Resource group '{arm_id.group}' could not be found.", target=arm_id.group)
    return not_found(arm_id.type, "/".join(arm_id.names), arm_id.group)


def check_etag(request: Request, resource: Resource | None) -> None:
    """Raise AzureError if If-Match names another version, or If-None-Match finds an existing one."""
    if request.if_none_match == "*" and resource is not None:
        raise AzureError(412, "PreconditionFailed", f"{request.id.text} exists already, and If-None-Match: * asks that it does not.")
    if request.if_match and request.if_match != "*" and (resource is None or etag(resource).strip('W/"') != request.if_match.strip('W/"')):
        found = etag(resource) if resource else "nothing"
        raise AzureError(412, "PreconditionFailed", f"If-Match {request.if_match} does not match {found}; read {request.id.text} again.")


def check_identity(arm_id: ArmId, body: Json, previous: Resource | None) -> None:
    """Raise AzureError if a body names another resource than the path, or another location than the resource's."""
    name = body.get("name")
    if name is not None and str(name).lower() not in (arm_id.name.lower(), "/".join(arm_id.names).lower()):
        raise invalid(f"The name '{name}' in the body differs from '{arm_id.name}' in the path.", "name", "InvalidRequestContent")
    if previous is None or "location" not in body:
        return
    location = location_key(body["location"])
    if location == previous.location:
        return
    if arm_id.type == GROUP_TYPE:
        # The sentence of https://github.com/Azure/azure-cli/issues/22242
        message = f"Invalid resource group location '{location}'. The Resource group already exists in location '{previous.location}'."
    else:
        message = (
            f"The resource '{arm_id.name}' already exists in location '{previous.location}'. A resource with the same name cannot be "
            f"created in location '{location}'."
        )
    raise conflict("InvalidResourceGroupLocation" if arm_id.type == GROUP_TYPE else "InvalidResourceLocation", message, "location")


def merge_patch(old: Any, patch: Any) -> Any:
    """Return a JSON merge patch with names in any case: https://www.rfc-editor.org/rfc/rfc7396."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(old) if isinstance(old, Mapping) else {}
    written = {key.lower(): key for key in result}
    for key, value in patch.items():
        known = key if key in result else written.get(key.lower(), key)
        if value is None:
            result.pop(known, None)
        else:
            result[known] = merge_patch(result.get(known), value)
    return result
