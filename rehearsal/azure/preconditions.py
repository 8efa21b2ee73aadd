"""Preconditions of every request: versions, names and locations, and the merge of a PATCH."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rehearsal.azure.arm_id import GROUP_TYPE, ArmId
from rehearsal.azure.clock import stamp
from rehearsal.azure.concurrent_operations import (
    ANY_DELETE,
    ANY_PUT,
    GROUP_DELETE,
    MACHINE_DELETE,
    MACHINE_PUT,
    NETWORK,
    SET_DELETE,
    SET_PUT,
    refusal,
)
from rehearsal.azure.errors import AzureError, conflict, invalid, not_found
from rehearsal.azure.resource import Json, Operation, Request, Resource, location_key

RETRY_AFTER = 10
"""Seconds in Retry-After while another operation ends; Azure publishes no figure."""


def etag(resource: Resource) -> str:
    """Return the resource's version as in a header and a body."""
    return _etag(f"{resource.key}/{resource.created}/{resource.version}")


@lru_cache(maxsize=16_384)
def _etag(text: str) -> str:
    return f'W/"{uuid.uuid5(uuid.NAMESPACE_URL, text)}"'


def system_data(resource: Resource) -> Json:
    """Return the creator and the times of a resource."""
    by = {"createdBy": resource.owner, "createdByType": "Application"}
    last = {"lastModifiedBy": resource.owner, "lastModifiedByType": "Application", "lastModifiedAt": stamp(resource.changed)}
    return {**by, "createdAt": stamp(resource.created), **last}


def being_deleted(arm_id: ArmId) -> AzureError:
    """Return the error for a change of a resource that is being deleted, or in it."""
    match arm_id.type.lower():
        case "microsoft.resources/resourcegroups":
            return refusal(GROUP_DELETE, ANY_PUT, arm_id.group, name=arm_id.group)
        case "microsoft.compute/virtualmachinescalesets":
            return refusal(SET_DELETE, SET_PUT, arm_id.name, words="Update Virtual Machine Scale Set", name=arm_id.name)
        case "microsoft.compute/virtualmachines":
            return refusal(MACHINE_DELETE, MACHINE_PUT, arm_id.name, words="Update VM", name=arm_id.name)
        case _:
            return refusal(ANY_DELETE, ANY_PUT, arm_id.text, name=arm_id.text)


def busy(arm_id: ArmId, operation: Operation) -> AzureError:
    """Return the error for a resource that an operation locks: in a network Azure's own one, otherwise that of
    https://github.com/cloudfoundry/bosh-azure-cpi-release/issues/179.
    """
    if arm_id.type.lower().startswith("microsoft.network/"):
        where = f"/subscriptions/{arm_id.subscription}/providers/Microsoft.Network/locations/{operation.location}/operations"
        return refusal(NETWORK, NETWORK, arm_id.text, uri=f"https://management.azure.com{where}/{operation.id}")
    detail = (
        f"Operation {operation.name} ({operation.id}) is updating resource {arm_id.text}. The call can be retried in {RETRY_AFTER} seconds."
    )
    inner = AzureError(429, "RetryableErrorDueToAnotherOperation", detail, target=arm_id.text)
    headers = {"Retry-After": str(RETRY_AFTER)}
    return AzureError(429, "RetryableError", "A retryable error occurred.", target=arm_id.text, details=(inner,), headers=headers)


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
