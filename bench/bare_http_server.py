"""Bare HTTPS server with a constant answer: the cost of aiohttp alone, a lower limit for the embedded Azure."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from aiohttp import web

from rehearsal.arm.tls import TlsFiles, server_context


async def serve(folder: Path, size: int) -> None:
    """Serve until SIGTERM, and print the base URL when ready; the body has size bytes."""
    body = b"{" + b" " * (size - 2) + b"}"
    headers = {f"x-ms-constant-{number}": "00000000-0000-0000-0000-000000000000" for number in range(3)}

    async def constant(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, headers=headers, content_type="application/json", charset="utf-8")

    runner = web.ServerRunner(web.Server(constant, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(TlsFiles.below(folder), "127.0.0.1"), backlog=512)
    await site.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(f"ready https://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
