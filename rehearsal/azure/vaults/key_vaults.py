"""Key vaults: creation, deletion and recovery. A deleted vault exists, and reserves its name, until its purge.

https://learn.microsoft.com/azure/key-vault/general/soft-delete-overview,
https://learn.microsoft.com/rest/api/keyvault/keyvault/vaults
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict
from rehearsal.azure.preconditions import system_data
from rehearsal.azure.resource import Json, Resource
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.validation import check_one_of, required_location, required_value, value_at, without_nulls
from rehearsal.azure.vaults import soft_delete
from rehearsal.azure.vaults.secret_versions import SecretState

MOST_DAYS = 90
"""https://learn.microsoft.com/azure/key-vault/general/soft-delete-overview#soft-delete-behavior"""
RECOVER = "recover"


@dataclass(slots=True)
class VaultState:
    """Deleted secrets by name in lower case; kept are the secrets that are deleted together with the vault."""

    deleted: dict[str, soft_delete.DeletedSecret] = field(default_factory=dict)
    kept: dict[str, SecretState] = field(default_factory=dict)


def vault_named(cloud: Cloud, name: str) -> Resource | None:
    """Return the vault with a name, which is globally unique."""
    return soft_delete.find_by_name(cloud, Vault.type, name)


class Vault(ResourceType):
    """A key vault."""

    type = "Microsoft.KeyVault/vaults"
    put_duration = "vault.put"
    deletable_in_use = True

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse the name of another vault, also of a deleted one, and changes that Azure never allows."""
        location = required_location(body)
        recovering = value_at(body, "properties.createMode") == RECOVER
        if previous is None:
            _check_free(cloud, arm_id, location, recovering)
        if not recovering:
            required_value(body, "properties.tenantId", "vault")
            required_value(body, "properties.sku.name", "vault")
        _check_tenant(cloud, body)
        check_one_of(value_at(body, "properties.sku.name"), ("standard", "premium"), "properties.sku.name")
        check_one_of(value_at(body, "properties.networkAcls.defaultAction"), ("Allow", "Deny"), "properties.networkAcls.defaultAction")
        check_one_of(value_at(body, "properties.networkAcls.bypass"), ("AzureServices", "None"), "properties.networkAcls.bypass")
        _check_protection(without_nulls(body.get("properties")), previous.properties if previous else {})

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults, such as soft delete for 90 days; a recovered vault has its former body except for what the PUT changes."""
        requested = without_nulls(body.get("properties"))
        requested.pop("createMode", None)
        # A PUT that leaves out a permanent property preserves it; a second recovery restores nothing more.
        lasting = ("softDeleteRetentionInDays", "enablePurgeProtection", "enableSoftDelete")
        recovering = value_at(body, "properties.createMode") == RECOVER
        before = {key: value for key, value in (previous.properties if previous else {}).items() if recovering or key in lasting}
        deleted_vault = soft_delete.deleted_vault_with_id(cloud, arm_id) if previous is None else None
        restored = deleted_vault.state.body if deleted_vault is not None else {}
        properties = {
            **DEFAULTS,
            **before,
            **restored.get("properties", {}),
            **requested,
            "vaultUri": f"https://{arm_id.name}.vault.azure.net/",
        }
        return {"tags": {}, **restored, **body, "properties": properties}

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with its creator and the private endpoints that are connected to it."""
        connections = [_connection(resource, cloud.resources[key]) for key in cloud.index.users(resource.key) if ENDPOINTS in key]
        more = {"privateEndpointConnections": connections} if connections else {}
        return {**resource.body, "systemData": system_data(resource), "properties": {**resource.properties, **more}}

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Restore the secrets of a recovered vault."""
        if previous is not None:
            return
        resource.state = VaultState()
        deleted_vault = soft_delete.deleted_vault_with_id(cloud, resource.id)
        if deleted_vault is None:
            return
        resource.state.deleted = {name: one for name, one in deleted_vault.state.deleted.items() if one.purge_at > cloud.now}
        for name, secret in deleted_vault.state.secrets.items():
            cloud.insert(parse(f"{resource.id.text}/secrets/{name}"), secret.body, resource.owner, sent=secret.sent(), state=secret)
        cloud.remove(deleted_vault)

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float:
        """Return the short duration of a delete, which only marks the vault."""
        return operation_seconds(cloud, "vault.delete", resource.key, cloud.relative(resource.created))

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Create the deleted vault."""
        soft_delete.add_deleted_vault(cloud, resource)

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        """Purge a deleted secret, unless it was recovered and deleted again."""
        secret, moment = args
        deleted_secret = resource.state.deleted.get(secret)
        if deleted_secret is not None and deleted_secret.deleted_at == moment:
            del resource.state.deleted[secret]

    def load(self, data: Any) -> VaultState:
        deleted_vault = {name: soft_delete.DeletedSecret.read(one) for name, one in data["deleted"].items()}
        return VaultState(deleted_vault, {name: SecretState.read(one) for name, one in data["kept"].items()})


ENDPOINTS = "/microsoft.network/privateendpoints/"


def _connection(vault: Resource, endpoint: Resource) -> Json:
    """Return a vault's connection to a private endpoint."""
    state = {"status": "Approved", "actionsRequired": "None"}
    inner = {"privateEndpoint": {"id": endpoint.id.text}, "privateLinkServiceConnectionState": state, "provisioningState": "Succeeded"}
    return {"id": f"{vault.id.text}/privateEndpointConnections/{endpoint.id.name}", "properties": inner}


