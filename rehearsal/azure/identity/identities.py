"""Managed identities, their federated credentials, and the directory of deleted principals and roles.

https://learn.microsoft.com/rest/api/managedidentity/user-assigned-identities
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import required_location, required_value, without_nulls


class Directory:
    """Deleted principals and role ids of the model, in lower case; all others are assumed to exist."""

    def __init__(self) -> None:
        self.gone: set[str] = set()

    def add(self, name: str) -> None:
        """Record that a principal or role exists (again)."""
        self.gone.discard(name.lower())

    def remove(self, name: str) -> None:
        """Record that a principal or role was deleted."""
        self.gone.add(name.lower())

    def lacks(self, name: str) -> bool:
        """Return whether a principal or role was deleted."""
        return name.lower() in self.gone

    def dump(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"gone": sorted(self.gone)}

    def load(self, data: Mapping[str, Any]) -> None:
        """Restore the output of dump."""
        self.gone = set(data["gone"])


def directory_of(cloud: Cloud) -> Directory:
    """Return the directory of a model."""
    return cast("Directory", cloud.services.setdefault("directory", Directory()))


CREDENTIALS = 20
"""Federated credentials of one identity: https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations"""


class UserAssignedIdentity(ResourceType):
    """A user-assigned managed identity. Its principal and client ids follow from its id, so that a re-created identity has the same
    ones.
    """

    type = "Microsoft.ManagedIdentity/userAssignedIdentities"
    put_duration = "identity.put"
    has_provisioning_state = False
    deletable_in_use = True

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a location."""
        required_location(body)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add tenant, principal and client."""
        text = previous.id.text if previous else arm_id.text
        who = {"principalId": cloud.stable_uuid(text, "principal"), "clientId": cloud.stable_uuid(text, "client")}
        usual = {"isolationScope": "None", **without_nulls(body.get("properties"))}
        return {**body, "tags": body.get("tags") or {}, "properties": {**usual, "tenantId": cloud.tenant, **who}}

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Add its principal to the directory."""
        directory_of(cloud).add(resource.properties["principalId"])

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Record that its principal was deleted; as in Azure, its role assignments stay."""
        directory_of(cloud).remove(resource.properties["principalId"])


class FederatedCredential(ResourceType):
    """A federated identity credential: https://learn.microsoft.com/rest/api/managedidentity/federated-identity-credentials."""

    type = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    has_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require one audience; refuse more than 20 credentials of an identity, and two with the same issuer and subject."""
        issuer, subject, audiences = (
            required_value(body, f"properties.{part}", "parameters") for part in ("issuer", "subject", "audiences")
        )
        if len(audiences) != 1:
            raise invalid(f"A federated identity credential has one audience, not {len(audiences)}.", "audiences", "BadRequest")
        others = [one for one in cloud.list(str(arm_id.parent), self.type) if one.key != arm_id.key]
        if len(others) >= CREDENTIALS:
            message = f"The identity has {len(others)} federated identity credentials, of at most {CREDENTIALS}; delete one or use another."
            raise conflict("QuotaExceeded", message, arm_id.name)
        for one in others:
            if (one.properties["issuer"], one.properties["subject"]) == (issuer, subject):
                # Message from https://github.com/Azure/azure-workload-identity/issues/434
                message = (
                    "The combination of issuer and subject must be unique for the application. "
                    f"Issuer {issuer} and Subject: {subject} already exist."
                )
                raise AzureError(400, "InvalidFederatedIdentityCredentialValue", message, target=one.id.text)
