"""A real control plane as tests use it: its engines, and etcd's and Kubernetes' own clients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.plan.model import ETCD_CLIENT_PORT, ClusterPlan, RegionPlan
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.azure_service import AzureService, serve_azure
from rehearsal.local_cluster.balancer import load_balancer
from rehearsal.local_cluster.control_plane import ControlPlane, ControlPlaneSize
from rehearsal.local_cluster.machine import Machine
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Supervisor
from rehearsal.local_up.up import bring_up_anew
from rehearsal.program.graph import Graph
from stacks.load import load_plan
from tests.support.unit_control import UnitControl

WHOLE = ControlPlaneSize()
READY_SECONDS = 300.0
"""Ten times and more what it takes: a machine may be busy with much else."""


@dataclass(frozen=True)
class RunningPlane:
    """A control plane that answers, all that it runs in, and the graph of what the program registered for it."""

    plan: RegionPlan
    cluster: ClusterPlan
    graph: Graph
    azure: AzureService
    binaries: Binaries
    run: RunDirectory
    supervisor: Supervisor
    control: ControlPlane

    def kubectl(self, *words: str, document: object = None) -> str:
        """What kubectl prints, as the break-glass administrator through the balancer; document is its standard input, as JSON."""
        command = [str(self.binaries.program("kubectl")), f"--kubeconfig={self.control.kubeconfig}", "--request-timeout=30s", *words]
        given = None if document is None else json.dumps(document)
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, *words: str) -> Any:
        """A kubectl get as JSON."""
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def make(self, item: object) -> None:
        """Create an object."""
        self.kubectl("create", "-f", "-", document=item)

    def up(self) -> set[str]:
        """API servers that the balancer lets connections go to."""
        return {one["name"] for one in load_balancer.read_state(self.control.balancer.program.directory)["backends"] if one["up"]}

    def shell(self, systemctl: UnitControl) -> dict[str, str]:
        """Environment of a person on a machine: its systemctl, and the programs of the pinned versions."""
        programs = (systemctl.folder, self.binaries.program("kubectl").parent, Path(sys.executable).parent)
        return {**os.environ, "PATH": ":".join([*map(str, programs), os.environ["PATH"]])}

    def etcdctl_on(self, members: Sequence[Machine]) -> list[str]:
        """Command line of etcdctl for these members, with the first one's keys."""
        first = members[0]
        own = f"{first.role}-{first.name.rpartition('-')[2]}"
        keys = {"cacert": f"{first.role}-ca-cert", "cert": f"{own}-cert", "key": f"{own}-key"}
        urls = ",".join(f"https://127.0.0.1:{one.port(ETCD_CLIENT_PORT)}" for one in members)
        flags = [f"--{flag}={first.path(f'/etc/etcd/{name}.pem')}" for flag, name in keys.items()]
        return [str(self.binaries.program("etcdctl")), f"--endpoints={urls}", *flags]

    def etcdctl(self, member: Machine, *words: str) -> bytes:
        """What etcdctl prints, asked of one member with its own certificate."""
        done = subprocess.run([*self.etcdctl_on([member]), *words], capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


@contextmanager
def running(region: str, binaries: Binaries, size: ControlPlaneSize = WHOLE) -> Iterator[RunningPlane]:
    """A region's first cluster, brought up in its embedded Azure: its control plane, in which nothing has been applied."""
    plan = load_plan(region)
    cluster = plan.clusters[0]
    outcome = bring_up_anew(plan)
    with (
        RunDirectory() as run,
        serve_azure(outcome.cloud, run.path / "azure") as azure,
        Supervisor(run) as supervisor,
        ControlPlane.start(plan, cluster, azure, binaries, run, supervisor, size) as control,
    ):
        control.wait_ready(READY_SECONDS)
        yield RunningPlane(plan, cluster, outcome.graphs[-1], azure, binaries, run, supervisor, control)
