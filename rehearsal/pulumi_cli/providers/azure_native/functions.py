"""Decides what azure-native's functions answer: who is signed in, and a token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.program.graph import Secret
from rehearsal.pulumi_cli.providers.azure_native.settings import Settings
from rehearsal.pulumi_cli.providers.azure_native.sign_in import Account
from rehearsal.pulumi_cli.providers.errors import ProviderError
from rehearsal.pulumi_cli.providers.pulumi_values import Json

CLIENT_CONFIG = "azure-native:authorization:getClientConfig"
CLIENT_TOKEN = "azure-native:authorization:getClientToken"  # noqa: S105 the function's name


async def answered(token: str, arguments: Json, settings: Settings, account: Account) -> Mapping[str, Any]:
    """The outputs of a function; Failed for one that is not served."""
    if token == CLIENT_CONFIG:
        claims = await account.claims()
        return {
            "clientId": settings.client,
            "objectId": claims.get("oid", ""),
            "subscriptionId": settings.subscription,
            "tenantId": settings.tenant,
        }
    if token == CLIENT_TOKEN:
        endpoint = arguments.get("endpoint")
        held = await account.sign_in(f"{endpoint}/.default") if isinstance(endpoint, str) and endpoint else (await account.token(), 0.0)
        return {"token": Secret(held[0])}
    raise ProviderError(
        f"the function {token[:200]} is not served by the rehearsal's azure-native, which has {CLIENT_CONFIG} and {CLIENT_TOKEN}; "
        "compute what it answers, or read it as a resource"
    )
