"""Benchmark of the traffic exporter on a machine that is full of pods: time of a scrape, and memory."""

from __future__ import annotations

import contextlib
import datetime
import http.client
import http.server
import json
import socketserver
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.x509 import Authority, Subject, issue_authority, issue_leaf
from tests.support.azure_network.machine import REPOSITORY, Machine
from tests.support.azure_network.network import Azure

PODS = 250
PORT = 9119
NODE = "node-of-the-bench"
PATIENCE = 60.0
POD_BYTES = 8_000
"""Bytes of a pod in the kubelet's answer, about those of one with two containers, probes, volumes and status."""


@dataclass(frozen=True)
class Scraped:
    """Seconds that each scrape took, its length in bytes, and the most memory that the exporter had, in bytes."""

    seconds: tuple[float, ...]
    length: int
    memory: int


def scrapes(azure: Azure, count: int) -> Scraped:
    """Scrape an exporter of 250 pods `count` times; raise TimeoutError if it does not report all of them in time."""
    machine = azure.machine("m4", "10.66.2.4", [f"10.66.2.{last}" for last in range(5, 5 + PODS)])
    machine.apply()
    reserved = machine.state / "cni" / "gpufleet"
    reserved.mkdir(parents=True, exist_ok=True)
    for address in machine.secondaries:
        (reserved / address).write_text(f"sandbox-of-{address}\r\neth0")
    with _kubelet(machine) as folder, _exporter(machine, folder) as process:
        deadline = time.monotonic() + PATIENCE
        while (text := _scrape(machine)).count("\npod_internet_bytes_total{") < 2 * PODS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the exporter tells of {text.count('pod_internet_bytes_total{')} of {2 * PODS} series")
            time.sleep(0.2)
        seconds = []
        for _ in range(count):
            began = time.monotonic()
            _scrape(machine)
            seconds.append(time.monotonic() - began)
        status = Path(f"/proc/{process}/status").read_text()
        (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return Scraped(tuple(sorted(seconds)), len(text), int(peak) * 1024)


def _scrape(machine: Machine) -> str:
    def ask() -> str:
        with contextlib.closing(http.client.HTTPConnection(machine.primary, PORT, timeout=PATIENCE)) as link:
            try:
                link.request("GET", "/metrics")
                return link.getresponse().read().decode()
            except ConnectionRefusedError:
                return ""

    return machine.within(ask)


@contextlib.contextmanager
def _exporter(machine: Machine, folder: Path) -> Iterator[int]:
    """Run the exporter; yield its process id."""
    words = ("env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "cni.exporter", "--address", machine.primary, "--port", str(PORT))
    files = ("--reservations", str(machine.state / "cni" / "gpufleet"), "--state", str(machine.state / "traffic"), "--zero-seconds", "0")
    trust = ("--node", NODE, "--token", str(folder / "token"), "--authority", str(folder / "authority.pem"), "--team", "team-0")
    process = machine.inside.start(*words, *files, *trust)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _kubelet(machine: Machine) -> Iterator[Path]:
    """Serve the kubelet's responses; yield the folder of its authority and the accepted token."""
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    issued = issue_authority("bench", day, now)
    leaf = issue_leaf(Subject(NODE, (), (NODE,), (), ("server",)), Authority(issued.certificate, issued.private_key), day, now)
    with tempfile.TemporaryDirectory(prefix="gf-") as name:
        folder = Path(name)
        (folder / "authority.pem").write_text(issued.certificate)
        (folder / "kubelet.pem").write_text(leaf.certificate + leaf.private_key)
        (folder / "token").write_text("token")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "kubelet.pem")
        server = machine.within(lambda: _Server(("127.0.0.1", 10250), _Handler))
        server.body = json.dumps({"kind": "PodList", "items": [_pod(*row) for row in enumerate(machine.secondaries)]}).encode()
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def _pod(number: int, address: str) -> dict[str, Any]:
    """Return a pod as the kubelet reports it."""
    metadata = {"name": f"trainer-{number:04}-of-a-job-with-a-name", "namespace": f"team-{number % 10}", "uid": f"uid-{number}"}
    spec = {"containers": [{"name": "main", "env": [{"name": "FILLER", "value": "." * POD_BYTES}]}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}


class _Server(http.server.ThreadingHTTPServer):
    body = b""

    def server_bind(self) -> None:
        """Bind without a lookup of the address's name."""
        socketserver.TCPServer.server_bind(self)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the base class's name
        """Log nothing."""
