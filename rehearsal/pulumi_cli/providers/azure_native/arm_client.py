"""Decides how Azure Resource Manager is asked: what is sent again and when, and how an operation's end is awaited.

https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from components.errors import GpufleetError
from rehearsal.azure.azure_native_calls import LONGEST_DELAY, POLL_SECONDS, RETRIED, RETRIED_CONFLICT, RETRIES, back_off
from rehearsal.pulumi_cli.providers.azure_native.sign_in import ServicePrincipal, connection_error
from rehearsal.pulumi_cli.providers.provider_interface import ProviderError
from rehearsal.pulumi_cli.providers.pulumi_values import Json


@dataclass(frozen=True, slots=True)
class ArmResponse:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Json | None:
        """The JSON object in it; None where there is none."""
        try:
            found = json.loads(self.content) if self.content else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


class AzureResponseError(GpufleetError):
    """What Azure refused, or an operation of its that failed: HTTP status (0 for an operation), Azure's code, and a sentence."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        self.status, self.code = status, code
        super().__init__(f"{code}: {sentence}" if code else sentence)

    @classmethod
    def of_answer(cls, answer: ArmResponse) -> AzureResponseError:
        """The refusal in an answer with an error's status."""
        error = (answer.body or {}).get("error")
        if not isinstance(error, Mapping):
            text = answer.content[:300].decode(errors="replace").strip()
            return cls(answer.status, "", f"Azure answered {answer.status}{f': {text}' if text else ''}")
        return cls(answer.status, str(error.get("code", "")), _error_sentence(error))

    @classmethod
    def of_operation(cls, status: str, body: Json) -> AzureResponseError:
        """The failure that an operation's status tells."""
        error = body.get("error")
        if not isinstance(error, Mapping):
            return cls(0, status, "Azure does not say why")
        return cls(0, str(error.get("code", status)), _error_sentence(error))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds for which Azure asks to wait; None where it says nothing that can be read.

    https://github.com/Azure/azure-sdk-for-go/blob/0f9d9f4df19f46db7ff7c6ea7d5a3034f09e737e/sdk/azcore/internal/shared/shared.go
    """
    for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("Retry-After", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    return None


def _error_sentence(error: Mapping[str, Any]) -> str:
    """Azure's message, and those of its details, as one line."""
    told = " ".join(str(error.get("message", "")).split())
    details = [one for one in error.get("details") or () if isinstance(one, Mapping)]
    more = [f"{one.get('code', '')}: {_error_sentence(one)}" for one in details if one.get("message") and str(one["message"]) not in told]
    return f"{told} ({'; '.join(more[:5])})" if more else told


TIMEOUT = aiohttp.ClientTimeout(total=None, connect=30, sock_read=100)
RAREST_LOOK, LATEST_NEWS = 0.25, 0.25
"""Seconds between two looks where Azure's clock is fast, and the share of an operation's time so far below which they stay."""
ENDED = frozenset({"Succeeded", "Failed", "Canceled", "Cancelled"})


class OperationCancelledError(GpufleetError):
    """The engine wants everything to end."""


