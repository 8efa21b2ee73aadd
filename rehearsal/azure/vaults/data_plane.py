"""Requests that a vault itself answers about its secrets: set, get, list, delete, recover and purge.

https://learn.microsoft.com/rest/api/keyvault/secrets/operation-groups. A vault's network rules and the
caller's roles are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.vaults.secret_versions import SecretState, SecretVersion, settable_attributes
from rehearsal.azure.vaults.secrets import VaultError, check_free, check_secret
from rehearsal.azure.vaults.soft_delete import DeletedSecret

PAGE = 25
"""Items of a page at most: https://learn.microsoft.com/rest/api/keyvault/secrets/get-secrets"""


@dataclass(frozen=True, slots=True)
class SecretPage:
    """Items of one page of a list, and the position of the next page; None for the last page."""

    value: list[Json]
    next: int | None


def set_secret(cloud: Cloud, vault: Resource, name: str, body: Mapping[str, Any], owner: str = "somebody") -> Json:
    """Write a new version of a secret, and return the bundle with its value. body has value, and may have attributes, contentType and
    tags.
    """
    value, tags = body.get("value"), dict(body.get("tags") or {})
    if not isinstance(value, str):
        raise VaultError(400, "BadParameter", "The parameter value is not specified.", "BadParameter")
    check_secret(name, value, tags)
    found = _find(cloud, vault, name)
    state = found.state if found else None
    if state is None:
        check_free(vault, name)
        state = SecretState(f"{vault.properties['vaultUri']}secrets/{name}")
    state.add(cloud, value, body.get("contentType"), body.get("attributes") or {}, tags)
    _update_resource(cloud, vault, name, state, owner)
    return {"value": value, **_item(vault, state, state.current)}


def get_secret(cloud: Cloud, vault: Resource, name: str, version: str = "") -> Json:
    """Return a version of a secret with its value, the current one for an empty id; AzureError SecretNotFound, Forbidden for a disabled
    one.
    """
    state = _state(cloud, vault, name)
    found = state.find(version)
    if found is None:
        raise _missing(f"{name}/{version}")
    if not found.attributes_body()["enabled"]:
        raise VaultError(403, "Forbidden", "Operation get is not allowed on a disabled secret.", "SecretDisabled")
    return {"value": found.value, **_item(vault, state, found)}


def update_secret(cloud: Cloud, vault: Resource, name: str, version: str, body: Mapping[str, Any]) -> Json:
    """Change attributes, content type or tags of a version, never its value."""
    state = _state(cloud, vault, name)
    found = state.find(version)
    if found is None:
        raise _missing(f"{name}/{version}")
    found.attributes = {**found.attributes, **settable_attributes(body.get("attributes"))}
    found.content_type = body.get("contentType", found.content_type)
    found.tags = dict(body.get("tags", found.tags))
    found.updated = int(cloud.now)
    _update_resource(cloud, vault, name, state, "")
    return _item(vault, state, found)


def list_secrets(cloud: Cloud, vault: Resource, start: int = 0, maximum: int = PAGE) -> SecretPage:
    """Return the secrets by name, without values and versions, from a position on."""
    found = sorted(cloud.list(vault.id.text, "Microsoft.KeyVault/vaults/secrets"), key=lambda one: one.id.name.lower())
    return _page([_item(vault, one.state, one.state.current, versioned=False) for one in found], start, maximum)


def list_versions(cloud: Cloud, vault: Resource, name: str, start: int = 0, maximum: int = PAGE) -> SecretPage:
    """Return a secret's versions without values, oldest first, from a position on."""
    state = _state(cloud, vault, name)
    return _page([_item(vault, state, one) for one in state.versions], start, maximum)


def delete_secret(cloud: Cloud, vault: Resource, name: str) -> Json:
    """Delete a secret, whose name stays reserved until its purge, and return the deleted bundle."""
    found = _find(cloud, vault, name)
    if found is None:
        raise _missing(name)
    cloud.remove(found)
    return _deleted(vault, vault.state.deleted[name.lower()])


def get_deleted(vault: Resource, name: str) -> Json:
    """Return a deleted secret without its value; AzureError SecretNotFound."""
    return _deleted(vault, _deleted_secret(vault, name))


