"""A real server process of the embedded Azure, and the official clients that talk to it."""

from __future__ import annotations

import json
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient
from azure.mgmt.resource.resources import ResourceManagementClient

from rehearsal.arm.listeners import IDLE_SECONDS

REGION = "dev"
LOCATION = "southcentralus"
FREE = "seed: 1\nduration_factor: 1\nthrottling: {enabled: false}\n"
"""A scenario in which no call is counted."""


class ArmServer:
    """A server process: where it is, and how its clients are made."""

    def __init__(self, process: subprocess.Popen[str], output: str) -> None:
        self.process, self.told = process, output
        self.environment = dict(re.findall(r"export (\w+)=(\S+)", output))
        self.base = self.environment["AZURE_AUTHORITY_HOST"]
        self.authority = self.environment["REQUESTS_CA_BUNDLE"]
        self.subscription = self.environment["AZURE_SUBSCRIPTION_ID"]
        self.tenant = self.environment["AZURE_TENANT_ID"]
        found = re.search(r"metadata service\s+(http://[^/]+/imds)", output)
        assert found
        self.metadata = found[1]
        self._threads = threading.local()
        self.tls = ssl.create_default_context(cafile=self.authority)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.base.removeprefix("https://").rpartition(":")
        return host, int(port)

    def credential(self, **options: Any) -> ClientSecretCredential:
        """A signed-in client, as the printed lines say."""
        output = self.environment
        return ClientSecretCredential(
            output["AZURE_TENANT_ID"],
            options.pop("client_id", output["AZURE_CLIENT_ID"]),
            options.pop("secret", output["AZURE_CLIENT_SECRET"]),
            authority=self.base,
            disable_instance_discovery=True,
            connection_verify=self.authority,
            **options,
        )

    @property
    def _how(self) -> dict[str, Any]:
        return {"base_url": self.base, "credential_scopes": [f"{self.base}/.default"], "connection_verify": self.authority}

    def resources(self, **options: Any) -> ResourceManagementClient:
        return ResourceManagementClient(self.credential(), self.subscription, **{**self._how, **options})

    def network(self, **options: Any) -> NetworkManagementClient:
        return NetworkManagementClient(self.credential(), self.subscription, **{**self._how, **options})

    def compute(self, **options: Any) -> ComputeManagementClient:
        return ComputeManagementClient(self.credential(), self.subscription, **{**self._how, **options})

    def token(self, resource: str = "https://management.azure.com") -> str:
        return self.credential().get_token(f"{resource}/.default").token

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, body (JSON where it is some) and headers of one plain request; path may be a whole URL."""
        url = urlsplit(path if path.startswith("http") else f"{self.base}{path}")
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token is not None else {})}
        connection = self._connection(url.scheme, url.netloc)
        try:
            connection.request(method, url._replace(scheme="", netloc="").geturl(), content, sent)
            answer = connection.getresponse()
            content_read = answer.read()
            self._threads.__dict__["used"] = time.monotonic()
            return answer.status, _read(content_read), dict(answer.headers)
        except (OSError, HTTPException):
            connection.close()
            raise

    def _connection(self, scheme: str, host: str) -> HTTPConnection:
        """This thread's connection to a host, which lasts while it is used: the server closes one that has been idle for long."""
        if time.monotonic() - self._threads.__dict__.get("used", 0.0) > IDLE_SECONDS / 2:
            self.close()
        held: dict[str, HTTPConnection] = self._threads.__dict__.setdefault("held", {})
        if host not in held:
            held[host] = HTTPSConnection(host, timeout=60, context=self.tls) if scheme == "https" else HTTPConnection(host, timeout=60)
        return held[host]

    def close(self) -> None:
        """Close this thread's connections."""
        for connection in self._threads.__dict__.pop("held", {}).values():
            connection.close()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Tell it to end; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextmanager
def arm_server(
    folder: Path, *options: str, scenario: str | None = FREE, clock: str = "scaled:10000", keep: bool = True
) -> Iterator[ArmServer]:
    """Start a server that keeps its state in a folder, and end it at last; its stderr goes to <folder>.err."""
    arguments = ["azure", REGION, "--clock", clock, *options]
    folder.parent.mkdir(parents=True, exist_ok=True)
    if keep:
        arguments += ["--state", str(folder)]
    if scenario is not None:
        file = folder.parent / "scenario.yaml"
        file.write_text(scenario)
        arguments += ["--scenario", str(file)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with folder.with_suffix(".err").open("a") as errors:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("gpufleet"), *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
    running: ArmServer | None = None
    try:
        running = ArmServer(process, _until_ready(process, folder.with_suffix(".err")))
        yield running
    finally:
        if running is not None:
            running.close()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        if process.stdout:
            process.stdout.close()


def bring_up(state: Path) -> str:
    """Bring the region up in a state directory, in an Azure that counts no calls; what was printed."""
    state.parent.mkdir(parents=True, exist_ok=True)
    scenario = state.parent / "scenario.yaml"
    scenario.write_text(FREE)
    command = [Path(sys.executable).with_name("gpufleet"), "up", REGION, "--state", state, "--scenario", scenario]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def _until_ready(process: subprocess.Popen[str], errors: Path) -> str:
    assert process.stdout
    output = ""
    for line in process.stdout:
        output += line
        if line.startswith("ready "):
            return output
    raise AssertionError(f"the server did not start: {output}{errors.read_text()}")


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")
