"""Decides how the provider signs in: where the metadata host says, with a client secret, and again before a token ends.

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
from rehearsal.pulumi_cli.providers.provider_interface import ProviderError
from rehearsal.pulumi_cli.providers.pulumi_values import Json

FROM_ENVIRONMENT: Mapping[str, str] = {
    "clientId": "ARM_CLIENT_ID",
    "clientSecret": "ARM_CLIENT_SECRET",
    "location": "ARM_LOCATION",
    "metadataHost": "ARM_METADATA_HOST",
    "subscriptionId": "ARM_SUBSCRIPTION_ID",
    "tenantId": "ARM_TENANT_ID",
}
"""Configuration that the environment gives where the provider resource does not:
https://www.pulumi.com/registry/packages/azure-native/installation-configuration/"""


@dataclass(frozen=True, slots=True)
class AzureSettings:
    """Where Azure is described (a host, with its port), and who asks; location serves resources that name none, empty for none."""

    metadata_host: str
    subscription: str
    tenant: str
    client: str
    secret: str = field(repr=False)
    location: str


def read_settings(config: Json, environment: Mapping[str, str] = os.environ) -> AzureSettings:
    """The settings; Failed, in one sentence, for what is missing."""
    given = {key: reveal(value) for key, value in config.items()}

    def value(key: str) -> str:
        return str(given.get(key) or environment.get(FROM_ENVIRONMENT[key], ""))

    host = value("metadataHost").removeprefix("https://").rstrip("/")
    if not host:
        raise ProviderError(
            "ARM_METADATA_HOST is not set, and this azure-native talks to the embedded Azure alone; start `gpufleet azure` and set what it "
            "prints, or take this provider's folder out of PULUMI_HOME to use Pulumi's own"
        )
    for key in ("subscriptionId", "tenantId", "clientId", "clientSecret"):
        if not value(key):
            raise ProviderError(f"neither the provider's {key} nor {FROM_ENVIRONMENT[key]} is set; set what `gpufleet azure` prints")
    return AzureSettings(host, value("subscriptionId"), value("tenantId"), value("clientId"), value("clientSecret"), value("location"))


ENDPOINTS = "/metadata/endpoints?api-version=2022-09-01"
RENEW_SECONDS = 300.0
"""A token is renewed so long before its end, or after half of its time where that is shorter."""


@dataclass(frozen=True, slots=True)
class AzureEndpoints:
    """Where the resource manager and the sign-in are, and for whom a token is made out."""

    manager: str
    login: str
    audience: str


async def discover_endpoints(session: aiohttp.ClientSession, settings: AzureSettings) -> AzureEndpoints:
    """What the metadata host tells; Failed where it cannot be asked or tells something else."""
    url = f"https://{settings.metadata_host}{ENDPOINTS}"
    try:
        async with session.get(url) as response:
            told = json.loads(await response.read())
        manager = told["resourceManager"].rstrip("/")
        return AzureEndpoints(manager, told["authentication"]["loginEndpoint"].rstrip("/"), told["authentication"]["audiences"][0])
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(
            f"{url} cannot be reached ({connection_error(error)}); is `gpufleet azure` running, and is SSL_CERT_FILE set to its authority?"
        ) from None
    except (LookupError, TypeError, AttributeError, ValueError):
        raise ProviderError(
            f"{url} does not tell where Azure is; ARM_METADATA_HOST is to be the host that `gpufleet azure` prints"
        ) from None


class ServicePrincipal:
    """Who is signed in; one token serves all calls until shortly before its end."""

    def __init__(self, session: aiohttp.ClientSession, settings: AzureSettings, places: AzureEndpoints) -> None:
        self._session, self._settings, self._places = session, settings, places
        self._lock = asyncio.Lock()
        self._token, self._renew_at = "", 0.0

    async def token(self, refused: str = "") -> str:
        """A token that is good now and is not the refused one; Failed."""
        async with self._lock:
            if not self._token or self._token == refused or time.monotonic() >= self._renew_at:
                self._token, lasting = await self.sign_in(f"{self._places.audience}/.default")
                self._renew_at = time.monotonic() + lasting - min(RENEW_SECONDS, lasting / 2)
            return self._token

    async def sign_in(self, scope: str) -> tuple[str, float]:
        """A token for a scope, and how many seconds it lasts; Failed."""
        url = f"{self._places.login}/{self._settings.tenant}/oauth2/v2.0/token"
        form = {
            "grant_type": "client_credentials",
            "client_id": self._settings.client,
            "client_secret": self._settings.secret,
            "scope": scope,
        }
        try:
            async with self._session.post(url, data=form) as response:
                told = json.loads(await response.read())
            if response.status != 200:
                raise ProviderError(f"signing in to {url} was refused: {told.get('error_description') or told.get('error')}")
            return str(told["access_token"]), float(told["expires_in"])
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ProviderError(f"{url} cannot be reached to sign in ({connection_error(error)}); is `gpufleet azure` running?") from None
        except (LookupError, TypeError, AttributeError, ValueError):
            raise ProviderError(f"signing in to {url} was answered with something that is no token") from None

    async def claims(self) -> dict[str, Any]:
        """What the token says of its holder; Failed where it is none that can be read."""
        try:
            payload = (await self.token()).split(".")[1]
            claims: dict[str, Any] = dict(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))))
        except (LookupError, TypeError, ValueError):
            raise ProviderError(
                f"the token of {self._places.login} does not tell whose it is; is `gpufleet azure` what answers there?"
            ) from None
        return claims


def connection_error(error: BaseException) -> str:
    """One line that says why a connection failed."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300] or type(error).__name__


CLIENT_CONFIG = "azure-native:authorization:getClientConfig"
CLIENT_TOKEN = "azure-native:authorization:getClientToken"  # noqa: S105 the function's name


async def call_function(token: str, arguments: Json, settings: AzureSettings, account: ServicePrincipal) -> Mapping[str, Any]:
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
