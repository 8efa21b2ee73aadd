"""A connection by TLS leaves no socket open, whenever it is given up."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from backend_server import self_signed
from waiting import DEADLINE_SECONDS

from rehearsal.local_cluster.tls_streams import open_tls


class Server:
    """Answers one handshake when it may, then echoes a line, and never says goodbye."""

    def __init__(self, pem: Path) -> None:
        self.trust = ssl.create_default_context(cafile=str(pem))
        self.trust.check_hostname = False
        self.greeted: Callable[[], object] = lambda: None
        self.may_answer, self.answered, self.left = threading.Event(), threading.Event(), threading.Event()
        self._offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._offered.load_cert_chain(pem)

    def serve(self, listener: socket.socket) -> None:
        listener.settimeout(DEADLINE_SECONDS)
        # Whoever connects may be gone at any moment.
        with contextlib.suppress(OSError):
            accepted, _ = listener.accept()
            with accepted:
                self._answer(accepted)

    def _answer(self, accepted: socket.socket) -> None:
        accepted.settimeout(DEADLINE_SECONDS)
        accepted.recv(1, socket.MSG_PEEK)
        self.greeted()
        self.may_answer.wait(DEADLINE_SECONDS)
        accepted.setblocking(False)
        with self._offered.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as secured:
            # It goes on once the client has answered, which only one that sleeps has surely not done.
            with contextlib.suppress(ssl.SSLWantReadError):
                secured.do_handshake()
            self.answered.set()
            secured.settimeout(DEADLINE_SECONDS)
            secured.sendall(secured.recv(100))
            self.left.wait(DEADLINE_SECONDS)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, Server]]:
    """A server and its port."""
    made = Server(self_signed(tmp_path / "server.pem"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=made.serve, args=(listener,))
        thread.start()
        yield listener.getsockname()[1], made
        made.may_answer.set()
        made.left.set()
        # One to whom nobody came waits no longer.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_connection_that_is_given_up_as_its_handshake_ends_leaves_no_socket(server: tuple[int, Server]) -> None:
    port, made = server

    async def given_up() -> bool:
        loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)

        def sleep_through_both() -> None:
            """Let the loop hear in one turn that the server has answered and that the time is over."""
            made.may_answer.set()
            assert made.answered.wait(DEADLINE_SECONDS)
            limit.reschedule(loop.time() + 0.02)
            time.sleep(0.1)

        made.greeted = lambda: loop.call_soon_threadsafe(sleep_through_both)
        try:
            async with limit:
                await open_tls("127.0.0.1", port, made.trust)
        except TimeoutError:
            return True
        return False

    assert asyncio.run(given_up())
    # A socket that was left open says so, which fails the test.
    gc.collect()


def test_what_is_written_to_a_connection_arrives_and_is_read_from_it(server: tuple[int, Server]) -> None:
    port, made = server
    made.may_answer.set()

    async def asked() -> bytes:
        reader, writer = await open_tls("127.0.0.1", port, made.trust)
        writer.write(b"said\n")
        line = await reader.readline()
        writer.transport.abort()
        return line

    assert asyncio.run(asked()) == b"said\n"
    gc.collect()


def test_a_server_that_nobody_vouches_for_is_refused(server: tuple[int, Server]) -> None:
    port, made = server
    made.may_answer.set()
    with pytest.raises(ssl.SSLCertVerificationError):
        asyncio.run(open_tls("127.0.0.1", port, ssl.create_default_context()))
    gc.collect()
