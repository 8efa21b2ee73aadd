"""Listeners on loopback: with TLS, and without TLS for the instance metadata service, as in Azure."""

from __future__ import annotations

import asyncio
import functools
import gc
import ipaddress
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from components.errors import GpufleetError
from rehearsal.arm.attested_data import load_or_create
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.server import AzureServer
from rehearsal.arm.tls import TlsFiles, server_context
from rehearsal.arm.tokens import ClientIdentity, IdentityPlatform

BACKLOG = 512
"""Connections that may wait to be accepted."""
IDLE_SECONDS = 120.0
"""Seconds after which a connection without requests is closed."""
GRACE_SECONDS = 2.0
"""Seconds that running requests have left when the server ends."""
COLLECT = (50_000, 20, 100)
"""Thresholds of the garbage collector. A model of 22,500 machines has millions of objects and hardly any reference cycles."""


class ListenAddressError(GpufleetError, ValueError):
    """An address on which the server does not listen."""


@dataclass(frozen=True)
class ServerAddresses:
    """Addresses of a server and the identity of its client: base URL, certificate authority, base URL of the metadata service, identity."""

    base: str
    authority: Path
    metadata: str
    identity: ClientIdentity


def read_address(text: str) -> tuple[str, int]:
    """Return host and port of HOST:PORT; raise ListenAddressError if it is invalid or not a loopback address."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65_535:
        raise ListenAddressError(f"{text!r} is no address to listen on; give 127.0.0.1:PORT, with port 0 for any that is free")
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise ListenAddressError(f"{host!r} is no address of this machine; give 127.0.0.1:{port}") from None
    if not loopback:
        raise ListenAddressError(
            f"{host} can be reached from other machines, and whoever reaches the embedded Azure can read its secrets; give 127.0.0.1:{port}"
        )
    return ("127.0.0.1" if host == "localhost" else host), int(port)


@asynccontextmanager
async def run_servers(live: LiveModel, folder: Path, address: tuple[str, int], metadata_port: int) -> AsyncIterator[ServerAddresses]:
    """Serve requests while the context is open.

    folder contains keys and certificates. Raises OSError if an address is in use, and ValueError if a file in the folder is invalid.
    """
    identity = ClientIdentity.load_or_create(folder)
    with _bound(address) as secure, _bound((address[0], metadata_port)) as plain:
        base, metadata = f"https://{_shown(secure)}", f"http://{_shown(plain)}"
        files = TlsFiles.below(folder)
        signer = functools.cache(functools.partial(load_or_create, folder))
        server = AzureServer(live, IdentityPlatform(live.cloud.tenant, base, identity), signer)
        quiet = logging.getLogger("rehearsal.arm")
        # The client receives its own errors in the response.
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        servers = [
            web.Server(handler, access_log=None, logger=quiet, keepalive_timeout=IDLE_SECONDS) for handler in (server, server.metadata_only)
        ]
        runners = [web.ServerRunner(one, shutdown_timeout=GRACE_SECONDS) for one in servers]
        for runner in runners:
            await runner.setup()
        try:
            await web.SockSite(runners[0], secure, ssl_context=server_context(files, address[0]), backlog=BACKLOG).start()
            await web.SockSite(runners[1], plain, backlog=BACKLOG).start()
            yield ServerAddresses(base, files.authority, metadata, identity)
        finally:
            transports = [one.transport for each in servers for one in each.connections if one.transport is not None]
            for runner in runners:
                await runner.cleanup()
            for transport in transports:
                # An orderly end of TLS waits for a client, which the loop's end does not.
                transport.abort()
            await asyncio.sleep(0)


async def serve(
    live: LiveModel, folder: Path, address: tuple[str, int], metadata_port: int, ready: Callable[[ServerAddresses], None]
) -> bool:
    """Serve until SIGINT or SIGTERM, then write a snapshot; return whether it was written.

    ready is called when the servers accept requests. Raises the errors of run_servers.
    """
    async with run_servers(live, folder, address, metadata_port) as listening:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        # Most of a large model lives long, and each garbage collection would traverse it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(*COLLECT)
        ready(listening)
        await stop.wait()
    return live.snapshot()


def _bound(address: tuple[str, int]) -> socket.socket:
    """Return a socket bound to an address."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def _shown(bound: socket.socket) -> str:
    host, port = bound.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
