"""Blob services, containers, immutability policies and lifecycle rules of storage accounts. Blobs are not modelled.

https://learn.microsoft.com/rest/api/storagerp/blob-containers,
https://learn.microsoft.com/azure/storage/blobs/immutable-container-level-worm-policies
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.preconditions import etag
from rehearsal.azure.resource import Json, Request, Resource, Response
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.storage.accounts import BLOB_DEFAULTS, CONTAINER, invalid_values, policy_state
from rehearsal.azure.validation import check_one_of, required_value, value_at, without_nulls

MOST_DAYS = 146_000
"""https://learn.microsoft.com/azure/storage/blobs/immutable-time-based-retention-policy-overview"""
EXTENSIONS = 5
"""Extensions of a locked policy: https://learn.microsoft.com/azure/storage/blobs/immutable-container-level-worm-policies"""
RULES = 100
"""https://learn.microsoft.com/azure/storage/blobs/lifecycle-management-overview"""
DEFAULT = "default"


class BlobService(ResourceType):
    """The blob service of an account, which exists as long as the account."""

    type = "Microsoft.Storage/storageAccounts/blobServices"
    has_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require the name default."""
        _check_default(arm_id)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults and the account's SKU."""
        account = cloud.get(str(arm_id.parent))
        return {**body, "sku": account.body["sku"], "properties": {**BLOB_DEFAULTS, **without_nulls(body.get("properties"))}}

    def delete_response(self, cloud: Cloud, resource: Resource, request: Request) -> Response | None:
        """Set the service back to its defaults, as Pulumi's provider does. Azure has no DELETE for it."""
        return cloud.handle(Request("PUT", resource.id, body={}, principal=request.principal))


class Container(ResourceType):
    """A blob container."""

    type = CONTAINER
    has_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse public access that the account does not allow."""
        public = value_at(body, "properties.publicAccess")
        check_one_of(public, ("None", "Blob", "Container"), "publicAccess")
        account = cloud.get(arm_id.text.split("/blobServices/")[0])
        if public not in (None, "None") and not account.properties["allowBlobPublicAccess"]:
            raise conflict("PublicAccessNotPermitted", "Public access is not permitted on this storage account.", arm_id.text)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults: not leased, not deleted, not public."""
        properties = {
            "publicAccess": "None",
            "defaultEncryptionScope": "$account-encryption-key",
            "denyEncryptionScopeOverride": False,
            **without_nulls(body.get("properties")),
            "deleted": False,
            "remainingRetentionDays": 0,
            "leaseStatus": "Unlocked",
            "leaseState": "Available",
            "hasLegalHold": False,
            "lastModifiedTime": stamp(cloud.now),
        }
        return {**body, "properties": properties}

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete while its policy is locked, because the model assumes that it still contains blobs:
        https://github.com/MicrosoftDocs/feedback/issues/1844
        """
        if policy_state(cloud, resource) == "Locked":
            message = "The requested operation is not allowed as the container has a locked immutability policy."
            raise conflict("ContainerImmutabilityPolicyLocked", message, resource.id.text)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with its immutability policy."""
        policy = cloud.find(f"{resource.id.text}/immutabilityPolicies/{DEFAULT}")
        shown: Json = {"hasImmutabilityPolicy": policy is not None}
        if policy is not None:
            shown["immutabilityPolicy"] = {"etag": etag(policy), "properties": policy.properties}
        return {**resource.body, "etag": etag(resource), "properties": {**resource.properties, **shown}}


