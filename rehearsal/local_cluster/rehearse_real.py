"""Rehearsal with the real control plane: serve Azure, start servers, apply objects, join machines, check the cluster."""

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
from rehearsal.binaries.find import Binaries
from rehearsal.local_cluster.azure_service import serve_azure
from rehearsal.local_cluster.cluster_checks import SHOWN, ClusterInspector, DaemonSetStatus, all_ready
from rehearsal.local_cluster.cluster_size import ClusterSize, ClusterSizeError
from rehearsal.local_cluster.control_plane import ControlPlane, ControlPlaneSize
from rehearsal.local_cluster.joining.cluster_access import access_to
from rehearsal.local_cluster.joining.figures import JoinFigures
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
"""Time in which nodes, and then pods, must become ready; later is a finding."""
MOST_BOOTSTRAPPED = 1_000
"""Number of machines above which certificates are issued beforehand, because each machine would request two."""
LOOK_SECONDS = 0.2
T = TypeVar("T")

ReportProgress = Callable[[str, str], None]
"""Called with the name of a phase and its progress in words."""


@dataclass(frozen=True)
class ProvisionedRegion:
    """A region that is up in the embedded Azure: the plan, the model, and the graph of the clusters' stack."""

    plan: RegionPlan
    cloud: Cloud
    graph: Graph


@dataclass
class RealRun:
    """A running cluster and its measurements: seconds by phase, findings as sentences."""

    size: ClusterSize
    binaries: Binaries
    control: ControlPlane
    folder: Path
    applied: ApplyResult
    joined: JoinFigures
    how: Identities
    ready_nodes: int
    daemons: tuple[DaemonSetStatus, ...]
    requests: int
    usages: dict[str, tuple[int, ProcessUsage]]
    """Number of processes and their resource usage, by program."""
    seconds: dict[str, float] = field(default_factory=dict)
    findings: tuple[str, ...] = ()


@contextmanager
def real_cluster(region: ProvisionedRegion, size: ClusterSize, binaries: Binaries, report: ReportProgress) -> Iterator[RealRun]:
    """Run a cluster of a provisioned region until the context ends, which removes everything.

    Raises ClusterSizeError, RunDirectoryError, NotProvisionedError, ControlPlaneNotReadyError, NodeBootError, ServiceNotReadyError or
    ApiServerUnreachableError.
    """
    seconds: dict[str, float] = {}
    with ExitStack() as stack:
        run = stack.enter_context(RunDirectory())
        supervisor = stack.enter_context(Supervisor(run))
        with _timed("control plane", seconds, report):
            azure = stack.enter_context(serve_azure(region.cloud, run.path / "azure"))
            control = stack.enter_context(
                ControlPlane.start(region.plan, size.cluster, azure, binaries, run, supervisor, ControlPlaneSize(size.api_servers))
            )
            _wait_for_servers(control, report)
        with _timed("objects", seconds, report):
            applied = apply(control.kubeconfig, (*objects_of(region.graph, size.cluster), *rights()), lambda _: None)
            report("objects", applied.summary())
        with _timed("machines join", seconds, report):
            machines = _spread(azure.call(lambda cloud: machines_of(cloud, region.plan, size.cluster)), size.nodes)
            gate = access_to(control, azure, machines)
            _start_kwok(control, binaries, run, supervisor, machines)
            how = Identities.BOOTSTRAP if len(machines) <= MOST_BOOTSTRAPPED else Identities.ISSUED
            joined = Joiner(gate).join(machines, how, STORM, lambda text: report("machines join", text))
        inspector = ClusterInspector(control.kubeconfig)
        stack.callback(inspector.close)
        with _timed("nodes ready", seconds, report):
            ready = _wait_for_nodes(inspector, machines, report)
        with _timed("pods", seconds, report):
            daemons = _wait_for_pods(inspector, len(ready), report)
        with _timed("checks", seconds, report):
            findings = tuple(_findings(inspector, control, applied, joined, machines, ready, daemons))
            requests = sum(_requests(binaries, control.direct_kubeconfig(one)) for one in control.api_servers)
            usages = _usages(supervisor)
        measured = (applied, joined, how, len(ready), daemons, requests, usages, seconds, findings)
        yield RealRun(size, binaries, control, run.path, *measured)


@contextmanager
def _timed(phase: str, seconds: dict[str, float], report: ReportProgress) -> Iterator[None]:
    """Report a phase and measure its time."""
    report(phase, "")
    began = time.monotonic()
    yield
    seconds[phase] = time.monotonic() - began


def _wait_for_servers(control: ControlPlane, report: ReportProgress) -> None:
    """Wait until every API server and the balancer answer; raise ControlPlaneNotReadyError."""
    deadline = time.monotonic() + SERVERS_SECONDS
    servers = [control.server(machine) for machine in control.api_servers]
    while time.monotonic() < deadline:
        ready = sum(control.answers(server) for server in servers)
        report("control plane", f"{ready} of {len(servers)} API servers answer")
        if ready == len(servers):
            break
        time.sleep(LOOK_SECONDS)
    control.wait_ready(max(1.0, deadline - time.monotonic()))


