"""Secrets in Azure Resource Manager: https://learn.microsoft.com/rest/api/keyvault/keyvault/secrets.

Reading their values is for the vault itself (data_plane); both see the same secrets.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.validation import required_value, without_nulls
from rehearsal.azure.vaults.secret_versions import SecretState, settable_attributes
from rehearsal.azure.vaults.soft_delete import DAY, DeletedSecret

NAME = re.compile(r"[0-9a-zA-Z-]{1,127}")
VALUE_BYTES = 25_000
TAGS = 15
"""https://learn.microsoft.com/azure/key-vault/secrets/about-secrets"""


class VaultError(AzureError):
    """A refusal of a vault, with an inner code."""

    def __init__(self, status: int, code: str, message: str, inner: str) -> None:
        super().__init__(status, code, message)
        self.inner = inner

    def body(self) -> dict[str, Any]:
        """Return the error object with its inner error:
        https://learn.microsoft.com/rest/api/keyvault/secrets/get-secret/get-secret#error
        """
        return {**super().body(), "innererror": {"code": self.inner}}


class Secret(ResourceType):
    """A secret of a vault in Azure Resource Manager. Its saved state contains the values, which the caller must protect."""

    type = "Microsoft.KeyVault/vaults/secrets"
    has_provisioning_state = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a value, and a name that no deleted secret has."""
        vault = cloud.get(str(arm_id.parent))
        value = str(required_value(body, "properties.value", "secret"))
        check_secret(arm_id.name, value, body.get("tags") or {})
        if previous is None:
            check_free(vault, arm_id.name)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Return the body without the value."""
        written = _written(cloud, arm_id, body, previous.state if previous else None).body
        vault = cloud.find(str(arm_id.parent))
        return {"location": vault.location, **written} if vault else written

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Store the versions."""
        resource.state = _written(cloud, resource.id, resource.sent, resource.state)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Store it as a deleted secret of its vault, or with the vault if that is being deleted."""
        vault = cloud.find(str(resource.id.parent))
        if vault is None:
            return
        name = resource.id.name
        if vault.properties.get("provisioningState") == "Deleting":
            vault.state.kept[name] = resource.state
            return
        purge_at = cloud.now + vault.properties["softDeleteRetentionInDays"] * DAY
        vault.state.deleted[name.lower()] = DeletedSecret(name, resource.state, cloud.now, purge_at)
        cloud.events.at(purge_at, vault.key, "purge_secret", name.lower(), cloud.now)

    def load(self, data: Any) -> SecretState:
        return SecretState.read(data)


def secret_uri(arm_id: ArmId) -> str:
    """Return the URI of a secret with an ARM id."""
    return f"https://{arm_id.names[0]}.vault.azure.net/secrets/{arm_id.name}"


def check_secret(name: str, value: str, tags: Json) -> None:
    """Refuse a name, value or tags that a secret cannot have; AzureError BadParameter."""
    if not NAME.fullmatch(name):
        raise VaultError(400, "BadParameter", f"The request URI contains an invalid name: {name}", "BadParameter")
    if len(value.encode()) > VALUE_BYTES:
        message = f"The secret value has {len(value.encode())} bytes, of at most {VALUE_BYTES}."
        raise VaultError(400, "BadParameter", message, "BadParameter")
    if len(tags) > TAGS:
        raise VaultError(400, "BadParameter", f"The secret has {len(tags)} tags, of at most {TAGS}.", "BadParameter")


def check_free(vault: Resource, name: str) -> None:
    """Refuse the name of a deleted secret; AzureError Conflict: https://github.com/microsoft/AzureTRE/issues/4294"""
    if name.lower() in vault.state.deleted:
        message = (
            f"Secret {name} is currently in a deleted but recoverable state, and its name cannot be reused; in this state, the secret can "
            "only be recovered or purged."
        )
        raise VaultError(409, "Conflict", message, "ObjectIsDeletedButRecoverable")


def _written(cloud: Cloud, arm_id: ArmId, body: Json, before: SecretState | None) -> SecretState:
    """Return the versions after a PUT: a changed value adds one, any other change applies to the current one."""
    properties, tags = without_nulls(body["properties"]), body.get("tags") or {}
    state = SecretState.read(asdict(before)) if before else SecretState(secret_uri(arm_id))
    attributes, kind = properties.get("attributes"), properties.get("contentType")
    if not state.versions or state.current.value != properties["value"]:
        state.add(cloud, properties["value"], kind, attributes or {}, tags)
    else:
        current = state.current
        current.content_type, current.attributes, current.tags, current.updated = (
            kind,
            settable_attributes(attributes),
            dict(tags),
            int(cloud.now),
        )
    return state
