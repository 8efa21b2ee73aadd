"""Bodies of vaults and secrets for their tests, and a vault that contains them."""

from __future__ import annotations

from typing import Any

import pytest
from plain_calls import GROUP, LOCATION, TENANT, Calls

from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Resource

VAULT = "Microsoft.KeyVault/vaults/gf-node"
SECRET = f"{VAULT}/secrets/join"
DAY = 86_400.0


def vault(**properties: Any) -> dict[str, Any]:
    """Body of a vault."""
    return {"location": LOCATION, "properties": {"tenantId": TENANT, "sku": {"family": "A", "name": "standard"}, **properties}}


def secret(value: str, **more: Any) -> dict[str, Any]:
    """Body of a secret."""
    return {"properties": {"value": value, **more}}


def held(calls: Calls) -> Resource:
    """The vault."""
    return calls.cloud.get(f"{GROUP}/providers/{VAULT}")


def refused(call: Any, *args: Any) -> AzureError:
    """The error of a call that must be refused."""
    with pytest.raises(AzureError) as error:
        call(*args)
    return error.value


def calls_with_vault() -> Calls:
    """Calls to a cloud with a vault in it that keeps what is deleted for 30 days."""
    made = Calls()
    made.put(VAULT, vault(enableRbacAuthorization=True, softDeleteRetentionInDays=30))
    return made
