"""Remembers which principals and custom roles existed and are gone, so that what still names them can be refused as Azure does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.durations import seconds
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.resource_type import Kind
from rehearsal.azure.validation import needed, required_location, said


class Directory:
    """Principals and role ids, in lower case, that were the model's and are no longer; all others are taken as existing."""

    def __init__(self) -> None:
        self.gone: set[str] = set()

    def add(self, name: str) -> None:
        """One that is there (again)."""
        self.gone.discard(name.lower())

    def remove(self, name: str) -> None:
        """One that is no longer."""
        self.gone.add(name.lower())

    def lacks(self, name: str) -> bool:
        """Whether it is known to be gone."""
        return name.lower() in self.gone

    def dump(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"gone": sorted(self.gone)}

    def load(self, data: Mapping[str, Any]) -> None:
        """Take up what dump told of."""
        self.gone = set(data["gone"])


def directory_of(cloud: Cloud) -> Directory:
    """The cloud's directory."""
    return cast("Directory", cloud.services.setdefault("directory", Directory()))


NAME = re.compile(r"[a-zA-Z0-9][\w-]{2,127}")
"""https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules#microsoftmanagedidentity"""
CREDENTIAL_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{2,119}")
CREDENTIALS = 20
"""Of one identity: https://learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations"""


class UserAssignedIdentity(Kind):
    """A user-assigned managed identity; its principal and client follow from its id, so that the same one is always the same."""

    type = "Microsoft.ManagedIdentity/userAssignedIdentities"
    tells_provisioning_state = False
    deleted_though_in_use = True

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """A name of 3 to 128 characters, and a location."""
        if not NAME.fullmatch(arm_id.name):
            raise invalid(f"The identity name '{arm_id.name}' must match {NAME.pattern}.", "resourceName", "InvalidResourceName")
        required_location(body)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Tenant, principal and client."""
        text = previous.id.text if previous else arm_id.text
        who = {"principalId": cloud.stable_uuid(text, "principal"), "clientId": cloud.stable_uuid(text, "client")}
        return {**body, "properties": {**said(body.get("properties")), "tenantId": cloud.tenant, **who}}

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Its principal is in the directory."""
        directory_of(cloud).add(resource.properties["principalId"])

    def seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float:
        """Seconds that a new principal takes."""
        return seconds(cloud, "identity.put", resource.key, resource.version)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Its principal is not; role assignments stay and name nobody, as in Azure."""
        directory_of(cloud).remove(resource.properties["principalId"])


class FederatedCredential(Kind):
    """A federated identity credential: https://learn.microsoft.com/rest/api/managedidentity/federated-identity-credentials."""

    type = "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials"
    tells_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """One audience; at most 20 on an identity, no two with the same issuer and subject."""
        if not CREDENTIAL_NAME.fullmatch(arm_id.name):
            raise invalid(f"The credential name '{arm_id.name}' must match {CREDENTIAL_NAME.pattern}.", "name", "InvalidResourceName")
        issuer, subject, audiences = (needed(body, f"properties.{part}", "parameters") for part in ("issuer", "subject", "audiences"))
        if len(audiences) != 1:
            raise invalid(f"A federated identity credential has one audience, not {len(audiences)}.", "audiences", "BadRequest")
        others = [one for one in cloud.list(str(arm_id.parent), self.type) if one.key != arm_id.key]
        if len(others) >= CREDENTIALS:
            message = f"The identity has {len(others)} federated identity credentials, of at most {CREDENTIALS}; delete one or use another."
            raise conflict("QuotaExceeded", message, arm_id.name)
        for one in others:
            if (one.properties["issuer"], one.properties["subject"]) == (issuer, subject):
                # The sentence of https://github.com/Azure/azure-workload-identity/issues/434
                message = (
                    "The combination of issuer and subject must be unique for the application. "
                    f"Issuer {issuer} and Subject: {subject} already exist."
                )
                raise AzureError(400, "InvalidFederatedIdentityCredentialValue", message, target=one.id.text)
