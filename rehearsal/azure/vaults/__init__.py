"""Key vaults and their secrets, including deleted ones."""

from rehearsal.azure.resource_type import Kind
from rehearsal.azure.vaults.key_vaults import Vault, vault_named
from rehearsal.azure.vaults.secrets import Secret
from rehearsal.azure.vaults.soft_delete import DeletedVault, deleted_vaults

KINDS: tuple[Kind, ...] = (Vault(), DeletedVault(), Secret())

__all__ = ["KINDS", "deleted_vaults", "vault_named"]