def list_deleted(vault: Resource, start: int = 0, maximum: int = PAGE) -> SecretPage:
    """Return the deleted secrets by name, from a position on."""
    found = sorted(vault.state.deleted.values(), key=lambda one: one.name.lower())
    return _page([_deleted(vault, one, versioned=False) for one in found], start, maximum)


def recover_secret(cloud: Cloud, vault: Resource, name: str, owner: str = "somebody") -> Json:
    """Restore a deleted secret with all its versions; AzureError SecretNotFound."""
    deleted = _deleted_secret(vault, name)
    del vault.state.deleted[name.lower()]
    _update_resource(cloud, vault, deleted.name, deleted.secret, owner)
    return _item(vault, deleted.secret, deleted.secret.current)


def purge_secret(vault: Resource, name: str) -> None:
    """Delete a deleted secret permanently; AzureError Forbidden if the vault has purge protection
    (https://github.com/microsoft/AzureTRE/issues/1951).
    """
    _deleted_secret(vault, name)
    if vault.properties.get("enablePurgeProtection"):
        message = (
            'Operation "purge" is not allowed because purge protection is enabled for this vault. Key Vault service will automatically '
            "purge it after the retention period has passed."
        )
        raise VaultError(403, "Forbidden", message, "ForbiddenByPolicy")
    del vault.state.deleted[name.lower()]


def _find(cloud: Cloud, vault: Resource, name: str) -> Resource | None:
    return cloud.find(f"{vault.id.text}/secrets/{name}")


def _state(cloud: Cloud, vault: Resource, name: str) -> SecretState:
    found = _find(cloud, vault, name)
    if found is None:
        raise _missing(name)
    state: SecretState = found.state
    return state


def _deleted_secret(vault: Resource, name: str) -> DeletedSecret:
    deleted: DeletedSecret | None = vault.state.deleted.get(name.lower())
    if deleted is None:
        message = f"A deleted secret with (name/id) {name} was not found in this key vault."
        raise VaultError(404, "SecretNotFound", message, "SecretNotFound")
    return deleted


def _missing(name: str) -> VaultError:
    """Return the refusal of an unknown secret, with the sentence of https://github.com/Azure/azure-sdk-for-js/issues/25489"""
    message = (
        f"A secret with (name/id) {name} was not found in this key vault. If you recently deleted this secret you may be able to recover "
        "it using the correct recovery command. For help resolving this issue, please see https://go.microsoft.com/fwlink/?linkid=2125182"
    )
    return VaultError(404, "SecretNotFound", message, "SecretNotFound")


def _update_resource(cloud: Cloud, vault: Resource, name: str, state: SecretState, owner: str) -> None:
    """Write the vault's change to the resource of the secret."""
    found = _find(cloud, vault, name)
    if found is None:
        cloud.insert(parse(f"{vault.id.text}/secrets/{name}"), state.body, owner, sent=state.sent(), state=state)
        return
    found.body.pop("tags", None)
    found.body.update(state.body)
    found.sent, found.changed, found.version = state.sent(), cloud.now, found.version + 1


def _item(vault: Resource, state: SecretState, version: SecretVersion, *, versioned: bool = True) -> Json:
    days, protected = vault.properties["softDeleteRetentionInDays"], vault.properties.get("enablePurgeProtection")
    # https://learn.microsoft.com/rest/api/keyvault/secrets/get-secret/get-secret#deletionrecoverylevel
    level = ("Recoverable" if days == 90 else "CustomizedRecoverable") + ("" if protected else "+Purgeable")
    item: Json = {
        "id": f"{state.uri}/{version.id}" if versioned else state.uri,
        "attributes": {**version.attributes_body(), "recoveryLevel": level, "recoverableDays": days},
    }
    if version.content_type is not None:
        item["contentType"] = version.content_type
    return {**item, "tags": version.tags} if version.tags else item


def _deleted(vault: Resource, deleted: DeletedSecret, *, versioned: bool = True) -> Json:
    recovery = {
        "recoveryId": f"{vault.properties['vaultUri']}deletedsecrets/{deleted.name}",
        "deletedDate": int(deleted.deleted_at),
        "scheduledPurgeDate": int(deleted.purge_at),
    }
    return {**recovery, **_item(vault, deleted.secret, deleted.secret.current, versioned=versioned)}


def _page(items: list[Json], start: int, maximum: int) -> SecretPage:
    end = start + max(1, min(maximum, PAGE))
    return SecretPage(items[start:end], end if end < len(items) else None)
