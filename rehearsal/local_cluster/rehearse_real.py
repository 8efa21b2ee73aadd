"""Decides the course of a rehearsal with the real control plane: Azure is served, servers start, objects are applied, machines join."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from components.plan.model import RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.binaries.find import Engines
from rehearsal.local_cluster.azure_service import serve_azure
from rehearsal.local_cluster.cluster_checks import SHOWN, ClusterInspector, DaemonSetStatus, all_ready
from rehearsal.local_cluster.cluster_size import ClusterSize, ClusterSizeError
from rehearsal.local_cluster.control_plane import ControlPlane, ControlPlaneSize
from rehearsal.local_cluster.joining.cluster_access import gate_to
from rehearsal.local_cluster.joining.figures import Joined
from rehearsal.local_cluster.joining.joiner import STORM, Identities, Joiner
from rehearsal.local_cluster.joining.kwok import faithful, kwok_programs
from rehearsal.local_cluster.joining.machines import JoiningMachine, machines_of
from rehearsal.local_cluster.joining.rbac import rights
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.program_objects import objects_of
from rehearsal.local_cluster.objects.results import ApplyResult
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.process import ProcessUsage
from rehearsal.local_cluster.systemd.supervisor import Supervisor
from rehearsal.program.graph import Graph

SERVERS_SECONDS = 300.0
SETTLING_SECONDS, SETTLING_SECONDS_PER_NODE = 120.0, 0.2
"""How long nodes, and then pods, may take to be ready, before that counts as a finding."""
MOST_BOOTSTRAPPED = 1_000
"""Machines above which certificates are issued beforehand: each would ask for two to be signed."""
LOOK_SECONDS = 0.2
T = TypeVar("T")

ReportProgress = Callable[[str, str], None]
"""Told of each phase, and of how far it is, in words."""


@dataclass(frozen=True)
class ProvisionedRegion:
    """What an embedded Azure holds after a region came up: the plan, the model, and the graph of the clusters' stack."""

    plan: RegionPlan
    cloud: Cloud
    graph: Graph


@dataclass
class RealRun:
    """A cluster that runs, and what was seen of it; seconds by phase, findings sentences on what is not as it should be."""

    wanted: ClusterSize
    engines: Engines
    control: ControlPlane
    folder: Path
    applied: ApplyResult
    joined: Joined
    how: Identities
    ready_nodes: int
    daemons: tuple[DaemonSetStatus, ...]
    requests: int
    usages: dict[str, tuple[int, ProcessUsage]]
    """By program: how many of it run, and what they use together."""
    seconds: dict[str, float] = field(default_factory=dict)
    findings: tuple[str, ...] = ()


@contextmanager
def real_cluster(brought: ProvisionedRegion, wanted: ClusterSize, engines: Engines, tell: ReportProgress) -> Iterator[RealRun]:
    """Run a cluster of a region that was brought up, until the context is left; nothing of it is there afterwards.

    RealRefused, RunRefused, NotProvisioned, ControlPlaneNotReady, NodeRefused, NotReady and NoAnswer say in sentences what did not go.
    """
    seconds: dict[str, float] = {}
    with ExitStack() as stack:
        run = stack.enter_context(RunDirectory())
        supervisor = stack.enter_context(Supervisor(run))
        with _timed("control plane", seconds, tell):
            azure = stack.enter_context(serve_azure(brought.cloud, run.path / "azure"))
            size = ControlPlaneSize(api_servers=wanted.api_servers)
            control = stack.enter_context(ControlPlane.start(brought.plan, wanted.cluster, azure, engines, run, supervisor, size))
            _wait_for_servers(control, tell)
        with _timed("objects", seconds, tell):
            applied = apply(control.kubeconfig, (*objects_of(brought.graph, wanted.cluster), *rights()), lambda _: None)
            tell("objects", applied.summary())
        with _timed("machines join", seconds, tell):
            machines = _spread(azure.call(lambda cloud: machines_of(cloud, brought.plan, wanted.cluster)), wanted.nodes)
            gate = gate_to(control, azure, machines)
            _start_kwok(control, engines, run, supervisor, machines)
            how = Identities.BOOTSTRAP if len(machines) <= MOST_BOOTSTRAPPED else Identities.ISSUED
            joined = Joiner(gate).join(machines, how, STORM, lambda text: tell("machines join", text))
        asker = ClusterInspector(control.kubeconfig)
        stack.callback(asker.close)
        with _timed("nodes ready", seconds, tell):
            ready = _wait_for_nodes(asker, machines, tell)
        with _timed("pods", seconds, tell):
            daemons = _wait_for_pods(asker, len(ready), tell)
        with _timed("checks", seconds, tell):
            findings = tuple(_findings(asker, control, applied, joined, machines, ready, daemons))
            requests = sum(_requests(engines, control.direct_kubeconfig(one)) for one in control.api_servers)
            usages = _usages(supervisor)
        seen = (applied, joined, how, len(ready), daemons, requests, usages, seconds, findings)
        yield RealRun(wanted, engines, control, run.path, *seen)


@contextmanager
def _timed(phase: str, seconds: dict[str, float], tell: ReportProgress) -> Iterator[None]:
    """Tell of a phase and time it."""
    tell(phase, "")
    began = time.monotonic()
    yield
    seconds[phase] = time.monotonic() - began


