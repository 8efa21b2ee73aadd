"""A real control plane for tests, with etcd's and Kubernetes' command line clients."""

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
"""More than ten times the usual time, because the machine may be busy."""


@dataclass(frozen=True)
class RunningPlane:
    """A ready control plane, its environment, and the graph of the program's resources."""

    plan: RegionPlan
    cluster: ClusterPlan
    graph: Graph
    azure: AzureService
    binaries: Binaries
    run: RunDirectory
    supervisor: Supervisor
    control: ControlPlane

    def kubectl(self, *words: str, document: object = None) -> str:
        """Return kubectl's output as the break-glass administrator through the balancer; document is JSON for its standard input."""
        command = [str(self.binaries.program("kubectl")), f"--kubeconfig={self.control.kubeconfig}", "--request-timeout=30s", *words]
        given = None if document is None else json.dumps(document)
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def get(self, *words: str) -> Any:
        """Return the JSON of a kubectl get."""
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def make(self, item: object) -> None:
        """Create an object."""
        self.kubectl("create", "-f", "-", document=item)

    def up(self) -> set[str]:
        """Return the API servers that the balancer considers up."""
        return {one["name"] for one in load_balancer.read_state(self.control.balancer.program.directory)["backends"] if one["up"]}

    def shell(self, systemctl: UnitControl) -> dict[str, str]:
        """Return the environment of a shell on a machine: its systemctl, and the pinned programs."""
        programs = (systemctl.folder, self.binaries.program("kubectl").parent, Path(sys.executable).parent)
        return {**os.environ, "PATH": ":".join([*map(str, programs), os.environ["PATH"]])}

    def etcdctl_on(self, members: Sequence[Machine]) -> list[str]:
        """Return the command line of etcdctl for these members, with the first one's keys."""
        first = members[0]
        own = f"{first.role}-{first.name.rpartition('-')[2]}"
        keys = {"cacert": f"{first.role}-ca-cert", "cert": f"{own}-cert", "key": f"{own}-key"}
        urls = ",".join(f"https://127.0.0.1:{one.port(ETCD_CLIENT_PORT)}" for one in members)
        flags = [f"--{flag}={first.path(f'/etc/etcd/{name}.pem')}" for flag, name in keys.items()]
        return [str(self.binaries.program("etcdctl")), f"--endpoints={urls}", *flags]

    def etcdctl(self, member: Machine, *words: str) -> bytes:
        """Return etcdctl's output for one member, with the member's certificate."""
        done = subprocess.run([*self.etcdctl_on([member]), *words], capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


@contextmanager
def running(region: str, binaries: Binaries, size: ControlPlaneSize = WHOLE) -> Iterator[RunningPlane]:
    """Run the control plane of a region's first cluster in the embedded Azure, without objects."""
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
