"""Benchmark of nodes at rest: their requests to the API server, and their open watches."""

from __future__ import annotations

import datetime
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from bench import results
from bench.cluster.region import one_cluster
from bench.command import BenchOutput, Say, run_command
from bench.nodes import audit, sizes
from bench.nodes.hollow import Hollow, token_of
from bench.nodes.tables import markdown, tables
from bench.results import record_option
from lifecycle.kubernetes_api.connection import ApiServerUnreachableError, Connection
from lifecycle.kubernetes_api.kubeconfig import read
from rehearsal.binaries.find import Binaries, BinariesMissingError, find_binaries
from rehearsal.local_cluster.azure_service import serve_azure
from rehearsal.local_cluster.control_plane import ControlPlane, ControlPlaneNotReadyError, ControlPlaneSize
from rehearsal.local_cluster.joining.machines import machines_of
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.program_objects import objects_of
from rehearsal.local_cluster.run_directory import RunDirectory, RunDirectoryError
from rehearsal.local_cluster.systemd.supervisor import Supervisor
from rehearsal.local_up.up import bring_up_anew

READY_SECONDS = 300.0
SETTLING_SECONDS = 60.0
AUDIT_LAG_SECONDS = 5.0
"""Seconds until the log contains an event, because it is written in batches."""
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Rest:
    """Requests, bytes and CPU time counted over a period at rest; bytes sent per second exclude the traffic that exists without nodes."""

    nodes: int
    seconds: float
    counted: audit.Counted
    sent: Mapping[str, float]


@dataclass(frozen=True)
class Plane:
    """A control plane with the program's objects, whose audit log contains every request."""

    control: ControlPlane
    connection: Connection
    start: Callable[[], object]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--nodes", type=click.IntRange(2, 50), default=8, show_default=True, help="Hollow nodes; each is two processes of 60 MB.")
@click.option("--minutes", type=click.FloatRange(1, 120), default=6.0, show_default=True, help="Minutes of measurement at rest.")
@record_option
def main(nodes: int, minutes: float, record: bool) -> None:
    """Count requests of nodes at rest to the API server, by component, verb and resource, and their open watches.

    \b
    A cluster of southcentralus' ND96isr_H100_v5 with one API server, from boot files as always, and all of the program's
    objects. Its nodes are kubemark's: the real kubelet's code with a runtime that does nothing, and kube-proxy's with a proxier
    that does nothing, each with its own identity. DaemonSets' pods run on them. One flag is changed: the audit policy, which
    logs every request.

    Prints Markdown tables: for one node, and for 7,500. They list the differences of kubemark's kubelet from gpufleet's. CoreDNS
    is not run; its watches are as many as its replicas, whatever the nodes. Ends what it has started, also on Ctrl-C.
    """
    say = BenchOutput().say
    rest = measure(nodes, minutes * 60, find_binaries(say, measuring=True), say)
    click.echo(markdown(rest.nodes, rest.seconds, rest.counted, rest.sent))
    if record:
        found = tables(rest.nodes, rest.seconds, rest.counted, rest.sent)
        command = f"python -m bench.nodes --nodes {nodes} --minutes {minutes:g}"
        say(f"wrote {results.write_now('nodes', 'Requests of nodes at rest', command, (), found)}")
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    click.echo(f"\n{nodes} hollow nodes, {minutes:g} minutes at rest; {os.cpu_count()} cores, load at the end {load}")


def measure(nodes: int, seconds: float, programs: Binaries, say: Say) -> Rest:
    """Start nodes, let them settle, and count for some time."""
    with _plane(nodes, programs, say) as plane:
        direct = plane.control.direct_kubeconfig(plane.control.api_servers[0])
        say(f"what the control plane does by itself is counted for {SETTLING_SECONDS:.0f} s")
        alone = _sent(direct, SETTLING_SECONDS)
        plane.start()
        _wait(plane.connection, nodes, say)
        say(f"all pods run; settles for {SETTLING_SECONDS:.0f} s, then {seconds:.0f} s are counted")
        time.sleep(SETTLING_SECONDS)
        first = datetime.datetime.now(datetime.UTC)
        rates = _sent(direct, seconds)
        last = datetime.datetime.now(datetime.UTC)
        time.sleep(AUDIT_LAG_SECONDS)
        counted = audit.count(audit.read(plane.control.api_servers[0].path("/var/log/kubernetes/audit.log")), first, last)
        return Rest(nodes, (last - first).total_seconds(), counted, {what: rate - alone.get(what, 0.0) for what, rate in rates.items()})


def _sent(kubeconfig: Path, seconds: float) -> dict[str, float]:
    """Return the bytes per second that the API server sends in a period, by purpose."""
    before = sizes.sent(kubeconfig)
    time.sleep(seconds)
    return {what: (size - before[what]) / seconds for what, size in sizes.sent(kubeconfig).items()}


@contextmanager
def _plane(nodes: int, programs: Binaries, say: Say) -> Iterator[Plane]:
    """Start the control plane with all objects; hollow nodes are not started yet."""
    with RunDirectory() as run, Supervisor(run, say) as supervisor, tempfile.TemporaryDirectory() as folder:
        plan = one_cluster(nodes, Path(folder))
        (cluster,) = plan.clusters
        outcome = bring_up_anew(plan)
        policy = run.path / "audit-everything.yaml"
        policy.write_text(audit.POLICY)
        size = ControlPlaneSize(overrides={"kube-apiserver": {"audit-policy-file": str(policy)}})
        with (
            serve_azure(outcome.cloud, run.path / "azure") as azure,
            ControlPlane.start(plan, cluster, azure, programs, run, supervisor, size, say) as control,
        ):
            control.wait_ready(READY_SECONDS)
            applied = apply(control.kubeconfig, objects_of(outcome.graphs[-1], cluster), say)
            if not applied.complete:
                raise RuntimeError(f"the program's objects: {applied.summary()}")
            machines = azure.call(lambda cloud: machines_of(cloud, plan, cluster))
            connection = Connection(read(control.kubeconfig), READY_SECONDS, say)
            hollow = Hollow(control, programs, supervisor, run.path / "hollow")
            yield Plane(control, connection, lambda: hollow.start(machines, token_of(connection, "kube-proxy")))


def _wait(connection: Connection, nodes: int, say: Say) -> None:
    """Wait until every DaemonSet has ready pods on all nodes; raise RuntimeError if that takes too long."""
    until, last_report = time.monotonic() + READY_SECONDS, 0.0
    while True:
        sets = connection.request("GET", "/apis/apps/v1/daemonsets").body["items"]
        ready = {one["metadata"]["name"]: int(one["status"].get("numberReady", 0)) for one in sets}
        if ready and all(count == nodes for count in ready.values()):
            return
        if time.monotonic() > until:
            raise RuntimeError(f"after {READY_SECONDS:.0f} s pods of DaemonSets are ready on so many of {nodes} nodes: {ready}")
        if time.monotonic() - last_report > 5.0:
            last_report = time.monotonic()
            say(", ".join(f"{name} {count}" for name, count in ready.items()))
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    run_command(main, ControlPlaneNotReadyError, BinariesMissingError, ApiServerUnreachableError, RunDirectoryError, RuntimeError)
