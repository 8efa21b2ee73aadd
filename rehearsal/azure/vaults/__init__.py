"""Key vaults and their secrets, including deleted ones."""

from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.vaults.key_vaults import Vault, vault_named
from rehearsal.azure.vaults.secrets import Secret
from rehearsal.azure.vaults.soft_delete import DeletedVault, deleted_vaults

RESOURCE_TYPES: tuple[ResourceType, ...] = (Vault(), DeletedVault(), Secret())

__all__ = ["RESOURCE_TYPES", "deleted_vaults", "vault_named"]
