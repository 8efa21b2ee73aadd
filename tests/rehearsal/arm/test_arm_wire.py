"""Malformed bytes on the wire are refused, in Azure's error format if they form a request, and never with a traceback."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
from urllib.parse import quote

import pytest
from arm_server import LOCATION, ArmServer
from hypothesis import given, settings
from hypothesis import strategies as st

VERSION = "api-version=2025-04-01"


def exchange(server: ArmServer, content: bytes, *, secure: bool = True) -> bytes:
    """Send bytes on a connection of their own, and read until the server has said all."""
    with socket.create_connection(server.address, timeout=20) as plain:
        connection = server.tls.wrap_socket(plain, server_hostname=server.address[0]) if secure else plain
        with connection:
            answered = b""
            try:
                connection.sendall(content)
                connection.settimeout(1)
                while chunk := connection.recv(65_536):
                    answered += chunk
            except (TimeoutError, ConnectionError, ssl.SSLError):
                pass
            return answered


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x00\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02 / HTTP/1.1\r\n\r\n",
        b"GET /%ff%fe%00 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET //..//../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET http://elsewhere/subscriptions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"POST /common/oauth2/v2.0/token HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /common/oauth2/v2.0/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 500 + b"\r\n",
        b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_no_bytes_make_it_fail(server: ArmServer, content: bytes) -> None:
    answered = exchange(server, content)
    assert b"Traceback" not in answered
    assert not answered.startswith(b"HTTP/1.1 5")
    assert server.ask("GET", "/healthz")[:2] == (200, "ok\n")


def test_a_client_without_tls_is_cut_off_and_others_are_served(server: ArmServer) -> None:
    assert b"200 OK" not in exchange(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", secure=False)
    assert server.ask("GET", "/healthz")[0] == 200


@settings(max_examples=40)
@given(
    st.lists(st.text(max_size=20), max_size=7), st.sampled_from(["GET", "PUT", "PATCH", "POST", "DELETE", "HEAD"]), st.binary(max_size=200)
)
def test_any_path_and_body_is_answered_in_azures_shape(server: ArmServer, parts: list[str], method: str, content: bytes) -> None:
    path = "/".join(["", "subscriptions", server.subscription, *(quote(part.encode("utf-8", "replace"), safe="") for part in parts)])
    status, body, _ = server.ask(method, f"{path}?{VERSION}", content, token=server.token())
    assert status < 500
    if status >= 400 and method != "HEAD":
        assert body["error"]["code"]
        assert body["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'"text"',
        b'{"location": NaN}',
        b'{"location": 1e999}',
        b'{"location": "\\ud800"}',
        b"\xff\xfe",
        b'{"tags": ' + b'{"a":' * 200 + b"1" + b"}" * 201,
        b"[" * 100_000,
        b'{"a": ' + b"9" * 5_000 + b"}",
    ],
)
def test_a_body_that_is_no_json_object_is_refused(server: ArmServer, body: bytes) -> None:
    path = f"/subscriptions/{server.subscription}/resourcegroups/never?{VERSION}"
    status, result, _ = server.ask("PUT", path, body, token=server.token())
    assert (status, result["error"]["code"]) == (400, "InvalidRequestContent")


def test_a_body_may_have_four_mebibytes_and_no_more_packed_or_not(server: ArmServer) -> None:
    path, token = f"/subscriptions/{server.subscription}/resourcegroups/large?{VERSION}", server.token()
    body = json.dumps({"location": LOCATION}).encode()
    assert server.ask("PUT", path, body + b" " * (4_194_304 - len(body)), token=token)[0] == 201
    status, result, _ = server.ask("PUT", path, body + b" " * (4_194_305 - len(body)), token=token)
    assert (status, result["error"]["code"]) == (413, "RequestContentTooLarge")
    bomb = gzip.compress(b" " * 64_000_000)
    assert server.ask("PUT", path, bomb, token=token, headers={"Content-Encoding": "gzip"})[0] == 413


def test_a_segment_that_hides_a_separator_reaches_no_other_resource(server: ArmServer) -> None:
    token = server.token()
    path = f"/subscriptions/{server.subscription}%2FresourceGroups/hidden?{VERSION}"
    status, body, _ = server.ask("GET", path, token=token)
    assert (status, body["error"]["code"]) == (400, "InvalidRequestUri")


def test_a_head_of_what_is_missing_has_no_body_and_the_connection_goes_on(server: ArmServer) -> None:
    lines = f"Host: x\r\nAuthorization: Bearer {server.token()}\r\n"
    path = f"/subscriptions/{server.subscription}/resourcegroups/missing?{VERSION}"
    output = exchange(
        server,
        f"HEAD {path} HTTP/1.1\r\n{lines}\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode(),
    )
    assert output.count(b"HTTP/1.1 ") == 2
    assert output.startswith(b"HTTP/1.1 404")
    assert output.endswith(b"ok\n")


def test_a_response_has_the_identifiers_that_its_client_requests(server: ArmServer) -> None:
    token, path = server.token(), f"/subscriptions/{server.subscription}?{VERSION}"
    numbers = {"x-ms-client-request-id": 1, "x-ms-correlation-request-id": 2}
    sent = {name: f"9f3f1a1e-0000-4000-8000-{number:012}" for name, number in numbers.items()}
    for where, status in ((path, 200), (f"/subscriptions/{server.subscription}/resourcegroups/none?{VERSION}", 404)):
        found = server.ask("GET", where, token=token, headers={**sent, "x-ms-return-client-request-id": "true"})
        assert found[0] == status
        assert {name: found[2][name] for name in sent} == sent
        assert found[2]["x-ms-request-id"] not in sent.values()
    _, _, plain = server.ask("GET", path, token=token, headers={**sent, "x-ms-correlation-request-id": "no GUID"})
    assert "x-ms-client-request-id" not in plain
    assert plain["x-ms-correlation-request-id"] == plain["x-ms-request-id"]
