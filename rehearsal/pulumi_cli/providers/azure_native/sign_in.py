"""Decides how the provider signs in: where the metadata host says, with a client secret, and again before a token ends.

https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from dataclasses import dataclass
from typing import Any

import aiohttp

from rehearsal.pulumi_cli.providers.azure_native.settings import Settings
from rehearsal.pulumi_cli.providers.errors import ProviderError

ENDPOINTS = "/metadata/endpoints?api-version=2022-09-01"
RENEW_SECONDS = 300.0
"""A token is renewed so long before its end, or after half of its time where that is shorter."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the resource manager and the sign-in are, and for whom a token is made out."""

    manager: str
    login: str
    audience: str


async def places_of(session: aiohttp.ClientSession, settings: Settings) -> Places:
    """What the metadata host tells; Failed where it cannot be asked or tells something else."""
    url = f"https://{settings.metadata_host}{ENDPOINTS}"
    try:
        async with session.get(url) as response:
            told = json.loads(await response.read())
        manager = told["resourceManager"].rstrip("/")
        return Places(manager, told["authentication"]["loginEndpoint"].rstrip("/"), told["authentication"]["audiences"][0])
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ProviderError(
            f"{url} cannot be reached ({why(error)}); is `gpufleet azure` running, and is SSL_CERT_FILE set to its authority?"
        ) from None
    except (LookupError, TypeError, AttributeError, ValueError):
        raise ProviderError(
            f"{url} does not tell where Azure is; ARM_METADATA_HOST is to be the host that `gpufleet azure` prints"
        ) from None


class Account:
    """Who is signed in; one token serves all calls until shortly before its end."""

    def __init__(self, session: aiohttp.ClientSession, settings: Settings, places: Places) -> None:
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
            raise ProviderError(f"{url} cannot be reached to sign in ({why(error)}); is `gpufleet azure` running?") from None
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


def why(error: BaseException) -> str:
    """One line that says why a connection failed."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300] or type(error).__name__
