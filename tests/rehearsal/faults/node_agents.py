"""Node agents as in the outage of December 2024: one connection per node, each listing all objects all the time.

`python node_agents.py PORT AUTHORITY TOKEN_FILE CONNECTIONS SECONDS` asks loopback alone, ends by itself, and prints as JSON how often each
status was answered. https://status.openai.com/incidents/ctrsv3lwd797
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections import Counter
from pathlib import Path

# Compressed, as Kubernetes' own clients ask for it: dear to the server, and cheap to whoever asks.
LISTS = ("/api/v1/pods", "/api/v1/secrets")
READ_BYTES = 1 << 20
OPENING_AT_ONCE = 32
REFUSED_SECONDS = 0.5
"""Wait after a refusal: shorter than Retry-After, as in carelessly written programs."""


async def agent(port: int, trust: ssl.SSLContext, token: str, until: float, opening: asyncio.Semaphore, answers: Counter[str]) -> None:
    """Run one node's agent until the time is over."""
    number = 0
    while time.monotonic() < until:
        try:
            async with opening:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, limit=READ_BYTES)
            while time.monotonic() < until:
                number += 1
                request = f"GET {LISTS[number % len(LISTS)]} HTTP/1.1"
                writer.write(f"{request}\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nAccept-Encoding: gzip\r\n\r\n".encode())
                status = await answer(reader)
                answers[str(status)] += 1
                if status != 200:
                    await asyncio.sleep(REFUSED_SECONDS)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            answers[type(error).__name__] += 1
            await asyncio.sleep(REFUSED_SECONDS)


async def answer(reader: asyncio.StreamReader) -> int:
    """Read and discard a response's body; return its status."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    if "transfer-encoding: chunked" in head:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            await skip(reader, size + 2)
        await skip(reader, 2)
    else:
        await skip(reader, int(head.partition("content-length:")[2].split()[0]))
    return int(head.split()[1])


async def skip(reader: asyncio.StreamReader, count: int) -> None:
    while count:
        data = await reader.read(min(count, READ_BYTES))
        if not data:
            raise ConnectionError
        count -= len(data)


async def main() -> None:
    port, authority, token, count, seconds = sys.argv[1:]
    until = time.monotonic() + float(seconds)
    trust, answers = ssl.create_default_context(cafile=authority), Counter[str]()
    opening = asyncio.Semaphore(OPENING_AT_ONCE)
    agents = [agent(int(port), trust, Path(token).read_text(), until, opening, answers) for _ in range(int(count))]
    # What still waits in a queue then is left there.
    _, waiting = await asyncio.wait([asyncio.create_task(one) for one in agents], timeout=float(seconds))
    for one in waiting:
        one.cancel()
    json.dump({**answers, "unanswered": len(waiting)}, sys.stdout)


if __name__ == "__main__":
    asyncio.run(main())
