"""Settings and sign-in of the provider: endpoints from the metadata host, tokens for a client secret, and the two identity functions.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from rehearsal.program.graph import Secret, reveal
from rehearsal.program.pulumi_values import Json
from rehearsal.pulumi_cli.providers.provider_interface import ProviderError

FROM_ENVIRONMENT: Mapping[str, str] = {
    "clientId": "ARM_CLIENT_ID",
    "clientSecret": "ARM_CLIENT_SECRET",
    "location": "ARM_LOCATION",
    "metadataHost": "ARM_METADATA_HOST",
    "subscriptionId": "ARM_SUBSCRIPTION_ID",
    "tenantId": "ARM_TENANT_ID",
}
"""Settings that the environment gives where the provider resource does not:
https://www.pulumi.com/registry/packages/azure-native/installation-configuration/"""


@dataclass(frozen=True, slots=True)
class AzureSettings:
    """Metadata host with its port, and the account; location is the default location of resources, "" for none."""

    metadata_host: str
    subscription: str
    tenant: str
    client: str
    secret: str = field(repr=False)
    location: str


def read_settings(config: Json, environment: Mapping[str, str] = os.environ) -> AzureSettings:
    """Return the settings; ProviderError, in one sentence, for a missing one."""
    given = {key: reveal(value) for key, value in config.items()}

    def value(key: str) -> str:
        return str(given.get(key) or environment.get(FROM_ENVIRONMENT[key], ""))

    host = value("metadataHost").removeprefix("https://").rstrip("/")
    if not host:
        raise ProviderError(
            "ARM_METADATA_HOST is not set, and this azure-native works with the embedded Azure only; start `gpufleet azure` and set the "
            "variables that it prints, or remove this provider's folder from PULUMI_HOME to use Pulumi's own"
        )
    for key in ("subscriptionId", "tenantId", "clientId", "clientSecret"):
        if not value(key):
            raise ProviderError(
                f"neither the provider's {key} nor {FROM_ENVIRONMENT[key]} is set; set the variables that `gpufleet azure` prints"
            )
    return AzureSettings(host, value("subscriptionId"), value("tenantId"), value("clientId"), value("clientSecret"), value("location"))


ENDPOINTS = "/metadata/endpoints?api-version=2022-09-01"
RENEW_SECONDS = 300.0
"""A token is renewed this long before its expiry, or after half of its lifetime where that is shorter."""


@dataclass(frozen=True, slots=True)
class AzureEndpoints:
    """URLs of the resource manager and of the sign-in, and the audience of a token."""

    manager: str
    login: str
    audience: str


async def discover_endpoints(session: aiohttp.ClientSession, settings: AzureSettings) -> AzureEndpoints:
    """Read the endpoints from the metadata host; ProviderError where it cannot be reached or its response is unreadable."""
    url = f"https://{settings.metadata_host}{ENDPOINTS}"
    try:
        async with session.get(url) as response:
            body = json.loads(await response.read())
        manager = body["resourceManager"].rstrip("/")
        return AzureEndpoints(manager, body["authentication"]["loginEndpoint"].rstrip("/"), body["authentication"]["audiences"][0])
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(
            f"{url} cannot be reached ({connection_error(error)}); is `gpufleet azure` running, and is SSL_CERT_FILE set to its authority?"
        ) from None
    except (LookupError, TypeError, AttributeError, ValueError):
        raise ProviderError(
            f"{url} does not describe Azure's endpoints; set ARM_METADATA_HOST to the host that `gpufleet azure` prints"
        ) from None


class ServicePrincipal:
    """The signed-in account; all calls share one token until shortly before its expiry."""

    def __init__(self, session: aiohttp.ClientSession, settings: AzureSettings, endpoints: AzureEndpoints) -> None:
        self._session, self._settings, self._endpoints = session, settings, endpoints
        self._lock = asyncio.Lock()
        self._token, self._renew_at = "", 0.0

    async def token(self, rejected: str = "") -> str:
        """Return a valid token other than the rejected one; ProviderError."""
        async with self._lock:
            if not self._token or self._token == rejected or time.monotonic() >= self._renew_at:
                self._token, lasting = await self.sign_in(f"{self._endpoints.audience}/.default")
                self._renew_at = time.monotonic() + lasting - min(RENEW_SECONDS, lasting / 2)
            return self._token

    async def sign_in(self, scope: str) -> tuple[str, float]:
        """Return a token for a scope and its lifetime in seconds; ProviderError."""
        url = f"{self._endpoints.login}/{self._settings.tenant}/oauth2/v2.0/token"
        form = {
            "grant_type": "client_credentials",
            "client_id": self._settings.client,
            "client_secret": self._settings.secret,
            "scope": scope,
        }
        try:
            async with self._session.post(url, data=form) as response:
                body = json.loads(await response.read())
            if response.status != 200:
                raise ProviderError(f"signing in to {url} was refused: {body.get('error_description') or body.get('error')}")
            return str(body["access_token"]), float(body["expires_in"])
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(f"{url} cannot be reached to sign in ({connection_error(error)}); is `gpufleet azure` running?") from None
        except (LookupError, TypeError, AttributeError, ValueError):
            raise ProviderError(f"signing in to {url} returned no token") from None

    async def claims(self) -> dict[str, Any]:
        """Return the claims of the token; ProviderError where it is unreadable."""
        try:
            payload = (await self.token()).split(".")[1]
            claims: dict[str, Any] = dict(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))
        except (LookupError, TypeError, ValueError):
            raise ProviderError(f"the token of {self._endpoints.login} has no readable claims; does `gpufleet azure` run there?") from None
        return claims


def connection_error(error: BaseException) -> str:
    """Return the reason of a failed connection as one line."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300] or type(error).__name__


CLIENT_CONFIG = "azure-native:authorization:getClientConfig"
CLIENT_TOKEN = "azure-native:authorization:getClientToken"  # noqa: S105 the function's name


async def call_function(token: str, arguments: Json, settings: AzureSettings, account: ServicePrincipal) -> Mapping[str, Any]:
    """Return the outputs of a function; ProviderError for an unsupported one."""
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
        found = await account.sign_in(f"{endpoint}/.default") if isinstance(endpoint, str) and endpoint else (await account.token(), 0.0)
        return {"token": Secret(found[0])}
    raise ProviderError(
        f"the function {token[:200]} is not supported by the rehearsal's azure-native, which supports {CLIENT_CONFIG} and {CLIENT_TOKEN}; "
        "compute its result, or read it as a resource"
    )
