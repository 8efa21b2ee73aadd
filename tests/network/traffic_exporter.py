"""The real exporter on a machine of the fabric, a kubelet that answers it as the real one does, and a scraper."""

from __future__ import annotations

import datetime
import http.server
import ipaddress
import json
import re
import signal
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fabric import Machine, Pod

REPOSITORY = Path(__file__).parents[2]
NODE = "gf-dev-cpu-000000"
TOKEN = "token-of-the-traffic-account"  # noqa: S105 of this test alone
PORT = 9119
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
PATIENCE = 20.0

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def eventually(true: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, f"not within {PATIENCE:.0f} s: {what}"
        time.sleep(0.05)


def certificate(folder: Path, node: str) -> tuple[Path, Path]:
    """Authority and serving certificate with key of a kubelet of this name, as PEM files."""
    key, authority_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "cluster-ca")])
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"system:node:{node}")])
    names = x509.SubjectAlternativeName([x509.DNSName(node), x509.IPAddress(ipaddress.ip_address("10.0.0.4"))])
    authority = _signed(issuer, issuer, authority_key, authority_key, x509.BasicConstraints(ca=True, path_length=None))
    serving = _signed(subject, issuer, key, authority_key, names)
    trust, served = folder / "ca.crt", folder / "kubelet.pem"
    trust.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    served.write_bytes(serving.public_bytes(serialization.Encoding.PEM) + private)
    return trust, served


def _signed(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
) -> x509.Certificate:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
    identifiers = (
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(by.public_key()),
    )
    for each in identifiers:
        made = made.add_extension(each, critical=False)
    return made.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints)).sign(by, hashes.SHA256())


class Kubelet:
    """Answers /pods on the machine's loopback, over TLS, to whoever shows the token; no kubelet runs without a container runtime."""

    def __init__(self, machine: Machine, folder: Path, node: str = NODE) -> None:
        self.items: list[dict[str, Any]] = []
        self.asked = 0
        self.trust, served = certificate(folder, node)
        self.token = folder / "token"
        self.token.write_text(f"{TOKEN}\n")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(served)
        handler = type("Handler", (_Handler,), {"kubelet": self})
        self.server: _Server = machine.within(lambda: http.server.ThreadingHTTPServer(("127.0.0.1", 10250), handler))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def runs(self, pod: Pod, namespace: str, name: str, uid: str = "", phase: str = "Running") -> None:
        """The kubelet has a pod's address in its status."""
        status = {"phase": phase, "podIP": pod.address, "podIPs": [{"ip": pod.address}], "hostIP": "10.0.0.4"}
        meta = {"name": name, "namespace": namespace, "uid": uid or f"uid-of-{namespace}-{name}", "labels": {"app": name}}
        self.items.append({"metadata": meta, "spec": {"containers": [{"name": "main"}]}, "status": status})

    def forgets(self, name: str) -> None:
        """The kubelet has a pod no more."""
        self.items = [item for item in self.items if item["metadata"]["name"] != name]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class _Server(http.server.ThreadingHTTPServer):
    def server_bind(self) -> None:
        """Bind without asking a resolver for the address's name."""
        socketserver.TCPServer.server_bind(self)


class _Handler(http.server.BaseHTTPRequestHandler):
    kubelet: Kubelet

    def do_GET(self) -> None:
        """As https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/ has it."""
        self.kubelet.asked += 1
        allowed = self.headers.get("Authorization") == f"Bearer {TOKEN}" and self.path == "/pods"
        body = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": self.kubelet.items}).encode()
        self.send_response(200 if allowed else 401)
        self.end_headers()
        self.wfile.write(body if allowed else b"Unauthorized")

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Exporter:
    """The exporter's process on a machine; wrapper is put before its command."""

    def __init__(self, machine: Machine, kubelet: Kubelet, *options: str, wrapper: tuple[str, ...] = ()) -> None:
        self.machine, self.state = machine, machine.state / "traffic"
        files = ("--reservations", str(machine.state / "cni/gpufleet"), "--state", str(self.state))
        trust = ("--token", str(kubelet.token), "--authority", str(kubelet.trust), "--node", NODE)
        teams = [word for team in ("platform", "vision", "language") for word in ("--team", team)]
        python = ("env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "cni.exporter")
        address = ("--address", machine.primary, "--port", str(PORT), "--zero-seconds", "0")
        self.command = (*wrapper, *python, *address, *files, *trust, *teams, *options)
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Exporter:
        """Run it until it answers."""
        process = self.process = self.machine.inside.start(*self.command)
        eventually(lambda: process.poll() is not None or self._listens(), "the exporter answers")
        assert process.poll() is None, process.stderr and process.stderr.read()
        return self

    def stop(self, how: signal.Signals = signal.SIGTERM) -> str:
        """End it; what it said."""
        assert self.process
        self.process.send_signal(how)
        _, said = self.process.communicate(timeout=PATIENCE)
        self.process = None
        return said

    def scrape(self) -> Samples:
        """Every sample by name and labels, as Prometheus reads them."""
        found: Samples = {}
        for name, labels, value in SAMPLE.findall(self.text()):
            found[name, frozenset(LABEL.findall(labels))] = float(value)
        return found

    def text(self) -> str:
        """Return the exporter's metrics as text."""
        return self.machine.run("curl", "-sS", "--fail", f"http://{self.machine.primary}:{PORT}/metrics")

    def value(self, metric: str, **labels: str) -> float:
        """One sample; KeyError where there is none."""
        return self.scrape()[metric, frozenset(labels.items())]

    def pod(self, namespace: str, name: str, team: str | None = None) -> tuple[int, int]:
        """Bytes out and in of a pod, after its first zero; what team it is told to be of is its namespace, unless that is said."""
        self.text()
        samples = self.scrape()
        labels = {"namespace": namespace, "pod": name, "team": namespace if team is None else team}
        out, back = (samples.get(("pod_internet_bytes_total", frozenset({**labels, "direction": way}.items())), 0) for way in ("out", "in"))
        return int(out), int(back)

    def rule(self, chain: str, name: str, metric: str = "iptables_bytes_total") -> int:
        """Count of a rule."""
        return int(self.value(metric, ip_version="4", table="mangle", chain=chain, rule=name))

    def _listens(self) -> bool:
        return self.machine.within(lambda: _open(self.machine.primary))


def _open(address: str) -> bool:
    with socket.socket() as one:
        return one.connect_ex((address, PORT)) == 0


def holders(exporter: Exporter) -> Mapping[str, Mapping[str, str]]:
    """Return the content of holders.json."""
    found: Mapping[str, Mapping[str, str]] = json.loads((exporter.state / "holders.json").read_text())
    return found
