"""Decides how a connection by TLS is opened, so that its socket is closed however that ends."""

from __future__ import annotations

import asyncio
import ssl

READ_BYTES = 2**16
"""asyncio's own default for lines."""


async def open_tls(
    host: str, port: int, context: ssl.SSLContext, limit: int = READ_BYTES
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Reader of lines up to limit bytes, and writer, to a server that the context trusts; OSError, of which ssl.SSLError is one.

    asyncio.open_connection that begins with TLS, cancelled in the turn of the loop in which the handshake ends, says goodbye and waits for
    the server's (SSLProtocol._start_shutdown, https://github.com/python/cpython/blob/3.11/Lib/asyncio/sslproto.py). A loop that ends before
    that comes leaves the socket open. So the handshake follows here, on a connection that is held and can be aborted.
    """
    reader, writer = await asyncio.open_connection(host, port, limit=limit)
    plain = writer.transport
    try:
        await writer.start_tls(context, server_hostname=host)
    except BaseException:
        plain.abort()
        raise
    return reader, writer
