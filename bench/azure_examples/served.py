"""An embedded Azure behind loopback HTTP, and a client of it."""

from __future__ import annotations

import asyncio
import http.client
import json
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from bench.azure_examples.example import SUBSCRIPTION, TENANT
from rehearsal.arm.attested_data import create
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.server import AzureServer
from rehearsal.arm.time_source import TimeSource
from rehearsal.arm.tokens import MANAGEMENT, ClientIdentity, IdentityPlatform
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.registry import new_cloud

SECONDS = 20.0
"""Real time limit of a request."""
MOST_SECONDS = 30 * 86_400.0
"""Azure's time in which every operation must end, in seconds."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; body is None without one."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str:
        """Return the error code, empty without an error."""
        error = (self.body or {}).get("error") if isinstance(self.body, dict) else None
        return str((error or {}).get("code", ""))

    @property
    def message(self) -> str:
        error = (self.body or {}).get("error") if isinstance(self.body, dict) else None
        return str((error or {}).get("message", ""))


class Served:
    """A server whose embedded Azure can be replaced by an empty one."""

    def __init__(self, identity: ClientIdentity) -> None:
        self._platform = IdentityPlatform(TENANT, "", identity)
        self._authorization = ""
        self._server: AzureServer | None = None
        self._connection: http.client.HTTPConnection | None = None

    def listen(self, host: str, port: int) -> None:
        """Set the address at which the server listens."""
        self._platform = IdentityPlatform(TENANT, f"http://{host}:{port}", self._platform.identity)
        token = self._platform.issue(self._platform.identity.client, MANAGEMENT[0])["access_token"]
        self._authorization = f"Bearer {token}"
        self._connection = http.client.HTTPConnection(host, port, timeout=SECONDS)

    def empty(self) -> Cloud:
        """Replace the embedded Azure by an empty one, and return its model."""
        cloud = new_cloud([SUBSCRIPTION], TENANT)
        self._server = AzureServer(LiveModel(cloud, TimeSource(0, cloud.now)), self._platform, lambda: create(datetime.now(UTC)))
        return cloud

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        """Return the response of the present Azure."""
        if self._server is None:
            return web.Response(status=503)
        return await self._server(request)

    def call(self, method: str, target: str, body: Any = None, if_match: str = "") -> Answer:
        """Send one request; target is the path with the query, or a URL of this server."""
        if self._connection is None or self._server is None:
            raise RuntimeError("no Azure is served")
        headers = {"Authorization": self._authorization}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if if_match:
            headers["If-Match"] = if_match
        path = target.removeprefix(self._platform.base)
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        text = response.read()
        found = {key.lower(): value for key, value in response.getheaders()}
        return Answer(response.status, found, json.loads(text) if text.strip() else None)

    def hang_up(self) -> None:
        """Close the client's connection."""
        if self._connection is not None:
            self._connection.close()

    def finish(self) -> None:
        """Advance Azure's time until no operation runs."""
        if self._server is None:
            return
        self._server.live.cloud.run_until_idle(MOST_SECONDS)
        self.finish_clock()

    def finish_clock(self) -> None:
        """Set the server's clock to the time of its model."""
        if self._server is not None:
            live = self._server.live
            live.clock.move(live.cloud.now - live.clock.now())


@contextmanager
def served() -> Iterator[Served]:
    """Serve an embedded Azure on a free port of loopback."""
    with tempfile.TemporaryDirectory() as folder:
        one = Served(ClientIdentity.load_or_create(Path(folder)))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(_start(one), loop).result(SECONDS)
    try:
        yield one
    finally:
        one.hang_up()
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS)
        loop.close()


async def _start(one: Served) -> web.ServerRunner:
    runner = web.ServerRunner(web.Server(one.respond))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    one.listen(*runner.addresses[0][:2])
    return runner
