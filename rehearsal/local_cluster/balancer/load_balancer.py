"""Local counterpart of the API servers' internal load balancer: new connections go only to ready servers.

It runs as `python -m rehearsal.local_cluster.balancer.load_balancer`. Like Azure's, it keeps established flows of a backend that is marked
down, also if all are down
(https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview, "probe down behavior"). If all
backends are down, a client gets no answer from Azure; here it gets a reset and need not wait for a timeout. Azure's resets of idle flows
(enableTcpReset, https://learn.microsoft.com/azure/load-balancer/load-balancer-tcp-reset) are not implemented: Kubernetes' clients send
keep-alive packets, which only the kernel sees.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rehearsal.local_cluster.balancer.forwarding import BACKLOG, Balancer
from rehearsal.local_cluster.balancer.health_probe import Backend, Probe, ProbeSettings
from rehearsal.local_cluster.systemd import sd_notify
from rehearsal.local_cluster.systemd.service_definition import ServiceDefinition
from stacks.atomic_write import write_atomically

STATE_SECONDS = 10.0


def balancer_program(
    name: str, folder: Path, port: int, backends: Iterable[Backend], probe: ProbeSettings, host: str = "127.0.0.1"
) -> ServiceDefinition:
    """Return the balancer as a service on a port; its folder contains the list of backends, which it reloads at SIGHUP, and its state."""
    folder.mkdir(parents=True, exist_ok=True)
    write_backends(folder, backends)
    argv = (sys.executable, "-m", "rehearsal.local_cluster.balancer.load_balancer", f"--listen={host}:{port}", f"--folder={folder}")
    settings = (f"--interval={probe.interval_seconds:g}", f"--failures={probe.failures}", f"--path={probe.path}")
    environment = {"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(Path(__file__).parents[3])}
    return ServiceDefinition(
        name, (*argv, *settings), environment, folder / "log", folder, notify=True, restart_seconds=1.0, stop_seconds=2.0
    )


def write_backends(folder: Path, backends: Iterable[Backend]) -> None:
    """Write the list of backends; a running balancer reloads it at SIGHUP."""
    write_atomically(folder / "backends", "".join(f"{each.name} {each.host} {each.port}\n" for each in backends))


def read_backends(folder: Path) -> tuple[Backend, ...]:
    """Return the backends of the list, which has a line of name, address and port for each."""
    rows = (line.split() for line in (folder / "backends").read_text().splitlines())
    return tuple(Backend(name, host, int(port)) for name, host, port in rows)


def read_state(folder: Path) -> dict[str, Any]:
    """Return a running balancer's state: `backends` with `up`, `last` and `flows`, and Balancer.report; raise OSError if none runs."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(STATE_SECONDS)
        client.connect(str(folder / "state"))
        with client.makefile("rb") as response:
            state: dict[str, Any] = json.loads(response.read())
            return state


class _Serving:
    """A balancer with its probes."""

    def __init__(self, listener: socket.socket, folder: Path, settings: ProbeSettings) -> None:
        self._folder, self._settings = folder, settings
        self._probes: tuple[Probe, ...] = ()
        self._up: tuple[Backend, ...] = ()
        self.balancer = Balancer(listener, lambda: self._up)
        self._state = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        (folder / "state").unlink(missing_ok=True)
        self._state.bind(str(folder / "state"))
        self._state.listen()
        self._woken, self._waker = socket.socketpair()
        for each in (self._woken, self._waker):
            each.setblocking(False)
        self.balancer.watch(self._state, self._send_state)
        self.balancer.watch(self._woken, self._signalled)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno())
        self.reload()

    def reload(self) -> None:
        """Probe the backends that the list names now; those that stay keep their state, flows of those that go live on."""
        known = {probe.backend: probe for probe in self._probes}
        backends = read_backends(self._folder)
        for backend, probe in known.items():
            if backend not in backends:
                probe.stop()
        self._probes = tuple(known.get(backend) or Probe(backend, self._settings, self._changed) for backend in backends)
        self._changed()

    def _changed(self) -> None:
        self._up = tuple(probe.backend for probe in self._probes if probe.up)

    def _signalled(self) -> None:
        for number in self._woken.recv(64):
            if number == signal.SIGHUP:
                self.reload()
            else:
                self.balancer.stop()

    def _send_state(self) -> None:
        """Send the state to a client."""
        client, _ = self._state.accept()
        with client:
            flows = self.balancer.flows
            backends = [{**probe.state(), "flows": flows.get(probe.backend.name, 0)} for probe in self._probes]
            client.sendall(json.dumps({"backends": backends, **self.balancer.report()}).encode())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="rehearsal.local_cluster.balancer.load_balancer", description="A TCP load balancer with HTTPS probes."
    )
    parser.add_argument("--listen", required=True, metavar="ADDRESS:PORT")
    parser.add_argument(
        "--folder", required=True, type=Path, help="holds the file backends (NAME ADDRESS PORT a line) and the socket state"
    )
    parser.add_argument("--interval", required=True, type=float, help="seconds from one probe to the next")
    parser.add_argument("--failures", required=True, type=int, help="unanswered probes that mark a backend down")
    parser.add_argument("--path", default="/readyz", help="path of the probes' requests")
    return parser.parse_args()


def main() -> None:
    """Serve until SIGTERM."""
    given = _arguments()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    host, _, port = given.listen.rpartition(":")
    listener = socket.create_server((host, int(port)), backlog=BACKLOG)
    serving = _Serving(listener, given.folder, ProbeSettings(given.interval, given.failures, given.path))
    sd_notify.notify("READY=1")
    serving.balancer.run()


if __name__ == "__main__":
    main()
