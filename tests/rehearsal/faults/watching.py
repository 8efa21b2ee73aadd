"""Prometheus for a running control plane, as in a region, to evaluate the shipped alerts on real metrics.

The expressions are those that are shipped; only the minutes for which they must hold are not waited for.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from plane_tls import identity
from waiting import until

from components.manifests.control_plane_alerts import alerts
from components.plan.model import API_SERVER_PORT
from rehearsal.local_cluster.control_plane import ControlPlane
from rehearsal.local_cluster.machine import Machine
from rehearsal.local_cluster.run_directory import RunDirectory

METRICS_PORT = 2381
REGION = "dev"
SCRAPE_SECONDS = 5
"""Also the timeout of a response: a flooded server on a busy machine takes seconds for its metrics."""


class Alerts:
    """A cluster's alerts in a running Prometheus; without Prometheus every check passes."""

    def __init__(self, control: ControlPlane, port: int | None) -> None:
        self._expressions = {one.name: one.expression for one in alerts(REGION, control.cluster)}
        self._port = port

    def found(self, expression: str) -> list[dict[str, Any]]:
        """Return the current samples of an expression."""
        query = urllib.parse.urlencode({"query": expression})
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/query?{query}", timeout=30) as answer:
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return result

    def wait_for(self, *names: str, seconds: float = 90.0) -> None:
        """Wait until the expressions of all these alerts hold."""
        waiting, deadline = set(names) if self._port else set(), time.monotonic() + seconds
        while waiting:
            waiting -= {name for name in waiting if self.found(self._expressions[name])}
            assert time.monotonic() < deadline, f"these alerts would not fire: {sorted(waiting)}"
            time.sleep(0.5)


def _job(name: str, cluster: str, ports: Iterable[int], **more: Any) -> dict[str, Any]:
    targets = [{"targets": [f"127.0.0.1:{port}" for port in ports], "labels": {"region": REGION, "cluster": cluster}}]
    return {"job_name": name, "static_configs": targets, **more}


def _configuration(control: ControlPlane) -> dict[str, Any]:
    def ports(machines: Iterable[Machine], port: int) -> list[int]:
        return [one.port(port) for one in machines]

    certificate, key = identity(control.api_servers[0], "admin")
    tls = {"ca_file": str(control.authority), "cert_file": str(certificate), "key_file": str(key)}
    name = control.cluster.name
    return {
        "global": {"scrape_interval": f"{SCRAPE_SECONDS}s", "scrape_timeout": f"{SCRAPE_SECONDS}s"},
        "scrape_configs": [
            _job("kube-apiserver", name, ports(control.api_servers, API_SERVER_PORT), scheme="https", tls_config=tls),
            _job("etcd", name, ports(control.etcd, METRICS_PORT)),
            _job("events", name, ports(control.events, METRICS_PORT)),
        ],
    }


@contextmanager
def prometheus(control: ControlPlane, run: RunDirectory, folder: Path) -> Iterator[Alerts]:
    """Run this machine's Prometheus on a control plane; if none is installed, yield alerts whose checks pass."""
    program = shutil.which("prometheus")
    if program is None:
        yield Alerts(control, None)
        return
    configuration = folder / "prometheus.yaml"
    configuration.write_text(yaml.safe_dump(_configuration(control)))
    port = run.port("prometheus")
    arguments = [f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}"]
    with (folder / "prometheus.log").open("w") as log:
        # However this process ends, Prometheus goes with it.
        running = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", program, *arguments], stdout=log, stderr=log)
        try:
            watching = Alerts(control, port)
            _until_it_has_seen_all(watching, len(control.machines))
            yield watching
        finally:
            running.kill()
            running.wait()


def _until_it_has_seen_all(watching: Alerts, targets: int) -> None:
    def seen() -> bool:
        with suppress(OSError):
            return len(watching.found("up == 1")) == targets
        return False

    until(seen, "Prometheus reaches everything", 120)