def _wait_for_servers(control: ControlPlane, tell: ReportProgress) -> None:
    """Wait until every API server and the balancer answer; ControlPlaneNotReady."""
    deadline = time.monotonic() + SERVERS_SECONDS
    servers = [control.server(machine) for machine in control.api_servers]
    while time.monotonic() < deadline:
        ready = sum(control.answers(server) for server in servers)
        tell("control plane", f"{ready} of {len(servers)} API servers answer")
        if ready == len(servers):
            break
        time.sleep(LOOK_SECONDS)
    control.wait_ready(max(1.0, deadline - time.monotonic()))


def _spread(machines: Sequence[JoiningMachine], count: int) -> tuple[JoiningMachine, ...]:
    """So many of the machines, from every scale set in turn."""
    sets: dict[str, list[JoiningMachine]] = {}
    for machine in machines:
        sets.setdefault(machine.of_set.name, []).append(machine)
    turns = (machine for turn in zip_longest(*sets.values()) for machine in turn if machine is not None)
    return tuple(machine for machine, _ in zip(turns, range(count), strict=False))


def _start_kwok(
    control: ControlPlane, engines: Engines, run: RunDirectory, supervisor: Supervisor, machines: Sequence[JoiningMachine]
) -> None:
    """Start what keeps nodes and pods alive, at the machines' own pace; RealRefused where they have several."""
    try:
        keeping = faithful([machine.of_set for machine in machines])
    except ValueError as error:
        raise ClusterSizeError(str(error)) from error
    services = [supervisor.add(program) for program in kwok_programs(engines, run.path, control, keeping)]
    for service in services:
        service.start()
    for service in services:
        service.wait_ready(SETTLING_SECONDS)


def _wait_for_nodes(asker: ClusterInspector, machines: Sequence[JoiningMachine], tell: ReportProgress) -> set[str]:
    """Names of the machines' nodes that are ready, once all are or it takes too long."""
    names = {machine.name for machine in machines}

    def look() -> tuple[set[str], bool, str]:
        ready = asker.ready_nodes() & names
        return ready, ready == names, f"{len(ready):,} of {len(names):,} are"

    return _settled(look, "nodes ready", len(names), tell)


def _wait_for_pods(asker: ClusterInspector, nodes: int, tell: ReportProgress) -> tuple[DaemonSetStatus, ...]:
    """The DaemonSets, once all their pods are ready or it takes too long."""

    def look() -> tuple[tuple[DaemonSetStatus, ...], bool, str]:
        found = asker.daemons()
        done = f"{sum(max(0, one.ready) for one in found):,} of {sum(one.desired for one in found):,} of {len(found)} DaemonSets are ready"
        return found, all_ready(found, nodes), done

    return _settled(look, "pods", nodes, tell)


def _settled(look: Callable[[], tuple[T, bool, str]], phase: str, nodes: int, tell: ReportProgress) -> T:
    """Look until it is as it should be or takes too long; looks take at most half of the time, since large lists cost the servers."""
    deadline = time.monotonic() + SETTLING_SECONDS + SETTLING_SECONDS_PER_NODE * nodes
    while True:
        began = time.monotonic()
        found, done, text = look()
        tell(phase, text)
        if done or time.monotonic() > deadline:
            return found
        time.sleep(max(LOOK_SECONDS, time.monotonic() - began))


def _findings(
    asker: ClusterInspector,
    control: ControlPlane,
    applied: ApplyResult,
    joined: Joined,
    machines: Sequence[JoiningMachine],
    ready: set[str],
    daemons: Sequence[DaemonSetStatus],
) -> Iterator[str]:
    """What is not as it should be, a sentence each."""
    yield from (str(one) for one in (*applied.failed, *applied.conflicts))
    yield from (f"{one.node} did not join: {one.step}: {one.message}" for one in joined.failures[:SHOWN])
    wanted, listed = {machine.address for machine in control.api_servers}, asker.servers()
    if listed != wanted:
        yield f"the service kubernetes leads to {sorted(listed)}, and the API servers are {sorted(wanted)}"
    missing = [machine.name for machine in machines if machine.name not in ready]
    if missing:
        yield f"{len(missing):,} of {len(machines):,} nodes are not ready: {', '.join(missing[:SHOWN])}"
    differences = asker.nodes_that_differ([machine for machine in machines if machine.name in ready])
    yield from differences[:SHOWN]
    if len(differences) > SHOWN:
        yield f"and {len(differences) - SHOWN:,} more differences between nodes and their boot files"
    for one in daemons:
        if not all_ready([one], len(ready)):
            expected = f", of {len(ready):,} nodes" if one.everywhere else ""
            yield f"DaemonSet {one.name}: {max(0, one.ready):,} of {one.desired:,} pods are ready{expected}"


def _requests(engines: Engines, kubeconfig: Path) -> int:
    """Requests that an API server has answered, by its own metrics; 0 where it does not tell."""
    command = [str(engines.program("kubectl")), f"--kubeconfig={kubeconfig}", "--request-timeout=30s", "get", "--raw", "/metrics"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return int(sum(float(line.rpartition(" ")[2]) for line in done.stdout.splitlines() if line.startswith("apiserver_request_total{")))


def _usages(supervisor: Supervisor) -> dict[str, tuple[int, ProcessUsage]]:
    """What the programs that run use, by program."""
    found: dict[str, tuple[int, ProcessUsage]] = {}
    for service in supervisor.services:
        if service.pid is not None:
            name = service.program.unit.removesuffix(".service")
            count, sums = found.get(name, (0, ProcessUsage()))
            more = service.usage()
            total = ProcessUsage(
                sums.cpu_seconds + more.cpu_seconds, sums.memory_bytes + more.memory_bytes, sums.peak_bytes + more.peak_bytes
            )
            found[name] = (count + 1, total)
    return found
