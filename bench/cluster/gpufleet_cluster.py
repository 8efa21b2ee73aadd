"""Start of gpufleet's cluster: the model, the control plane from its boot files, the program's objects, kwok, and the joiner."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from bench.cluster.progress import TOLD_EVERY
from bench.cluster.region import one_cluster
from bench.cluster.running import READY_SECONDS, Running
from bench.cluster.settings import NO_AUDIT, Setting, scheduler_configuration
from bench.command import Say
from components.boot import kube_scheduler
from components.plan.model import RegionPlan
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.azure_service import AzureService, without_state
from rehearsal.local_cluster.control_plane import ControlPlane, ControlPlaneSize
from rehearsal.local_cluster.joining.cluster_access import access_to
from rehearsal.local_cluster.joining.joiner import STORM, Identities, Joiner
from rehearsal.local_cluster.joining.kwok import kwok_programs
from rehearsal.local_cluster.joining.machines import JoiningMachine, machines_of
from rehearsal.local_cluster.joining.rbac import rights
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.program_objects import objects_of
from rehearsal.local_cluster.provisioned_machines import API_SERVER, control_plane_machines
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Service, Supervisor
from rehearsal.local_up.up import UpOutcome, bring_up_anew

WORKLOADS = frozenset({"DaemonSet", "Deployment"})
"""Kinds of the program's objects that are left out unless the daemons are measured: the bare cluster has no pods of theirs."""

LEAST_NODES = 20


class Tuned(AzureService):
    """A served model whose machines' programs get additional environment variables."""

    extra: Mapping[str, str]

    def environment(self, resource_id: str) -> dict[str, str]:
        return {**super().environment(resource_id), **self.extra}


@dataclass(frozen=True)
class ReadyMachine(JoiningMachine):
    """A machine that registers as Ready, unlike a kubelet, which registers as not ready."""

    def node(self, now: str) -> dict[str, Any]:
        return as_ready(super().node(now))


def as_ready(node: dict[str, Any]) -> dict[str, Any]:
    """Return a Node as after its kubelet's first report of readiness."""
    *good, last = node["status"]["conditions"]
    ready = {**last, "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {**node, "status": {**node["status"], "conditions": [*good, ready]}}


def node_template(folder: Path) -> dict[str, Any]:
    """Return the Node of a gpufleet machine, which the bare cluster posts under other names."""
    plan = one_cluster(LEAST_NODES, folder)
    cloud = bring_up_anew(plan).cloud
    return machines_of(cloud, plan, plan.clusters[0])[0].node(datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


@contextmanager
def ours(nodes: int, setting: Setting, binaries: Binaries, how: Identities, say: Say) -> Iterator[Running]:
    """Start gpufleet's cluster, and yield it when its machines can join."""
    with RunDirectory() as run, Supervisor(run, say) as supervisor:
        plan = one_cluster(nodes, run.path)
        (cluster,) = plan.clusters
        say(f"gpufleet: creating {cluster.nodes:,} machines in the embedded Azure")
        outcome = bring_up_anew(plan, _telling(say))
        with tuned(outcome, run.path, setting.environment) as azure:
            machines = azure.call(lambda cloud: machines_of(cloud, plan, cluster))
            began = time.monotonic()
            size = ControlPlaneSize(overrides=altered(plan, azure, run.path, setting))
            with ControlPlane.start(plan, cluster, azure, binaries, run, supervisor, size, say) as control:
                control.wait_ready(READY_SECONDS)
                came_up = time.monotonic() - began
                objects = [one for one in objects_of(outcome.graphs[-1], cluster) if one["kind"] not in WORKLOADS]
                applied = apply(control.kubeconfig, (*objects, *rights()), say)
                if not applied.complete:
                    raise RuntimeError(f"the program's objects: {applied.summary()}")
                say(f"gpufleet: ready after {came_up:.1f} s; {len(objects)} objects applied; kwok simulates the nodes")
                keepers = {}
                for program in kwok_programs(binaries, run.path, control, setting.keeping):
                    kwok = supervisor.add(replace(program, environment={**program.environment, **setting.environment}))
                    keepers[program.unit] = kwok
                    kwok.start()
                joiner = Joiner(access_to(control, azure, machines), deadline_seconds=READY_SECONDS)
                joining = [_ready(one) for one in machines] if setting.keeping.registered_ready else list(machines)

                def join(tell: Say) -> Mapping[str, float]:
                    joined = joiner.join(joining, how, STORM, tell)
                    if joined.failures:
                        raise RuntimeError(f"{len(joined.failures)} machines did not join; the first: {joined.failures[0]}")
                    steps = {f"{name}, p99 s": figures.p99 for name, figures in joined.steps.items()}
                    return {"joiner, s": joined.seconds, "joiner, CPU s": joined.cpu_seconds, "429s": joined.refused, **steps}

                direct = control.direct_kubeconfig(control.api_servers[0])
                yield Running("ours", direct, {**_services(control), **keepers}, join, came_up)


@contextmanager
def tuned(outcome: UpOutcome, folder: Path, extra: Mapping[str, str]) -> Iterator[Tuned]:
    """Serve the model with additional environment variables."""
    azure = Tuned(without_state(outcome.cloud), folder / "azure")
    azure.extra = extra
    with azure:
        yield azure


def altered(plan: RegionPlan, azure: AzureService, folder: Path, setting: Setting) -> Mapping[str, Mapping[str, str]]:
    """Return the flags that the setting changes; write the files that they name into the folder."""
    if not setting.filters_only:
        return setting.flags
    silent = folder / "audit-nothing.yaml"
    silent.write_text(NO_AUDIT)
    (server,) = (one for one in azure.call(lambda cloud: control_plane_machines(cloud, plan.clusters[0])) if one.role == API_SERVER)
    path = folder / "scheduler-filters-only.yaml"
    path.write_text(scheduler_configuration(f"{folder / server.name}{kube_scheduler.KUBECONFIG}", filters_only=True, rendered=True))
    server_flags = {**setting.flags.get("kube-apiserver", {}), "audit-policy-file": str(silent)}
    return {**setting.flags, "kube-apiserver": server_flags, "kube-scheduler": {"config": str(path)}}


def _telling(say: Say) -> Callable[[str, int, float], None]:
    """Return a callback that reports the model's progress at intervals."""
    last_report = time.monotonic()

    def tell(stack: str, count: int, _: float) -> None:
        nonlocal last_report
        if time.monotonic() - last_report >= TOLD_EVERY:
            last_report = time.monotonic()
            say(f"gpufleet: stack {stack}, {count:,} resources created")

    return tell


def _ready(machine: JoiningMachine) -> ReadyMachine:
    return ReadyMachine(**{one.name: getattr(machine, one.name) for one in fields(machine)})


def _services(control: ControlPlane) -> dict[str, Service]:
    """Return the services of the control plane by program name."""
    units = {f"{unit.removesuffix('.service')}": service for one in control.api_servers for unit, service in one.services.items()}
    programs = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    rings = {"etcd": control.etcd[0].services["etcd.service"], "etcd of events": control.events[0].services["etcd.service"]}
    approver = {"CSR approver": units["gpufleet-csr-approver"]}
    return {**{name: units[name] for name in programs}, **rings, "balancer": control.balancer, **approver}
