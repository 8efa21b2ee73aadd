"""TLS connections of asyncio whose sockets are closed in every case."""

from __future__ import annotations

import asyncio
import ssl

READ_BYTES = 2**16
"""asyncio's default limit of a line."""


async def open_tls(
    host: str, port: int, context: ssl.SSLContext, limit: int = READ_BYTES
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a reader of lines up to limit bytes and a writer to a trusted server; raise OSError, for example ssl.SSLError.

    If asyncio.open_connection with TLS is cancelled in the loop's turn in which the handshake ends, it waits for the server's TLS shutdown
    (SSLProtocol._start_shutdown, https://github.com/python/cpython/blob/3.11/Lib/asyncio/sslproto.py). A loop that ends before leaves the
    socket open. So the handshake follows separately, on a connection that can be aborted.
    """
    reader, writer = await asyncio.open_connection(host, port, limit=limit)
    plain = writer.transport
    try:
        await writer.start_tls(context, server_hostname=host)
    except BaseException:
        plain.abort()
        raise
    return reader, writer