class ImmutabilityPolicy(ResourceType):
    """A container's retention. An unlocked one can grow and shrink; a locked one can only grow, five times."""

    type = "Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies"
    delete_returns_body = True
    has_provisioning_state = False

    def __init__(self) -> None:
        self.actions = {"lock": lock_policy, "extend": extend_policy}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require the name default and a retention; refuse a change of a locked policy."""
        _check_default(arm_id)
        if previous is not None and previous.properties["state"] == "Locked":
            raise _locked(previous)
        _check_days(required_value(body, "properties.immutabilityPeriodSinceCreationInDays", "parameters"))

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the state Unlocked."""
        return {**body, "properties": {"allowProtectedAppendWrites": False, **without_nulls(body["properties"]), "state": "Unlocked"}}

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Start with no extensions."""
        resource.state = 0

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse to delete a locked policy, which only its container deletes."""
        if resource.properties["state"] == "Locked":
            raise _locked(resource)

    def delete_response(self, cloud: Cloud, resource: Resource, request: Request) -> Response | None:
        """Return what a delete leaves: a policy of no days.

        https://learn.microsoft.com/rest/api/storagerp/blob-containers/delete-immutability-policy
        """
        cloud.delete(resource)
        properties = {**resource.properties, "immutabilityPeriodSinceCreationInDays": 0}
        return Response(200, {**resource.body, "etag": etag(resource), "properties": properties})

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with its ETag, which a lock or an extension must name."""
        return {**resource.body, "etag": etag(resource)}


class ManagementPolicy(ResourceType):
    """The lifecycle rules of an account: https://learn.microsoft.com/rest/api/storagerp/management-policies"""

    type = "Microsoft.Storage/storageAccounts/managementPolicies"
    has_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require the name default, and 1 to 100 rules with unique names and actions."""
        _check_default(arm_id)
        account = cloud.get(str(arm_id.parent))
        if account.body["kind"] not in ("StorageV2", "BlobStorage", "BlockBlobStorage"):
            raise conflict("FeatureNotSupportedForAccount", f"Lifecycle management is not supported for {account.body['kind']}.", "kind")
        rules = required_value(body, "properties.policy.rules", "properties")
        names = [required_value(rule, "name", "rules") for rule in rules]
        if not 1 <= len(rules) <= RULES or len(set(names)) < len(names):
            raise invalid_values("policy.rules")
        for rule in rules:
            if not value_at(rule, "definition.actions"):
                raise invalid_values("policy.rules.definition.actions")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add the time of the change."""
        return {**body, "properties": {**body["properties"], "lastModifiedTime": stamp(cloud.now)}}


def lock_policy(_cloud: Cloud, resource: Resource, _request: Request) -> Response:
    """Lock a policy permanently."""
    if resource.properties["state"] == "Locked":
        raise _locked(resource)
    resource.properties["state"] = "Locked"
    resource.version += 1
    return Response(200, {**resource.body, "etag": etag(resource)})


def extend_policy(_cloud: Cloud, resource: Resource, request: Request) -> Response:
    """Extend the retention of a locked policy; AzureError for an unlocked one, a shorter one, or a sixth time."""
    days = required_value(request.body or {}, "properties.immutabilityPeriodSinceCreationInDays", "parameters")
    _check_days(days)
    if resource.properties["state"] != "Locked":
        raise conflict("OperationNotAllowed", "Operation not allowed on immutability policy with current state.", resource.id.text)
    old = resource.properties["immutabilityPeriodSinceCreationInDays"]
    if days < old or resource.state >= EXTENSIONS:
        message = (
            f"A locked immutability policy only grows, at most {EXTENSIONS} times: it has {old} days after {resource.state} extensions, "
            f"and {days} days were asked for."
        )
        raise conflict("OperationNotAllowed", message, resource.id.text)
    resource.properties["immutabilityPeriodSinceCreationInDays"] = days
    resource.sent = {**resource.sent, "properties": {**resource.sent["properties"], "immutabilityPeriodSinceCreationInDays": days}}
    resource.state += 1
    resource.version += 1
    return Response(200, {**resource.body, "etag": etag(resource)})


def _locked(resource: Resource) -> AzureError:
    """Return the refusal to change a locked policy, with the sentence of https://github.com/Azure/azure-powershell/issues/26148; its
    code is not published.
    """
    message = "Operation not allowed on immutability policy with current state."
    return conflict("OperationNotAllowed", f"{message} The policy of {resource.id.names[2]} is locked.", resource.id.text)


def _check_days(days: Any) -> None:
    if not isinstance(days, int) or not 1 <= days <= MOST_DAYS:
        raise invalid_values("immutabilityPeriodSinceCreationInDays")


def _check_default(arm_id: ArmId) -> None:
    if arm_id.name.lower() != DEFAULT:
        raise invalid(f"The name of {arm_id.type} must be '{DEFAULT}', not '{arm_id.name}'.", arm_id.name, "InvalidResourceName")