class OperationStartedError(GpufleetError):
    """A PUT that Azure took, or may have taken, and that did not end well; error says how."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


@dataclass
class ResourceManagerClient:
    """Azure Resource Manager at a base URL, asked by one account.

    pace is how many of our seconds one of Azure's lasts: an Azure whose clock runs faster tells waits in milliseconds.
    """

    session: aiohttp.ClientSession
    account: ServicePrincipal
    base: str
    stopped: asyncio.Event
    pace: float = 1.0

    async def get(self, path: str, version: str, *, even_stopped: bool = False) -> Json | None:
        """A resource's body; None where there is none. AzureRefused, Failed or Cancelled."""
        try:
            return (await self._send("GET", self._url(path, version), even_stopped=even_stopped)).body
        except AzureResponseError as refused:
            if refused.status == 404:
                return None
            raise

    async def put(self, path: str, version: str, body: Mapping[str, Any], query: str = "") -> None:
        """Make a resource what a body says, and wait until that is done; Began where it fails after Azure may have taken it."""
        answer = await self._send("PUT", self._url(path, version) + query, body)
        try:
            await self._ended("PUT", answer, self._url(path, version))
        except (AzureResponseError, ProviderError, OperationCancelledError) as error:
            raise OperationStartedError(error) from error

    async def delete(self, path: str, version: str) -> None:
        """Delete a resource and wait until it is gone; one that is gone already is deleted."""
        try:
            answer = await self._send("DELETE", self._url(path, version))
            await self._ended("DELETE", answer, "")
        except AzureResponseError as refused:
            if refused.status != 404:
                raise

    def _url(self, path: str, version: str) -> str:
        return f"{self.base}{path}?api-version={version}"

    async def _ended(self, method: str, answer: ArmResponse, resource: str) -> None:
        """Look at an operation until it has ended; AzureRefused where it failed."""
        status_url, result_url = answer.headers.get("Azure-AsyncOperation"), answer.headers.get("Location")
        began = time.monotonic()
        while status_url or (result_url and answer.status == 202) or (resource and _under_way(answer.body)):
            rare = min(RAREST_LOOK, (time.monotonic() - began) * LATEST_NEWS)
            await self._wait(max(rare, self._poll_seconds(method, answer)))
            url = str(status_url or result_url or resource)
            answer = await self._send("GET", url)
            if status_url is None:
                result_url = answer.headers.get("Location", result_url)
                continue
            status = str((answer.body or {}).get("status") or "")
            if not status:
                raise AzureResponseError(0, "", f"{url.partition('?')[0]} does not tell how the operation stands; run the update again")
            if status in ENDED:
                if status != "Succeeded":
                    raise AzureResponseError.of_operation(status, answer.body or {})
                return

    def _poll_seconds(self, method: str, answer: ArmResponse) -> float:
        wait = retry_after_seconds(answer.headers)
        if "retry-after-ms" in answer.headers and wait is not None:
            self.pace = min(1.0, wait / POLL_SECONDS["PUT"])
        return POLL_SECONDS[method] if wait is None else wait

    async def _send(self, method: str, url: str, body: Mapping[str, Any] | None = None, *, even_stopped: bool = False) -> ArmResponse:
        """One call, sent again as azure-native does; AzureRefused, or Failed where nobody answers; Began for a PUT that
        got no answer, or a server's error: Azure may have taken it."""
        content = None if body is None else json.dumps(body).encode()
        token, attempt, lost = await self.account.token(), 0, False
        try:
            while True:
                attempt += 1
                wait: float | None = None
                if self.stopped.is_set() and not even_stopped:
                    raise OperationCancelledError
                try:
                    answer = await self._once(method, url, content, token)
                    if answer.status < 400:
                        return answer
                    error: Exception = AzureResponseError.of_answer(answer)
                    if answer.status == 401 and attempt == 1:
                        token = await self.account.token(refused=token)
                        continue
                    lost = lost or answer.status >= 500
                    wait = retry_after_seconds(answer.headers)
                    if not _passing(error):
                        raise error
                except (aiohttp.ClientError, TimeoutError) as broken:
                    lost = lost or not isinstance(broken, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
                    error = ProviderError(f"{method} {url.partition('?')[0]}: Azure cannot be reached ({connection_error(broken)})")
                delay = wait if wait is not None else back_off(attempt) * self.pace
                if attempt > RETRIES or delay > LONGEST_DELAY:
                    raise error
                await self._wait(delay)
        except (AzureResponseError, ProviderError, OperationCancelledError) as ended:
            if lost and method == "PUT":
                raise OperationStartedError(ended) from ended
            raise

    async def _once(self, method: str, url: str, content: bytes | None, token: str) -> ArmResponse:
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if content is not None:
            headers["Content-Type"] = "application/json; charset=utf-8"
        async with self.session.request(method, url, data=content, headers=headers, timeout=TIMEOUT) as response:
            return ArmResponse(response.status, response.headers, await response.read())

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self.stopped.wait(), seconds)
        except TimeoutError:
            return
        raise OperationCancelledError


def _passing(error: Exception) -> bool:
    """Whether the same call may succeed later."""
    return isinstance(error, AzureResponseError) and (error.status in RETRIED or error.code == RETRIED_CONFLICT)


def _under_way(body: Json | None) -> bool:
    """Whether a resource says of itself that it is still being made."""
    state = ((body or {}).get("properties") or {}).get("provisioningState") if body else None
    return isinstance(state, str) and state not in ENDED
