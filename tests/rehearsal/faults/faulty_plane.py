"""The control plane to which tests do harm: what they ask of it, and how they wait until it is whole again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from calling import Client
from joining_cluster import RealCluster, real_cluster
from watching import Alerts, prometheus

from components.plan.model import ETCD_CLIENT_PORT
from rehearsal.cluster import balancer
from rehearsal.cluster.control_plane import ControlPlane
from rehearsal.cluster.joining.joiner import STORM, Identities, Joiner
from rehearsal.cluster.machine import Machine
from rehearsal.cluster.run_directory import RunDirectory
from rehearsal.cluster.unit_control import UnitControl
from rehearsal.engines.find import Engines
from stacks.load import ROOT

sys.path.insert(0, str(ROOT / "tests" / "runbooks"))
from runbook import Runbook

WHOLE_SECONDS = 400.0
ETCD_UNIT = "etcd.service"


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until something is so, for minutes: programs that start anew on a busy machine take one; AssertionError with it in words."""
    deadline = time.monotonic() + WHOLE_SECONDS
    while not true():
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.05)


def busy() -> float:
    """Programs that want a core, for each core: what a measured time is to be held against."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@dataclass(frozen=True)
class FaultyPlane:
    """A control plane with its nodes, its balancer and who watches it."""

    real: RealCluster
    alerts: Alerts
    folder: Path
    shells: Mapping[str, UnitControl]
    """Each machine's systemctl, written before there is anything to do: a program that was just written is busy for who forks just then."""

    @property
    def control(self) -> ControlPlane:
        return self.real.control

    @property
    def kubeconfig(self) -> Path:
        return self.control.kubeconfig

    def client(self, seconds: float = 75.0) -> Client:
        """The break-glass administrator through the balancer."""
        return Client(self.kubeconfig, seconds)

    def up(self) -> set[str]:
        """API servers that the balancer lets connections go to."""
        return {one["name"] for one in balancer.state(self.control.balancer.program.directory)["backends"] if one["up"]}

    def etcdctl(self, members: Iterable[Machine]) -> list[str]:
        """Command line of etcdctl for these members, with the first one's keys."""
        members = tuple(members)
        first = members[0]
        own = f"{first.role}-{first.name.rpartition('-')[2]}"
        keys = {"cacert": f"{first.role}-ca-cert", "cert": f"{own}-cert", "key": f"{own}-key"}
        urls = ",".join(f"https://127.0.0.1:{one.port(ETCD_CLIENT_PORT)}" for one in members)
        flags = [f"--{flag}={first.path(f'/etc/etcd/{name}.pem')}" for flag, name in keys.items()]
        return [str(self.real.engines.program("etcdctl")), f"--endpoints={urls}", *flags]

    def leader(self) -> Machine:
        """Member that leads the main ring."""
        for one in self.control.etcd:
            done = subprocess.run([*self.etcdctl([one]), "endpoint", "status", "--write-out=json"], capture_output=True, check=True)
            status = json.loads(done.stdout)[0]["Status"]
            if status["leader"] == status["header"]["member_id"]:
                return one
        raise AssertionError("nobody leads")

    def wait_whole(self, seconds: float = WHOLE_SECONDS) -> float:
        """Wait until every machine runs, answers and is let in, and every node is ready; the seconds that it took."""
        began = time.monotonic()
        for machine in self.control.machines:
            machine.start()
        # Machines start their units one after the other.
        until(lambda: all(_enabled_run(one) for one in self.control.machines), "every enabled unit runs")
        self.control.wait_ready(seconds)
        names = {one.name for one in self.control.api_servers}
        until(lambda: self.up() == names, "the balancer lets connections go to every API server")
        return time.monotonic() - began

    def runbook(self, name: str, machine: Machine, **values: str) -> Runbook:
        """A runbook in the shell of a person on a machine: its systemctl, and the programs of the pinned versions."""
        programs = (self.shells[machine.name].folder, self.real.engines.program("kubectl").parent, Path(sys.executable).parent)
        path = ":".join([*map(str, programs), os.environ["PATH"]])
        return Runbook(name, values, {**os.environ, "PATH": path}, ROOT)


def _enabled_run(machine: Machine) -> bool:
    return all(machine.services[name].state == "ready" for name in machine.enabled)


@contextmanager
def faulty_plane(engines: Engines, folder: Path) -> Iterator[FaultyPlane]:
    """Region dev with its nodes joined, watched by Prometheus."""
    with real_cluster("dev", engines) as real, RunDirectory() as run:
        joined = Joiner(real.gate()).join(real.machines(), Identities.ISSUED, STORM)
        assert joined.failures == ()
        real.wait_ready({one.name for one in real.machines()})
        machines = real.control.machines
        shells = {one.name: UnitControl(run, folder / "shells" / one.name, one.services, one.enabled, {}) for one in machines}
        with prometheus(real.control, run, folder) as alerts:
            made = FaultyPlane(real, alerts, folder, shells)
            made.wait_whole()
            yield made


def at_once(deeds: Iterable[Callable[[], object]]) -> None:
    """Do things beside one another, and wait for them all."""
    threads = [threading.Thread(target=partial(deed)) for deed in deeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
