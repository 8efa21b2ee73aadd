"""Deleted vaults and secrets, and their purge.

https://learn.microsoft.com/azure/key-vault/general/soft-delete-overview,
https://learn.microsoft.com/rest/api/keyvault/keyvault/vaults/get-deleted
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Request, Resource, Response
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.vaults.secret_versions import SecretState

DAY = 86_400.0
AZURE = "Azure"
"""Owner of resources that Azure creates."""


@dataclass(slots=True)
class DeletedSecret:
    """A deleted secret: its name, its versions, and the times of its deletion and purge, in seconds since 1970."""

    name: str
    secret: SecretState
    deleted_at: float
    purge_at: float

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> DeletedSecret:
        """Return the secret from the output of asdict."""
        return cls(data["name"], SecretState.read(data["secret"]), data["deleted_at"], data["purge_at"])


@dataclass(slots=True)
class DeletedVaultState:
    """The id and body of a deleted vault, its secrets by name, and the secrets that were deleted before."""

    vault_id: str
    body: Json
    secrets: dict[str, SecretState] = field(default_factory=dict)
    deleted: dict[str, DeletedSecret] = field(default_factory=dict)


class DeletedVault(ResourceType):
    """A deleted vault, which only the deletion of a vault creates."""

    type = "Microsoft.KeyVault/locations/deletedVaults"

    def __init__(self) -> None:
        self.actions = {"purge": purge_vault}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a PUT."""
        raise AzureError(405, "MethodNotAllowed", f"{self.type} comes of deleting a vault, not of a request.")

    def delete_response(self, cloud: Cloud, resource: Resource, request: Request) -> Response | None:
        """Refuse a DELETE; a deleted vault is purged."""
        raise AzureError(405, "MethodNotAllowed", f"A deleted vault goes by POST {resource.id.text}/purge, or when its time is over.")

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return False: it only describes the former vault."""
        return False

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        """Purge the vault at the end of its retention."""
        if resource.created == args[0]:
            cloud.remove(resource)

    def load(self, data: Any) -> DeletedVaultState:
        secrets = {name: SecretState.read(one) for name, one in data["secrets"].items()}
        gone = {name: DeletedSecret.read(one) for name, one in data["deleted"].items()}
        return DeletedVaultState(data["vault_id"], data["body"], secrets, gone)


def add_deleted_vault(cloud: Cloud, vault: Resource) -> Resource:
    """Create the deleted vault of a vault that was deleted, and schedule its purge."""
    arm_id = parse(
        f"/subscriptions/{vault.id.subscription}/providers/Microsoft.KeyVault/locations/{vault.location}/deletedVaults/{vault.id.name}"
    )
    purge_at = cloud.now + vault.properties["softDeleteRetentionInDays"] * DAY
    properties = {
        "vaultId": vault.id.text,
        "location": vault.location,
        "deletionDate": stamp(cloud.now),
        "scheduledPurgeDate": stamp(purge_at),
        "tags": vault.body.get("tags") or {},
        "purgeProtectionEnabled": bool(vault.properties.get("enablePurgeProtection")),
    }
    rest = {key: value for key, value in vault.body.items() if key != "properties"}
    body = {**rest, "properties": {key: value for key, value in vault.properties.items() if key != "provisioningState"}}
    state = DeletedVaultState(vault.id.text, body, dict(vault.state.kept), dict(vault.state.deleted))
    deleted_vault = cloud.insert(arm_id, {"properties": properties}, AZURE, state=state)
    cloud.events.at(purge_at, deleted_vault.key, "purge", deleted_vault.created)
    return deleted_vault


def find_by_name(cloud: Cloud, resource_type: str, name: str) -> Resource | None:
    """Return the resource of a type with globally unique names."""
    return next((cloud.resources[key] for key in cloud.index.of_type(resource_type.lower()) if key.endswith(f"/{name.lower()}")), None)


def deleted_vault_named(cloud: Cloud, name: str) -> Resource | None:
    """Return the deleted vault with a name, in any location."""
    return find_by_name(cloud, DeletedVault.type, name)


def deleted_vault_with_id(cloud: Cloud, arm_id: ArmId) -> Resource | None:
    """Return the deleted vault whose vault had exactly this id."""
    deleted_vault = deleted_vault_named(cloud, arm_id.name)
    return deleted_vault if deleted_vault is not None and deleted_vault.state.vault_id.lower() == arm_id.key else None


def deleted_vaults(cloud: Cloud, subscription: str) -> Iterator[Resource]:
    """Return the deleted vaults of a subscription, in all regions."""
    return cloud.list(f"/subscriptions/{subscription}", DeletedVault.type)


def purge_vault(cloud: Cloud, resource: Resource, _request: Request) -> Response:
    """Purge a deleted vault; MethodNotAllowed (https://github.com/microsoft/AzureTRE/issues/1446) if it is protected."""
    if resource.properties["purgeProtectionEnabled"]:
        raise AzureError(405, "MethodNotAllowed", "Operation 'DeletedVaultPurge' is not allowed.", target=resource.id.text)
    cloud.remove(resource)
    return Response(200)
