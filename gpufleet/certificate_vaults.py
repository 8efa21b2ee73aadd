"""Reading of certificates from the key vaults of a region, or from those of an embedded Azure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from components.errors import GpufleetError
from components.plan.model import RegionPlan, VaultPlan
from gpufleet.certificate_report import Holder

if TYPE_CHECKING:
    from azure.keyvault.secrets import SecretClient

    from rehearsal.azure.cloud import Cloud

Clients = Callable[[VaultPlan], "SecretClient"]
AT_ONCE = 8
"""Concurrent requests; a vault accepts 4,000 in ten seconds. https://learn.microsoft.com/azure/key-vault/general/service-limits"""


class VaultReadError(GpufleetError):
    """A secret could not be read; `where` names vault and secret."""

    def __init__(self, where: str, reason: str, remedy: str) -> None:
        self.where, self.reason, self.remedy = where, reason, remedy
        super().__init__(f"{where}: {reason}; {remedy}")


def read_key_vaults(holders: Sequence[Holder], clients: Clients | None = None) -> list[tuple[Holder, str]]:
    """Read certificates from Azure Key Vault with the signed-in identity; `clients` returns a vault's client. VaultReadError."""
    from azure.core.exceptions import AzureError

    client_of = clients or _signed_in()
    opened: dict[str, SecretClient] = {}

    def value(holder: Holder) -> str:
        try:
            return opened[holder.vault.name].get_secret(holder.secret).value or ""
        except AzureError as error:
            raise _read_error(holder, error) from None

    with ExitStack() as closing, ThreadPoolExecutor(AT_ONCE) as pool:
        for vault in dict.fromkeys(holder.vault for holder in holders):
            opened[vault.name] = closing.enter_context(client_of(vault))
        return list(zip(holders, pool.map(value, holders), strict=True))


def read_embedded(holders: Sequence[Holder], plan: RegionPlan, folder: Path) -> list[tuple[Holder, str]]:
    """Read certificates from an embedded Azure without changing it; VaultReadError, and the errors of its state directory."""
    from rehearsal.azure.errors import AzureError
    from rehearsal.azure.vaults.data_plane import get_secret
    from rehearsal.azure.vaults.key_vaults import vault_named

    cloud = _embedded_cloud(plan, folder)
    read = []
    for holder in holders:
        vault = vault_named(cloud, holder.vault.name)
        try:
            value = None if vault is None else str(get_secret(cloud, vault, holder.secret)["value"])
        except AzureError:
            value = None
        if value is None:
            where = f"{holder.vault.name}/{holder.secret}"
            raise VaultReadError(where, f"is not in the Azure of {folder}", f"create the region first: gpufleet up {plan.name}")
        read.append((holder, value))
    return read


def _embedded_cloud(plan: RegionPlan, folder: Path) -> Cloud:
    """Load the embedded Azure of a directory that must exist."""
    from rehearsal.azure.region_cloud import open_region_cloud
    from rehearsal.azure.scenario import Scenario
    from rehearsal.azure.state_directory import StateDirectory

    if not any(folder.glob("state-*.json")):
        raise VaultReadError(
            str(folder), "contains no embedded Azure", f"create the region first: gpufleet up {plan.name} --state {folder}"
        )
    with StateDirectory(folder) as directory:
        return open_region_cloud(directory, plan, Scenario())


def _signed_in() -> Clients:
    """Return clients of real vaults, signed in by environment, workload identity, managed identity or the Azure CLI, in this order."""
    from azure.identity import DefaultAzureCredential
    from azure.keyvault.secrets import SecretClient

    credential = DefaultAzureCredential()
    return lambda vault: SecretClient(vault.uri, credential)


def _read_error(holder: Holder, error: Exception) -> VaultReadError:
    """Return the error with its reason and remedy in one line."""
    from azure.core.exceptions import ClientAuthenticationError, ResourceNotFoundError, ServiceRequestError

    where = f"{holder.vault.name}/{holder.secret}"
    match error:
        case ResourceNotFoundError():
            return VaultReadError(where, "is not in the vault", "run pulumi refresh, then pulumi up")
        case ClientAuthenticationError():
            return VaultReadError(where, "Azure rejected the sign-in", "run az login, or give --state for an embedded Azure")
        case ServiceRequestError():
            return VaultReadError(where, "the vault is out of reach", "vaults answer only inside the hub's network: run the command there")
        case _:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            return VaultReadError(where, first, "the role Key Vault Secrets User on the vault and the hub's network are required")
