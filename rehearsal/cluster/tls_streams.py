"""Decides how a connection by TLS is opened, so that its socket is closed however that ends."""

from __future__ import annotations

import asyncio
import ssl

READ_BYTES = 2**16


async def open_tls(
    host: str, port: int, context: ssl.SSLContext, limit: int = READ_BYTES
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Reader of lines up to limit bytes, and writer, to a server that the context trusts; OSError, ssl.SSLError.

    Where it is cancelled in the very turn of the loop in which the handshake ends, asyncio.open_connection with TLS only begins to say
    goodbye, which the server must answer; a loop that ends before leaves the socket open. So the handshake follows on a connection that is
    held here.
    """
    reader, writer = await asyncio.open_connection(host, port, limit=limit)
    plain = writer.transport
    try:
        await writer.start_tls(context, server_hostname=host)
    except BaseException:
        plain.abort()
        raise
    return reader, writer
