"""The lists of scale sets, machines and network interfaces are read whole through Azure's own client, or there is no answer.

A server on loopback speaks Azure Resource Manager's published shapes: pages with nextLink, 404, 429 with Retry-After.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from services.csr_approver.approval_loop import ServiceUnreachableError
from services.csr_approver.azure_scale_sets import AzureScaleSets
from services.csr_approver.verdicts import Instance

GROUP = "/subscriptions/sub/resourceGroups/gf-southcentralus-frontier/providers/Microsoft.Compute/virtualMachineScaleSets"


class Token:
    """A credential with one token."""

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        return AccessToken("secret", int(datetime.datetime.now(datetime.UTC).timestamp()) + 3_600)


class Azure(ThreadingHTTPServer):
    """Answers by path: (status, headers, body); asked holds path and Authorization of every request."""

    answers: dict[str, tuple[int, dict[str, str], Any]]
    asked: list[tuple[str, str]]
    base_url: str
    certificate: Path

    def scale_sets(self) -> AzureScaleSets:
        """The adapter, pointed here."""
        return AzureScaleSets(
            Token(), "sub", "gf-southcentralus-frontier", "frontier-", base_url=self.base_url, connection_verify=str(self.certificate)
        )


class Handler(BaseHTTPRequestHandler):
    """One GET."""

    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Azure)
        path = self.path.partition("?")[0]
        page = "?page=2" if "page=2" in self.path else ""
        server.asked.append((path + page, self.headers["Authorization"]))
        status, headers, body = server.answers.get(path + page, (404, {}, {"error": {"code": "ResourceNotFound", "message": "none"}}))
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(built.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def azure(certificate: tuple[Path, Path]) -> Iterator[Azure]:
    """A running server."""
    server = Azure(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.answers, server.asked, server.certificate = {}, [], certificate[0]
    server.base_url = f"https://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def machine(number: int, state: str = "Succeeded") -> dict[str, Any]:
    """A machine as VirtualMachineScaleSetVMs_List shows it."""
    name = f"frontier-h100-000-00000{number}".upper()
    return {"instanceId": str(number), "properties": {"provisioningState": state, "osProfile": {"computerName": name}}}


def interface(number: int) -> dict[str, Any]:
    """A machine's network interface, with a pod's address beside its own."""
    own = {"name": "ipconfig1", "properties": {"primary": True, "privateIPAddress": f"10.12.0.{10 * number}"}}
    pod = {"name": "ipconfig2", "properties": {"primary": False, "privateIPAddress": f"10.12.0.{10 * number + 1}"}}
    owner = {"id": f"{GROUP}/frontier-h100-000/virtualMachines/{number}"}
    return {"name": "nic", "properties": {"primary": True, "virtualMachine": owner, "ipConfigurations": [pod, own]}}


def test_the_scale_sets_of_the_cluster_are_listed_over_all_pages(azure: Azure) -> None:
    second = f"{azure.base_url}{GROUP}?page=2"
    azure.answers[GROUP] = (200, {}, {"value": [{"name": "frontier-h100-000"}, {"name": "frontier-api"}], "nextLink": second})
    azure.answers[f"{GROUP}?page=2"] = (200, {}, {"value": [{"name": "frontier-cpu-000"}, {"name": "other-000"}]})
    assert azure.scale_sets().scale_sets() == {"frontier-h100-000", "frontier-cpu-000", "frontier-api"}
    assert len(azure.asked) == 2


def test_machines_come_with_their_interfaces_primary_addresses_alone(azure: Azure) -> None:
    interfaces = f"{GROUP}/frontier-h100-000/networkInterfaces"
    azure.answers[f"{GROUP}/frontier-h100-000/virtualMachines"] = (200, {}, {"value": [machine(1), machine(2, "Creating")]})
    azure.answers[interfaces] = (200, {}, {"value": [interface(1)], "nextLink": f"{azure.base_url}{interfaces}?page=2"})
    azure.answers[f"{interfaces}?page=2"] = (200, {}, {"value": [interface(2)]})
    assert azure.scale_sets().instances("frontier-h100-000") == (
        Instance("frontier-h100-000-000001", frozenset({"10.12.0.10"}), "succeeded"),
        Instance("frontier-h100-000-000002", frozenset({"10.12.0.20"}), "creating"),
    )


def test_a_scale_set_that_is_gone_has_no_machines(azure: Azure) -> None:
    assert azure.scale_sets().instances("frontier-h100-000") == ()


@pytest.mark.parametrize("path", ["", "/frontier-h100-000/virtualMachines", "/frontier-h100-000/networkInterfaces"])
def test_a_throttled_list_is_no_answer_is_asked_once_and_says_when_to_come_back(azure: Azure, path: str) -> None:
    azure.answers[f"{GROUP}/frontier-h100-000/virtualMachines"] = (200, {}, {"value": [machine(1)]})
    azure.answers[f"{GROUP}{path}"] = (429, {"Retry-After": "17"}, {"error": {"code": "TooManyRequests", "message": "wait"}})
    lookup = azure.scale_sets()
    with pytest.raises(ServiceUnreachableError, match="HTTP 429") as refused:
        lookup.instances("frontier-h100-000") if path else lookup.scale_sets()
    assert refused.value.retry_after == 17.0
    assert [method_path for method_path, _ in azure.asked].count(f"{GROUP}{path}") == 1


@pytest.mark.parametrize("body", [{}, {"value": [{"properties": {}}]}, {"value": [{"properties": {"ipConfigurations": [{}]}}]}, []])
def test_an_answer_of_another_shape_is_no_answer(azure: Azure, body: Any) -> None:
    azure.answers[f"{GROUP}/frontier-h100-000/virtualMachines"] = (200, {}, {"value": [machine(1)]})
    azure.answers[f"{GROUP}/frontier-h100-000/networkInterfaces"] = (200, {}, body)
    with pytest.raises(ServiceUnreachableError, match="an unreadable response"):
        azure.scale_sets().instances("frontier-h100-000")


def test_the_token_does_not_follow_a_page_to_another_host(azure: Azure) -> None:
    elsewhere = f"https://localhost:{azure.server_address[1]}{GROUP}/frontier-h100-000/networkInterfaces?page=2"
    azure.answers[f"{GROUP}/frontier-h100-000/virtualMachines"] = (200, {}, {"value": [machine(1)]})
    azure.answers[f"{GROUP}/frontier-h100-000/networkInterfaces"] = (200, {}, {"value": [], "nextLink": elsewhere})
    with pytest.raises(ServiceUnreachableError, match="another host"):
        azure.scale_sets().instances("frontier-h100-000")
    assert {token for _, token in azure.asked} == {"Bearer secret"}
    assert len(azure.asked) == 2


def test_a_server_that_is_not_there_is_no_answer(azure: Azure) -> None:
    lookup = azure.scale_sets()
    azure.shutdown()
    azure.server_close()
    with pytest.raises(ServiceUnreachableError):
        lookup.scale_sets()
