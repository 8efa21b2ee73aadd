"""How one request to an API server is made without holding up others, and how long one that may yet succeed is repeated.

It uses aiohttp instead of threads with the connection of rehearsal.local_cluster.objects: an engine applies dozens of objects at once. Each
may wait for minutes and would hold a thread for as long. In the event loop that serves the engine's calls, waiting costs nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

import aiohttp

from rehearsal.local_cluster.objects.connection import (
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
from rehearsal.local_cluster.objects.kubeconfig import ApiAccess

CONNECT_SECONDS = 10.0
CONNECTIONS = 16
"""Connections to one server at a time, as many as the engine has objects under way by default."""
UNTOUCHED = frozenset({429, 503})
"""Answers after which it is certain that nothing was done, so that a creation, too, may be repeated."""

Say = Callable[[str], Awaitable[None]]


class Api:
    """An API server. Requests run side by side."""

    def __init__(self, access: ApiAccess) -> None:
        self.access = access
        self._session: aiohttp.ClientSession | None = None
        self._headers = access.headers

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()

    @property
    def where(self) -> str:
        """The server's address."""
        return f"https://{self.access.host}:{self.access.port}"

    async def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: object = None,
        kind: str = JSON,
        accept: str = JSON,
        *,
        patience: float,
        say: Say | None = None,
    ) -> ApiResponse:
        """The server's answer, good or bad; NoAnswer where patience (seconds) ended before it had one, or it does not know the caller.

        A POST that was sent and may have been done is not repeated: what it made would be taken for somebody else's.
        """
        # A name may hold what divides a URL.
        path = quote(path, safe="/:@")
        text = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        loop = asyncio.get_running_loop()
        end, wait = loop.time() + patience, FIRST_WAIT_SECONDS
        while True:
            answer, reason, after = await self._once(method, path, query, text, {"Content-Type": kind, "Accept": accept})
            if answer is not None and answer.status == UNAUTHORIZED:
                raise ApiServerUnreachableError(self.where, "rejects the credentials", "renew the kubeconfig's certificate or token")
            if answer is not None and (answer.status not in RETRIED or (method == "POST" and answer.status not in UNTOUCHED)):
                return answer
            pause = max(after, wait * random.uniform(0.5, 1.0))  # noqa: S311 (spreads callers, guards nothing)
            if loop.time() + pause > end:
                raise ApiServerUnreachableError(
                    self.where, f"{method} {path}: {reason}", "see that its API servers run and can be reached from here"
                )
            if say is not None:
                await say(f"{reason}; retry in {pause:.1f} s")
            await asyncio.sleep(pause)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)

    async def _once(
        self, method: str, path: str, query: Mapping[str, str] | None, text: bytes | None, headers: Mapping[str, str]
    ) -> tuple[ApiResponse | None, str, float]:
        """One try: the answer if there was one, why it may be none, and for how many seconds the server asks to be left alone."""
        try:
            async with self._opened().request(
                method, path, params=query, data=text, headers={**headers, **self._headers}, server_hostname=self.access.name
            ) as response:
                raw = await response.read()
        except aiohttp.ClientConnectorCertificateError as error:
            shown = str(error.certificate_error)
            raise ApiServerUnreachableError(
                self.where, f"shows a certificate that is not trusted: {shown}", "renew the kubeconfig"
            ) from error
        except aiohttp.ClientConnectorError as error:
            number = error.os_error.errno or 0
            return None, os.strerror(number) if number > 0 else str(error.os_error.strerror), 0.0
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            if method == "POST":
                remedy = "run the update again; what was made meanwhile, `pulumi import` takes into the state"
                raise ApiServerUnreachableError(
                    self.where, f"{method} {path}: the answer got lost ({type(error).__name__})", remedy
                ) from error
            return None, type(error).__name__, 0.0
        after = response.headers.get("Retry-After", "")
        answer = parse_response(response.status, response.headers.getall("Warning", []), raw)
        return answer, f"HTTP {answer.status} {answer.message}"[:200], float(after) if after.isdigit() else 0.0

    def _opened(self) -> aiohttp.ClientSession:
        """The session, made where a loop runs."""
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self.access.tls, limit=CONNECTIONS)
            limits = aiohttp.ClientTimeout(total=REQUEST_SECONDS, sock_connect=CONNECT_SECONDS)
            self._session = aiohttp.ClientSession(self.where, connector=connector, timeout=limits, auto_decompress=True)
        return self._session
