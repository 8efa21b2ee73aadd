"""Renewal of leaf certificates in the vaults of a model, as an update does it, and reading of the certificates that peers present."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from cryptography import x509

from components.pki_provider import LeafProvider
from components.plan.model import ClusterPlan
from components.x509 import Authority, Subject, issue_leaf, renewal_due
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.stack_records import stacks_of
from rehearsal.azure.vaults.data_plane import set_secret
from rehearsal.azure.vaults.key_vaults import vault_named


def renew(cloud: Cloud, stack: str, cluster: ClusterPlan, names: tuple[str, ...]) -> dict[str, int]:
    """Renew leaves by their provider, write them into every vault that has them; serial numbers of the new ones."""
    serials = {}
    records = {record.name: record for record in stacks_of(cloud).of(stack).records.values() if record.type.endswith(":Certificate")}
    for name in names:
        (record,) = [one for logical, one in records.items() if logical.endswith(f"-pki-{name}")]
        assert record.kept
        old = record.kept["outputs"]
        new = LeafProvider().update(record.id, old, record.kept["inputs"]).outs
        assert new
        assert not renewal_due(new["issued_at"], new["not_after"], x509_of(new["certificate"]).not_valid_before_utc)
        assert new["private_key"] == old["private_key"], "an update under the same authority keeps the key"
        for vault in cluster.vaults:
            for part, value in (("cert", new["certificate"]), ("key", new["private_key"])):
                if f"{name}-{part}" in vault.secrets:
                    found = vault_named(cloud, vault.name)
                    assert found
                    set_secret(cloud, found, f"{name}-{part}", {"value": value})
        serials[name] = x509_of(new["certificate"]).serial_number
    return serials


def x509_of(pem: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem.encode())


def served(port: int, trust: ssl.SSLContext) -> int:
    """Serial number of the certificate that a server on loopback shows."""
    with socket.create_connection(("127.0.0.1", port), 10) as plain, trust.wrap_socket(plain, server_hostname="localhost") as secured:
        shown = secured.getpeercert(binary_form=True)
    assert shown
    return x509.load_der_x509_certificate(shown).serial_number


def own_address() -> str:
    """An address of this machine that is not loopback's, which API servers refuse to proxy to; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


@dataclass
class Callee:
    """A server that notes which certificate its callers show: port, and (path, serial number) of each request."""

    port: int
    seen: list[tuple[str, int]] = field(default_factory=list)

    def last(self, beginning: str) -> int:
        """Serial number of the latest caller of a path."""
        return [serial for path, serial in self.seen if path.startswith(beginning)][-1]


@contextmanager
def callee(folder: Path, address: str, issuer: Authority, trusted: tuple[Path, ...], answers: Mapping[str, object]) -> Iterator[Callee]:
    """Serve JSON by path, as a kubelet or an aggregated server would, to whoever shows a certificate of the trusted authorities."""
    now = x509_of(issuer.certificate).not_valid_before_utc + timedelta(minutes=5)
    subject = Subject("callee", (), ("callee.default.svc",), (address,), ("server",))
    leaf = issue_leaf(subject, issuer, timedelta(days=1), now)
    for name, text in (("cert.pem", leaf.certificate), ("key.pem", leaf.private_key)):
        (folder / name).write_text(text)
    trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trust.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    trust.verify_mode = ssl.CERT_REQUIRED
    for path in trusted:
        trust.load_verify_locations(path)
    made = Callee(0)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown = self.connection.getpeercert(binary_form=True)  # type: ignore[attr-defined]
            made.seen.append((self.path, x509.load_der_x509_certificate(shown).serial_number))
            body = json.dumps(answers.get(self.path.partition("?")[0], {})).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer((address, 0), Handler)
    server.socket = trust.wrap_socket(server.socket, server_side=True)
    made.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
