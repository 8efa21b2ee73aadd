"""However the metadata service answers, the program has an answer or a refusal within its time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cni.node import metadata_service
from cni.node.errors import NodeNetworkError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n"


@contextmanager
def serving(*pieces: bytes, pause: float = 0.0) -> Iterator[str]:
    """A server that answers one connection with pieces, a pause before each; its URL."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connected, _ = listening.accept()
        with connected:
            connected.recv(65_536)
            try:
                for piece in pieces:
                    time.sleep(pause)
                    connected.sendall(piece)
            except OSError:
                # The program has had enough.
                return

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        thread.join()
        listening.close()


def refusal(url: str) -> str:
    with pytest.raises(NodeNetworkError) as refused:
        metadata_service.request_machine(url, ())
    return str(refused.value)


@pytest.mark.parametrize("pieces", [[b"H"] * 40, [HEAD] + [b" "] * 40, [HEAD[:20]] + [b"x: y\r\n"] * 40])
def test_an_answer_that_drips_is_given_up_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]) -> None:
    monkeypatch.setattr(metadata_service, "SECONDS", 0.5)
    begun = time.monotonic()
    with serving(*pieces, pause=0.1) as url:
        assert "no whole answer within" in refusal(url)
        assert time.monotonic() - begun < 2


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        ([b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"], "HTTP 302; HTTP 200"),
        ([b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"], "HTTP 404; HTTP 200"),
        ([b"SSH-2.0-OpenSSH_9.2\r\n"], "no answer (BadStatusLine)"),
        ([b""], "no answer (RemoteDisconnected)"),
        ([HEAD, b"{}"], "cut off 998 bytes before its end"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"], "no answer"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe"], "the answer is no JSON"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], "the answer is no JSON"),
        ([b"HTTP/1.1 200 OK\r\n\r\n", b"[" * 100_000], "the answer is no JSON"),
        ([b"HTTP/1.1 200 OK\r\n\r\n", b" " * 2_000_000], "an answer of more than 1048576 bytes"),
    ],
)
def test_an_answer_that_is_none_is_refused_with_what_it_was(pieces: list[bytes], why: str) -> None:
    with serving(*pieces) as url:
        assert why in refusal(url)


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}") as url:
        assert "an object that has interface" in refusal(url)
