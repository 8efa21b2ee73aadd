"""A real control plane as tests use it: its engines, and etcd's and Kubernetes' own clients."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from components.plan.model import ETCD_CLIENT_PORT, ClusterPlan, RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.scenario import Scenario
from rehearsal.cluster.azure_service import AzureService
from rehearsal.cluster.control_plane import ControlPlane
from rehearsal.cluster.machine import Machine
from rehearsal.cluster.run_directory import RunDirectory
from rehearsal.cluster.supervisor import Supervisor
from rehearsal.engines.find import Engines
from rehearsal.upward.region_azure import new_azure
from rehearsal.upward.up import bring_up
from rehearsal.upward.update import Allowed
from stacks.load import load_plan


def model_of(region: str) -> tuple[RegionPlan, Cloud]:
    """A region's plan, and a model of Azure in which it was brought up."""
    plan = load_plan(region)
    return plan, bring_up(plan, new_azure(plan, Scenario()), Allowed(), lambda *_: None).cloud


def wait_for(what: Callable[[], Any], seconds: float = 300.0) -> Any:
    """What a question answers once that is not falsy; AssertionError after so many seconds."""
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.2)
    return found


@dataclass(frozen=True)
class RunningPlane:
    """A control plane, and all that it runs in."""

    plan: RegionPlan
    cluster: ClusterPlan
    azure: AzureService
    engines: Engines
    run: RunDirectory
    supervisor: Supervisor
    plane: ControlPlane

    def kubectl(self, *words: str, document: object = None) -> str:
        """What kubectl prints, as the break-glass administrator through the balancer; document is its standard input, as JSON."""
        command = [str(self.engines.program("kubectl")), f"--kubeconfig={self.plane.kubeconfig}", "--request-timeout=30s", *words]
        given = None if document is None else json.dumps(document)
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def got(self, *words: str) -> Any:
        """A kubectl get as JSON."""
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def etcdctl(self, member: Machine, *words: str) -> bytes:
        """What etcdctl prints, asked of one member with its own certificate."""
        own = f"{member.role}-{member.name.rpartition('-')[2]}"
        keys = {"cacert": f"{member.role}-ca-cert", "cert": f"{own}-cert", "key": f"{own}-key"}
        command = [str(self.engines.program("etcdctl")), f"--endpoints=https://127.0.0.1:{member.port(ETCD_CLIENT_PORT)}"]
        command += [f"--{flag}={member.path(f'/etc/etcd/{name}.pem')}" for flag, name in keys.items()]
        done = subprocess.run([*command, *words], capture_output=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout
