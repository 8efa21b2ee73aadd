"""Key vaults and their secrets, deleted ones included."""

from rehearsal.azure.resource_type import Kind
from rehearsal.azure.vaults.deleted import DeletedVault, deleted_vaults
from rehearsal.azure.vaults.secrets import Secret
from rehearsal.azure.vaults.vault import Vault, vault_named

KINDS: tuple[Kind, ...] = (Vault(), DeletedVault(), Secret())

__all__ = ["KINDS", "deleted_vaults", "vault_named"]