def _spread(machines: Sequence[JoiningMachine], count: int) -> tuple[JoiningMachine, ...]:
    """Return count machines, taken from the scale sets in turn."""
    sets: dict[str, list[JoiningMachine]] = {}
    for machine in machines:
        sets.setdefault(machine.of_set.name, []).append(machine)
    turns = (machine for turn in zip_longest(*sets.values()) for machine in turn if machine is not None)
    return tuple(machine for machine, _ in zip(turns, range(count), strict=False))


def _start_kwok(
    control: ControlPlane, binaries: Binaries, run: RunDirectory, supervisor: Supervisor, machines: Sequence[JoiningMachine]
) -> None:
    """Start kwok for nodes and pods at the machines' heartbeat interval; raise ClusterSizeError if they have several intervals."""
    try:
        setting = faithful([machine.of_set for machine in machines])
    except ValueError as error:
        raise ClusterSizeError(str(error)) from error
    services = [supervisor.add(program) for program in kwok_programs(binaries, run.path, control, setting)]
    for service in services:
        service.start()
    for service in services:
        service.wait_ready(SETTLING_SECONDS)


def _wait_for_nodes(inspector: ClusterInspector, machines: Sequence[JoiningMachine], report: ReportProgress) -> set[str]:
    """Return the names of the machines' ready nodes, once all are ready or the time is over."""
    names = {machine.name for machine in machines}

    def look() -> tuple[set[str], bool, str]:
        ready = inspector.ready_nodes() & names
        return ready, ready == names, f"{len(ready):,} of {len(names):,} are"

    return _settled(look, "nodes ready", len(names), report)


def _wait_for_pods(inspector: ClusterInspector, nodes: int, report: ReportProgress) -> tuple[DaemonSetStatus, ...]:
    """Return the DaemonSets, once all their pods are ready or the time is over."""

    def look() -> tuple[tuple[DaemonSetStatus, ...], bool, str]:
        found = inspector.daemons()
        done = f"{sum(max(0, one.ready) for one in found):,} of {sum(one.desired for one in found):,} of {len(found)} DaemonSets are ready"
        return found, all_ready(found, nodes), done

    return _settled(look, "pods", nodes, report)


def _settled(look: Callable[[], tuple[T, bool, str]], phase: str, nodes: int, report: ReportProgress) -> T:
    """Poll until done or the time is over; polls take at most half of the time, because large lists load the servers."""
    deadline = time.monotonic() + SETTLING_SECONDS + SETTLING_SECONDS_PER_NODE * nodes
    while True:
        began = time.monotonic()
        found, done, text = look()
        report(phase, text)
        if done or time.monotonic() > deadline:
            return found
        time.sleep(max(LOOK_SECONDS, time.monotonic() - began))


def _findings(
    inspector: ClusterInspector,
    control: ControlPlane,
    applied: ApplyResult,
    joined: JoinFigures,
    machines: Sequence[JoiningMachine],
    ready: set[str],
    daemons: Sequence[DaemonSetStatus],
) -> Iterator[str]:
    """Yield the differences between the cluster and the plan, one sentence each."""
    yield from (str(one) for one in (*applied.failed, *applied.conflicts))
    yield from (f"{one.node} did not join: {one.step}: {one.message}" for one in joined.failures[:SHOWN])
    expected, listed = {machine.address for machine in control.api_servers}, inspector.servers()
    if listed != expected:
        yield f"the service kubernetes has the endpoints {sorted(listed)}, and the API servers are {sorted(expected)}"
    missing = [machine.name for machine in machines if machine.name not in ready]
    if missing:
        yield f"{len(missing):,} of {len(machines):,} nodes are not ready: {', '.join(missing[:SHOWN])}"
    differences = inspector.nodes_that_differ([machine for machine in machines if machine.name in ready])
    yield from differences[:SHOWN]
    if len(differences) > SHOWN:
        yield f"and {len(differences) - SHOWN:,} more differences between nodes and their boot files"
    for one in daemons:
        if not all_ready([one], len(ready)):
            suffix = f", of {len(ready):,} nodes" if one.everywhere else ""
            yield f"DaemonSet {one.name}: {max(0, one.ready):,} of {one.desired:,} pods are ready{suffix}"


def _requests(binaries: Binaries, kubeconfig: Path) -> int:
    """Return the number of requests that an API server has answered, from its metrics; 0 if it has no metrics."""
    command = [str(binaries.program("kubectl")), f"--kubeconfig={kubeconfig}", "--request-timeout=30s", "get", "--raw", "/metrics"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return int(sum(float(line.rpartition(" ")[2]) for line in done.stdout.splitlines() if line.startswith("apiserver_request_total{")))


def _usages(supervisor: Supervisor) -> dict[str, tuple[int, ProcessUsage]]:
    """Return the number of processes and their resource usage, by program."""
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
