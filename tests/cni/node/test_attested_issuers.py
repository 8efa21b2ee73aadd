"""A machine adds the issuers' certificates that its attested data lacks, and downloads them from listed hosts only."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from cni.node import certificate
from rehearsal.arm import attested_data as model

NOW = datetime.datetime(2026, 11, 24, 12, tzinfo=datetime.UTC)


@contextmanager
def serving(answers: dict[str, tuple[int, bytes]]) -> Iterator[tuple[str, list[str]]]:
    """A server of certificates; its address, and the paths that were requested."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            status, body = answers.get(self.path, (404, b""))
            self.send_response(status)
            if status == 302:
                self.send_header("Location", body.decode())
            self.send_header("Content-Length", "0" if status == 302 else str(len(body)))
            self.end_headers()
            self.wfile.write(b"" if status == 302 else body)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def chain_of(host: str, path: str = "/issuer.crt") -> model.Signer:
    return model.create(NOW, issuer_url=f"http://{host}{path}")


@pytest.mark.parametrize("form", [serialization.Encoding.DER, serialization.Encoding.PEM])
def test_a_missing_issuer_is_downloaded_in_either_form(monkeypatch: pytest.MonkeyPatch, form: serialization.Encoding) -> None:
    answers: dict[str, tuple[int, bytes]] = {}
    with serving(answers) as (host, asked):
        monkeypatch.setattr(certificate, "ISSUER_HOSTS", frozenset({host}))
        chain = chain_of(host)
        answers["/issuer.crt"] = (200, chain.issuer.public_bytes(form))
        found = certificate.missing_issuers(chain.sign(b"{}", ()), print)
    assert x509.load_pem_x509_certificates(found.encode()) == [chain.issuer]
    assert asked == ["/issuer.crt"]


def test_a_document_with_its_issuer_needs_no_download(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}) as (host, asked):
        monkeypatch.setattr(certificate, "ISSUER_HOSTS", frozenset({host}))
        assert certificate.missing_issuers(chain_of(host).sign(b"{}"), print) == ""
    assert asked == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, b""), "HTTP Error 404"),
        ((302, b"http://127.0.0.1:1/elsewhere"), "HTTP Error 302"),
        ((200, b"no certificate"), "openssl x509"),
        ((200, b"x" * 100_000), ""),
    ],
)
def test_a_failed_download_is_said_and_stops_nothing(monkeypatch: pytest.MonkeyPatch, answer: tuple[int, bytes], said: str) -> None:
    lines: list[str] = []
    with serving({"/issuer.crt": answer}) as (host, asked):
        monkeypatch.setattr(certificate, "ISSUER_HOSTS", frozenset({host}))
        assert certificate.missing_issuers(chain_of(host).sign(b"{}", ()), lines.append) == ""
    assert asked == ["/issuer.crt"]
    assert said in "".join(lines)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/metadata/instance",
        "http://www.microsoft.com.example.org/issuer.crt",
        "http://www.microsoft.com:8080/issuer.crt",
        "http://www.microsoft.com@example.org/issuer.crt",
        "ldap://www.microsoft.com/issuer",
        "file:///etc/passwd",
    ],
)
def test_another_host_is_not_asked(url: str) -> None:
    lines: list[str] = []
    assert certificate.download_issuer(url, lines.append) == ""
    assert "Microsoft does not list the host" in lines[0]
