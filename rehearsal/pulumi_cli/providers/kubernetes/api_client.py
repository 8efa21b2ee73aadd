"""Asynchronous HTTP client of an API server, with a bounded time for repeated requests.

The engine applies dozens of objects at once, and each may wait for minutes. In the event loop that serves the engine's calls, such a wait
costs no thread. kubernetes.aio would do the same, but its import costs 1.2 s of CPU and 60 MB in each provider process.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

import aiohttp

from lifecycle.kubernetes_api.connection import (
    FIRST_WAIT_SECONDS,
    JSON,
    LONGEST_WAIT_SECONDS,
    REQUEST_SECONDS,
    RETRIED,
    UNAUTHORIZED,
    ApiResponse,
    ApiServerUnreachableError,
    parse_response,
)
from lifecycle.kubernetes_api.kubeconfig import ApiAccess

CONNECT_SECONDS = 10.0
CONNECTIONS = 16
"""Connections to one server at a time: as many as the objects that the engine works on at once by default."""
NOT_EXECUTED = frozenset({429, 503})
"""Statuses that prove that nothing was done, so that a creation, too, may be repeated."""

Report = Callable[[str], Awaitable[None]]


class ApiClient:
    """Client of one API server. Requests run concurrently."""

    def __init__(self, access: ApiAccess) -> None:
        self.access = access
        self._session: aiohttp.ClientSession | None = None
        self._headers = access.headers

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    @property
    def address(self) -> str:
        """Return the server's address."""
        return f"https://{self.access.host}:{self.access.port}"

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
        accept: str = JSON,
        *,
        patience: float,
        report: Report | None = None,
    ) -> ApiResponse:
        """Return the server's response, whatever its status.

        Raise ApiServerUnreachableError where there is none after `patience` seconds, or where the server rejects the credentials.
        A POST that may have been executed is not repeated: the second one would take the first one's object for another client's.
        """
        # A name may contain characters that divide a URL.
        path = quote(path, safe="/:@")
        text = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        loop = asyncio.get_running_loop()
        end, wait = loop.time() + patience, FIRST_WAIT_SECONDS
        while True:
            response, reason, retry_after = await self._once(method, path, query, text, {"Content-Type": content_type, "Accept": accept})
            if response is not None and response.status == UNAUTHORIZED:
                raise ApiServerUnreachableError(self.address, "rejects the credentials", "renew the kubeconfig's certificate or token")
            if response is not None and (response.status not in RETRIED or (method == "POST" and response.status not in NOT_EXECUTED)):
                return response
            pause = max(retry_after, wait * random.uniform(0.5, 1.0))  # noqa: S311 (spreads callers, not security)
            if loop.time() + pause > end:
                remedy = "check that its API servers run and can be reached from this machine"
                raise ApiServerUnreachableError(self.address, f"{method} {path}: {reason}", remedy)
            if report is not None:
                await report(f"{reason}; retry in {pause:.1f} s")
            await asyncio.sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    async def _once(
        self, method: str, path: str, query: Mapping[str, str] | None, text: bytes | None, headers: Mapping[str, str]
    ) -> tuple[ApiResponse | None, str, float]:
        """Send a request once; return the response if there is one, the reason for a failure, and the server's Retry-After in seconds."""
        try:
            async with self._open_session().request(
                method, path, params=query, data=text, headers={**headers, **self._headers}, server_hostname=self.access.name
            ) as response:
                raw = await response.read()
        except aiohttp.ClientConnectorCertificateError as error:
            reason = f"its certificate is not trusted: {error.certificate_error}"
            raise ApiServerUnreachableError(self.address, reason, "renew the kubeconfig") from error
        except aiohttp.ClientConnectorError as error:
            number = error.os_error.errno or 0
            return None, os.strerror(number) if number > 0 else str(error.os_error.strerror), 0.0
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if method == "POST":
                reason = f"{method} {path}: the response was lost ({type(error).__name__})"
                remedy = "run the update again; if the object was created, `pulumi import` adds it to the state"
                raise ApiServerUnreachableError(self.address, reason, remedy) from error
            return None, type(error).__name__, 0.0
        retry_after = response.headers.get("Retry-After", "")
        found = parse_response(response.status, response.headers.getall("Warning", []), raw)
        return found, f"HTTP {found.status} {found.message}"[:200], float(retry_after) if retry_after.isdigit() else 0.0

    def _open_session(self) -> aiohttp.ClientSession:
        """Return the session; the first call creates it, because it needs a running loop."""
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self.access.tls, limit=CONNECTIONS)
            limits = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(self.address, connector=connector, timeout=limits, auto_decompress=True)
        return self._session
