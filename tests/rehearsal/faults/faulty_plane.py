"""Control plane for tests that inject faults, and waiting for its recovery."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from api_calls import Client
from joining_cluster import RealCluster, real_cluster
from waiting import until as until_within
from watching import Alerts, prometheus

from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.joining.joiner import STORM, Identities, Joiner
from rehearsal.local_cluster.machine import Machine
from stacks.load import ROOT
from tests.support.unit_control import UnitControl

sys.path.insert(0, str(ROOT / "tests" / "runbooks"))
from runbook import Runbook

WHOLE_SECONDS = 400.0
ETCD_UNIT = "etcd.service"


until = partial(until_within, seconds=WHOLE_SECONDS)
"""Waits for minutes until a condition holds, because restarts on a busy machine take about one."""


def busy() -> float:
    """Return runnable processes per core, to judge a measured time."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


@dataclass(frozen=True)
class FaultyPlane(RealCluster):
    """A control plane with its nodes, balancer and Prometheus."""

    alerts: Alerts
    folder: Path
    shells: Mapping[str, UnitControl]
    """Each machine's systemctl, written in advance: executing a file just after writing fails with ETXTBSY if another thread forks."""

    @property
    def kubeconfig(self) -> Path:
        return self.control.kubeconfig

    def client(self, seconds: float = 75.0) -> Client:
        """Return a client of the break-glass administrator through the balancer."""
        return Client(self.kubeconfig, seconds)

    def leader(self) -> Machine:
        """Return the leader of the main etcd cluster."""
        for one in self.control.etcd:
            status = json.loads(self.etcdctl(one, "endpoint", "status", "--write-out=json"))[0]["Status"]
            if status["leader"] == status["header"]["member_id"]:
                return one
        raise AssertionError("nobody leads")

    def wait_whole(self, seconds: float = WHOLE_SECONDS) -> float:
        """Wait until every machine runs, answers and is up in the balancer, and every node is ready; return the seconds."""
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
        """Run a runbook in a shell of a machine, with its systemctl and the pinned programs."""
        return Runbook(name, values, self.shell(self.shells[machine.name]), ROOT)


def _enabled_run(machine: Machine) -> bool:
    return all(machine.services[name].state == "ready" for name in machine.enabled)


@contextmanager
def faulty_plane(binaries: Binaries, folder: Path) -> Iterator[FaultyPlane]:
    """Run region dev with joined nodes and Prometheus."""
    with real_cluster("dev", binaries) as real:
        joined = Joiner(real.access()).join(real.machines(), Identities.ISSUED, STORM)
        assert joined.failures == ()
        real.wait_ready({one.name for one in real.machines()})
        machines = real.control.machines
        shells = {one.name: UnitControl(real.run, folder / "shells" / one.name, one.services, one.enabled, {}) for one in machines}
        with prometheus(real.control, real.run, folder) as alerts:
            made = FaultyPlane(**vars(real), alerts=alerts, folder=folder, shells=shells)
            made.wait_whole()
            yield made


def at_once(deeds: Iterable[Callable[[], object]]) -> None:
    """Run functions in parallel and wait for all."""
    threads = [threading.Thread(target=partial(deed)) for deed in deeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
