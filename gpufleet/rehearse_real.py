"""gpufleet rehearse --real: run one cluster's real control plane with its machines on this machine, with progress."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from components.errors import GpufleetError
from gpufleet.consoles import is_live, progress_console
from rehearsal.binaries.find import Binaries, BinariesMissingError, find_binaries
from rehearsal.local_cluster.cluster_size import ClusterSize, ClusterSizeError, check_memory, requested_size
from rehearsal.local_cluster.joining.joiner import Identities
from rehearsal.local_cluster.rehearse_real import ProvisionedRegion, RealRun, real_cluster
from rehearsal.local_cluster.systemd.process import ProcessUsage
from stacks.load import load_plan

if TYPE_CHECKING:
    from rehearsal.rehearse import RehearsalResult

EXIT_FAILED, EXIT_REFUSED = 1, 2
WAIT_SECONDS = 0.5
"""Longest time after which a cluster with --keep notices Ctrl-C."""
MIB = 2**20
HOW = {
    Identities.BOOTSTRAP: "each as at its first boot: token, client certificate, Node, serving certificate",
    Identities.ISSUED: "each with a client certificate issued beforehand",
    Identities.IMPERSONATED: "in their names",
}


@dataclass(frozen=True)
class RealOptions:
    """Values of the options of --real; None if an option was not given."""

    cluster: str | None
    nodes: int | None
    api_servers: int | None
    keep: bool


@dataclass(frozen=True)
class Prepared:
    """Cluster and size to run, the programs, and the value of --keep."""

    size: ClusterSize
    binaries: Binaries
    keep: bool


def prepared(region: str, options: RealOptions, console: Console) -> Prepared:
    """Check that the cluster can run here, and find or build the programs; exit if either is not possible."""
    try:
        chosen = requested_size(load_plan(region), options.cluster, options.nodes, options.api_servers)
        if sys.platform != "linux":
            raise ClusterSizeError(f"--real runs programs by means of Linux, and this is {sys.platform}; run it on a Linux machine")
        check_memory(chosen)
        return Prepared(chosen, find_binaries(lambda line: progress_console().print(line, markup=False, soft_wrap=True)), options.keep)
    except ClusterSizeError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        sys.exit(EXIT_REFUSED)
    except BinariesMissingError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        sys.exit(EXIT_FAILED)


def run_real(result: RehearsalResult, size: Prepared, console: Console) -> bool:
    """Run the cluster, print its summary, keep it until Ctrl-C with --keep, and end it; return whether it has no findings."""
    began = time.monotonic()
    folder = None
    try:
        with (
            _progress() as show,
            real_cluster(ProvisionedRegion(result.plan, result.cloud, result.clusters), size.size, size.binaries, show) as run,
        ):
            folder = run.folder
            show("", "")
            for line in summary(run, time.monotonic() - began):
                console.print(line, markup=False, soft_wrap=True)
            if size.keep:
                _keep(run, console)
            ending = time.monotonic()
    except GpufleetError as error:
        console.print(f"real cluster: {error}", markup=False, soft_wrap=True)
        return False
    finally:
        if folder and not folder.exists():
            console.print("  all processes have ended, and their files are removed", markup=False)
    console.print(f"  ended in {time.monotonic() - ending:.1f} s; the real cluster took {time.monotonic() - began:.1f} s", markup=False)
    return not run.findings


def _keep(run: RealRun, console: Console) -> None:
    """Print how to use the cluster, and wait for Ctrl-C."""
    kubectl = shlex.join([str(run.binaries.program("kubectl")), f"--kubeconfig={run.control.kubeconfig}"])
    for line in (
        "  it runs until Ctrl-C; in another terminal:",
        f"    {kubectl} get nodes",
        f"    the load balancer: {run.control.url}, behind it "
        + ", ".join(f"{one.name} at {run.control.server(one)}" for one in run.control.api_servers),
        f"    files and logs of each machine: {run.folder}/<machine>, removed at the end",
    ):
        console.print(line, markup=False, soft_wrap=True)
    while True:
        # Python handles a signal that arrives just before a wait only after the wait.
        time.sleep(WAIT_SECONDS)


def summary(run: RealRun, seconds: float) -> list[str]:
    """Summarise the real cluster in about 15 lines."""
    cluster, took = run.size.cluster, run.seconds
    ready = ", ".join(f"{one.name} {max(0, one.ready):,}/{one.desired:,}" for one in run.daemons)
    memory = sum(usage.memory_bytes for _, usage in run.usages.values())
    rows = sorted(run.usages.items(), key=lambda row: -row[1][1].memory_bytes)
    return [
        f"{cluster.name}, for real: etcd {len(run.control.etcd)}+{len(run.control.events)}, {len(run.control.api_servers)} API servers",
        f"  API servers ready after {took['control plane']:.1f} s; objects: {run.applied.summary()} in {took['objects']:.1f} s",
        f"  machines: {run.joined.nodes:,} of {run.size.nodes:,} joined in {run.joined.seconds:.1f} s, {HOW[run.how]}",
        f"  nodes: {run.ready_nodes:,} ready {took['nodes ready']:.1f} s after that",
        f"  pods of DaemonSets, ready of those desired, {took['pods']:.1f} s after that: {ready}",
        f"  {run.requests:,} requests answered; {memory / MIB:,.0f} MiB of memory now, by program:",
        *(_usage_line(name, *used) for name, used in rows),
        "  checked: endpoints of the service kubernetes; labels, taints and addresses of nodes as in their boot files;",
        "  DaemonSets run on every node that they select: " + ("no difference" if not run.findings else f"{len(run.findings)} found"),
        *(f"    {finding}" for finding in run.findings),
        f"  running after {seconds:.1f} s ({', '.join(f'{name} {span:.1f}' for name, span in took.items())})",
    ]


def _usage_line(name: str, count: int, usage: ProcessUsage) -> str:
    """Return the line about the memory and CPU time of all processes of a program."""
    shown = f"{name} x{count}" if count > 1 else name
    return f"    {shown:<28}{usage.memory_bytes / MIB:>7,.0f} MiB {usage.cpu_seconds:>8.1f} s of processor time"


@contextmanager
def _progress() -> Iterator[Callable[[str, str], None]]:
    """Show on standard error a live line per phase on a terminal, a plain line per phase elsewhere; an empty phase name ends it."""
    console = progress_console()
    if not is_live(console):
        known: set[str] = set()

        def plainly(phase: str, _: str) -> None:
            if phase and phase not in known:
                known.add(phase)
                console.print(f"real cluster: {phase}", markup=False)

        yield plainly
        return
    columns = (
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description:<14}"),
        TextColumn("{task.fields[done]}"),
        TimeElapsedColumn(),
    )
    bars = Progress(*columns, console=console, transient=True)
    tasks: dict[str, TaskID] = {}

    def show(phase: str, done: str) -> None:
        if phase not in tasks:
            for earlier in tasks.values():
                bars.update(earlier, total=1, completed=1)
            if not phase:
                bars.stop()
                return
            tasks[phase] = bars.add_task(phase, total=None, done="")
        bars.update(tasks[phase], done=done)

    with bars:
        yield show