DEFAULTS: Json = {
    "accessPolicies": [],
    "enabledForDeployment": False,
    "enableSoftDelete": True,
    "softDeleteRetentionInDays": MOST_DAYS,
    "enableRbacAuthorization": False,
    "publicNetworkAccess": "Enabled",
    "networkAcls": {"bypass": "AzureServices", "defaultAction": "Allow", "ipRules": [], "virtualNetworkRules": []},
    "hsmPoolResourceId": "00000000-0000-0000-0000-000000000000",
}
"""https://learn.microsoft.com/rest/api/keyvault/keyvault/vaults/create-or-update#vaultproperties"""


def _bad(message: str) -> AzureError:
    return AzureError(400, "BadRequest", message)


def _check_tenant(cloud: Cloud, body: Json) -> None:
    """Require the tenant of the subscription: https://learn.microsoft.com/azure/key-vault/general/move-subscription"""
    tenant = value_at(body, "properties.tenantId")
    if tenant is None:
        return
    try:
        same = uuid.UUID(str(tenant)) == uuid.UUID(cloud.tenant)
    except ValueError:
        same = str(tenant).lower() == cloud.tenant.lower()
    if not same:
        raise _bad(f"An invalid value was provided for 'tenantId': {tenant} is not the subscription's tenant {cloud.tenant}.")


def _check_protection(requested: Json, before: Json) -> None:
    """Refuse changes of the protection. The first sentence is that of https://github.com/Azure/azure-cli/issues/29115, the rules of the
    others are documented.
    """
    if requested.get("enablePurgeProtection") is False:
        message = "Enabling the purge protection for a vault is an irreversible action."
        raise _bad(f'The property "enablePurgeProtection" cannot be set to false. {message}')
    if requested.get("enableSoftDelete") is False:
        raise _bad('The property "enableSoftDelete" cannot be set to false: soft delete is on for every vault and cannot be taken back.')
    days, old = requested.get("softDeleteRetentionInDays"), before.get("softDeleteRetentionInDays")
    if days is not None and old is not None and days != old:
        raise _bad('The property "softDeleteRetentionInDays" has been set already and it can\'t be modified.')


def _check_free(cloud: Cloud, arm_id: ArmId, location: str, recovering: bool) -> None:
    """Refuse a name in use, with the sentences of https://github.com/Esri/arcgis-gitops/issues/174,
    https://github.com/Azure/azure-cli/issues/29115 and https://github.com/hashicorp/terraform-provider-azurerm/issues/12972.
    """
    deleted_vault = soft_delete.deleted_vault_named(cloud, arm_id.name)
    same_place = deleted_vault is not None and deleted_vault.state.vault_id.lower() == arm_id.key and deleted_vault.id.names[0] == location
    if recovering and not same_place:
        message = (
            "A soft deleted vault with the given name does not exist. Ensure that the name for the vault that is being attempted to "
            "recover is in a recoverable state. For more information on soft delete please follow this link "
            "https://go.microsoft.com/fwlink/?linkid=2149745"
        )
        raise AzureError(404, "SoftDeletedVaultDoesNotExist", message)
    if deleted_vault is not None and not recovering and deleted_vault.id.subscription.lower() == arm_id.subscription.lower():
        message = (
            "A vault with the same name already exists in deleted state. You need to either recover or purge existing key vault. Follow "
            "this link https://go.microsoft.com/fwlink/?linkid=2149745 for more information on soft delete."
        )
        raise conflict("ConflictError", message)
    if vault_named(cloud, arm_id.name) is not None or (deleted_vault is not None and not recovering):
        message = (
            f"The vault name '{arm_id.name}' is already in use. Vault names are globally unique so it is possible that the name is already "
            "taken. If you are sure that the vault name was not taken then it is possible that a vault with the same name was recently "
            "deleted but not purged after being placed in a recoverable state. If the vault is in a recoverable state then the vault will "
            "need to be purged before reusing the name. For more information about VaultAlreadyExists, soft delete and purging a vault "
            "follow this link https://go.microsoft.com/fwlink/?linkid=2147740."
        )
        raise conflict("VaultAlreadyExists", message)
