"""HTTP client of Azure Resource Manager: retries, and the wait for the end of operations.

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
from rehearsal.azure.azure_native_requests import LONGEST_DELAY, POLL_SECONDS, RETRIED, RETRIED_CONFLICT, RETRIES, back_off
from rehearsal.program.pulumi_values import Json
from rehearsal.pulumi_cli.providers.azure_native.sign_in import ServicePrincipal, connection_error
from rehearsal.pulumi_cli.providers.provider_interface import ProviderError


@dataclass(frozen=True, slots=True)
class ArmResponse:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def body(self) -> Json | None:
        """Return the JSON object in the body; None where there is none."""
        try:
            found = json.loads(self.content) if self.content else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None


class AzureResponseError(GpufleetError):
    """An error response or a failed operation: HTTP status (0 for an operation), Azure's code, and a sentence."""

    def __init__(self, status: int, code: str, sentence: str) -> None:
        self.status, self.code = status, code
        super().__init__(f"{code}: {sentence}" if code else sentence)

    @classmethod
    def of_response(cls, response: ArmResponse) -> AzureResponseError:
        """Build the error of a response with an error status."""
        error = (response.body or {}).get("error")
        if not isinstance(error, Mapping):
            text = response.content[:300].decode(errors="replace").strip()
            return cls(response.status, "", f"Azure responded with {response.status}{f': {text}' if text else ''}")
        return cls(response.status, str(error.get("code", "")), _error_sentence(error))

    @classmethod
    def of_operation(cls, status: str, body: Json) -> AzureResponseError:
        """Build the error of a failed operation."""
        error = body.get("error")
        if not isinstance(error, Mapping):
            return cls(0, status, "Azure gives no reason")
        return cls(0, str(error.get("code", status)), _error_sentence(error))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Azure requests to wait; None where no header is readable.

    https://github.com/Azure/azure-sdk-for-go/blob/0f9d9f4df19f46db7ff7c6ea7d5a3034f09e737e/sdk/azcore/internal/shared/shared.go
    """
    for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("Retry-After", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    return None


def _error_sentence(error: Mapping[str, Any]) -> str:
    """Return Azure's message and those of its details as one line."""
    message = " ".join(str(error.get("message", "")).split())
    details = [one for one in error.get("details") or () if isinstance(one, Mapping)]
    more = [
        f"{one.get('code', '')}: {_error_sentence(one)}" for one in details if one.get("message") and str(one["message"]) not in message
    ]
    return f"{message} ({'; '.join(more[:5])})" if more else message


TIMEOUT = aiohttp.ClientTimeout(total=None, connect=30, sock_read=100)
FASTEST_POLL_SECONDS, FASTEST_POLL_SHARE = 0.25, 0.25
"""Shortest seconds between two polls while Azure's clock is fast, and the share of an operation's duration so far that limits them."""
FINAL_STATES = frozenset({"Succeeded", "Failed", "Canceled", "Cancelled"})


class OperationCancelledError(GpufleetError):
    """The engine cancelled all operations."""


class OperationStartedError(GpufleetError):
    """A PUT that Azure accepted, or may have accepted, and that failed; error is the reason."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


@dataclass
class ResourceManagerClient:
    """Client of Azure Resource Manager at a base URL, for one account.

    pace is the number of real seconds per second of Azure: an Azure with a faster clock requests waits in milliseconds.
    """

    session: aiohttp.ClientSession
    account: ServicePrincipal
    base: str
    stopped: asyncio.Event
    pace: float = 1.0

    async def get(self, path: str, version: str, *, ignore_stop: bool = False) -> Json | None:
        """Return a resource's body, None where it does not exist; AzureResponseError, ProviderError or OperationCancelledError."""
        try:
            return (await self._send("GET", self._url(path, version), ignore_stop=ignore_stop)).body
        except AzureResponseError as refused:
            if refused.status == 404:
                return None
            raise

    async def put(self, path: str, version: str, body: Mapping[str, Any], query: str = "") -> None:
        """Create or update a resource and wait for the end; OperationStartedError for a failure after Azure may have accepted it."""
        response = await self._send("PUT", self._url(path, version) + query, body)
        try:
            await self._wait_for_end("PUT", response, self._url(path, version))
        except (AzureResponseError, ProviderError, OperationCancelledError) as error:
            raise OperationStartedError(error) from error

    async def delete(self, path: str, version: str) -> None:
        """Delete a resource and wait for the end; one that does not exist counts as deleted."""
        try:
            response = await self._send("DELETE", self._url(path, version))
            await self._wait_for_end("DELETE", response, "")
        except AzureResponseError as refused:
            if refused.status != 404:
                raise

    def _url(self, path: str, version: str) -> str:
        return f"{self.base}{path}?api-version={version}"

    async def _wait_for_end(self, method: str, response: ArmResponse, resource: str) -> None:
        """Poll an operation until it ends; AzureResponseError where it failed."""
        status_url, result_url = response.headers.get("Azure-AsyncOperation"), response.headers.get("Location")
        began = time.monotonic()
        while status_url or (result_url and response.status == 202) or (resource and _is_provisioning(response.body)):
            shortest = min(FASTEST_POLL_SECONDS, (time.monotonic() - began) * FASTEST_POLL_SHARE)
            await self._wait(max(shortest, self._poll_seconds(method, response)))
            url = str(status_url or result_url or resource)
            response = await self._send("GET", url)
            if status_url is None:
                result_url = response.headers.get("Location", result_url)
                continue
            status = str((response.body or {}).get("status") or "")
            if not status:
                raise AzureResponseError(0, "", f"{url.partition('?')[0]} does not contain the operation's status; run the update again")
            if status in FINAL_STATES:
                if status != "Succeeded":
                    raise AzureResponseError.of_operation(status, response.body or {})
                return

    def _poll_seconds(self, method: str, response: ArmResponse) -> float:
        wait = retry_after_seconds(response.headers)
        if "retry-after-ms" in response.headers and wait is not None:
            self.pace = min(1.0, wait / POLL_SECONDS["PUT"])
        return POLL_SECONDS[method] if wait is None else wait

    async def _send(self, method: str, url: str, body: Mapping[str, Any] | None = None, *, ignore_stop: bool = False) -> ArmResponse:
        """Send one call, with the retries of azure-native.

        Raise AzureResponseError, or ProviderError without a response; OperationStartedError for a PUT without a response or with a server
        error, because Azure may have accepted it.
        """
        content = None if body is None else json.dumps(body).encode()
        token, attempt, lost = await self.account.token(), 0, False
        try:
            while True:
                attempt += 1
                wait: float | None = None
                if self.stopped.is_set() and not ignore_stop:
                    raise OperationCancelledError
                try:
                    response = await self._once(method, url, content, token)
                    if response.status < 400:
                        return response
                    error: Exception = AzureResponseError.of_response(response)
                    if response.status == 401 and attempt == 1:
                        token = await self.account.token(rejected=token)
                        continue
                    lost = lost or response.status >= 500
                    wait = retry_after_seconds(response.headers)
                    if not _is_transient(error):
                        raise error
                except (aiohttp.ClientError, TimeoutError) as broken:
                    lost = lost or not isinstance(broken, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
                    error = ProviderError(f"{method} {url.partition('?')[0]}: Azure cannot be reached ({connection_error(broken)})")
                delay = wait if wait is not None else back_off(attempt) * self.pace
                if attempt > RETRIES or delay > LONGEST_DELAY:
                    raise error
                await self._wait(delay)
        except (AzureResponseError, ProviderError, OperationCancelledError) as final:
            if lost and method == "PUT":
                raise OperationStartedError(final) from final
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


def _is_transient(error: Exception) -> bool:
    """Return whether the same call may succeed later."""
    return isinstance(error, AzureResponseError) and (error.status in RETRIED or error.code == RETRIED_CONFLICT)


def _is_provisioning(body: Json | None) -> bool:
    """Return whether the resource's provisioning state is not final."""
    state = ((body or {}).get("properties") or {}).get("provisioningState") if body else None
    return isinstance(state, str) and state not in FINAL_STATES
