"""Benchmark of joins: a cluster's machines join its real control plane under each identity, at once and spread.

    nice .venv/bin/python -m bench.joining --region swedencentral --machines 1000

A control plane as planned, from the boot files of its machines; kwok keeps nodes alive as their kubelets are told. `posted` is the bare
cost: the same Node objects, posted by eight connections of an administrator whom priority and fairness let pass.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

from bench import results
from bench.cluster.gpufleet_cluster import WORKLOADS
from bench.results import ResultTable, record_option
from rehearsal.binaries.find import find_binaries
from rehearsal.local_cluster.azure_service import serve_azure
from rehearsal.local_cluster.control_plane import ControlPlane, ControlPlaneSize
from rehearsal.local_cluster.joining.certificates import Issuer, client_context
from rehearsal.local_cluster.joining.cluster_access import ClusterAccess, access_to, issuer_of
from rehearsal.local_cluster.joining.connection import Connection
from rehearsal.local_cluster.joining.figures import JoinFigures, Tally, joined
from rehearsal.local_cluster.joining.joiner import IMPERSONATING_CONNECTIONS, STORM, Identities, Joiner, Smoothing
from rehearsal.local_cluster.joining.kwok import faithful, kwok_programs
from rehearsal.local_cluster.joining.machines import JoiningMachine, machines_of
from rehearsal.local_cluster.joining.node_registration import NODES, NodeRegistration
from rehearsal.local_cluster.joining.rbac import rights
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.program_objects import objects_of
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Supervisor
from rehearsal.local_up.up import bring_up_anew
from stacks.load import load_plan

POSTED = "posted"
WAYS = (POSTED, *(way.value for way in Identities))
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
READY_SECONDS = 600.0
LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Measured:
    """One row: the identity and spread of the joins, the time until all nodes were Ready, and CPU seconds by program."""

    way: str
    spread: bool
    joined: JoinFigures
    ready: float
    cpu: dict[str, float]


@dataclass(frozen=True)
class Bench:
    """A running control plane, and the machines that join it repeatedly."""

    supervisor: Supervisor
    machines: Sequence[JoiningMachine]
    access: ClusterAccess
    issuer: Issuer

    def measure(self, way: str, smoothing: Smoothing) -> Measured:
        """Join every machine, wait until all nodes are ready, and delete the nodes."""
        before, began = self._cpu(), time.monotonic()
        if way == POSTED:
            figures = asyncio.run(self._post())
        else:
            figures = Joiner(self.access).join(self.machines, Identities(way), smoothing, click.echo)
        for failure in figures.failures[:3]:
            click.echo(f"{failure.node}: {failure.step}: {failure.status} {failure.message}", err=True)
        asyncio.run(self._until(figures.nodes))
        ready = time.monotonic() - began
        spent = self._cpu()
        spent.subtract(before)
        asyncio.run(self._forget())
        return Measured(way, smoothing.on, figures, ready, {**dict(spent), "joiner": figures.cpu_seconds})

    def _administrator(self, tally: Tally, headers: Mapping[str, str] = TABLE) -> Connection:
        identity = self.issuer.issue("bench", "system:masters")
        deadline = time.monotonic() + READY_SECONDS
        return Connection(self.access.url, client_context(self.access.authority, identity), tally, deadline, headers)

    async def _post(self) -> JoinFigures:
        """Post Node objects over few connections of one administrator: the bare cost."""
        tally, left, began, cpu = Tally(), iter(self.machines), time.monotonic(), time.thread_time()

        async def work() -> None:
            async with self._administrator(tally, {}) as connection:
                for machine in left:
                    await NodeRegistration(machine, tally).register(connection)

        await asyncio.gather(*(work() for _ in range(IMPERSONATING_CONNECTIONS)))
        return joined(tally, time.monotonic() - began, len(self.machines), (), time.thread_time() - cpu)

    async def _until(self, nodes: int) -> None:
        """Wait until that many nodes are ready."""
        async with self._administrator(Tally()) as connection:
            while True:
                rows = (await connection.request("GET", f"{NODES}?resourceVersion=0&includeObject=None")).json()["rows"]
                if sum(str(row["cells"][1]).startswith("Ready") for row in rows) >= nodes:
                    return
                if time.monotonic() > connection.deadline:
                    raise click.ClickException(f"{nodes} nodes have joined, and not all are ready after {READY_SECONDS:.0f} s")
                await asyncio.sleep(LOOK_SECONDS)

    async def _forget(self) -> None:
        """Delete all nodes and their signing requests."""
        async with self._administrator(Tally()) as connection:
            for path in (NODES, "/apis/certificates.k8s.io/v1/certificatesigningrequests"):
                await connection.request("DELETE", path)
            while (await connection.request("GET", "/api/v1/pods?resourceVersion=0&includeObject=None")).json()["rows"]:
                await connection.request("DELETE", "/api/v1/namespaces/kube-system/pods?gracePeriodSeconds=0")
                await connection.request("DELETE", "/api/v1/namespaces/gpufleet-system/pods?gracePeriodSeconds=0")
                await asyncio.sleep(LOOK_SECONDS)

    def _cpu(self) -> Counter[str]:
        """Return CPU seconds by unit, summed over all machines."""
        spent: Counter[str] = Counter()
        for service in self.supervisor.services:
            spent[service.program.unit.removesuffix(".service")] += service.usage().cpu_seconds  # type: ignore[assignment]
        return spent


@contextmanager
def prepared(region: str, count: int, daemons: bool, api_servers: int | None) -> Iterator[Bench]:
    """Start the region's first cluster, and yield it when its machines can join."""
    plan = load_plan(region)
    cluster = plan.clusters[0]
    outcome = bring_up_anew(plan)
    programs = find_binaries(click.echo)
    with (
        RunDirectory() as run,
        Supervisor(run) as supervisor,
        serve_azure(outcome.cloud, run.path / "azure") as azure,
        ControlPlane.start(plan, cluster, azure, programs, run, supervisor, ControlPlaneSize(api_servers=api_servers)) as control,
    ):
        control.wait_ready(READY_SECONDS)
        objects = [one for one in objects_of(outcome.graphs[-1], cluster) if daemons or one["kind"] not in WORKLOADS]
        apply(control.kubeconfig, (*objects, *rights()), click.echo)
        machines = azure.call(lambda cloud: machines_of(cloud, plan, cluster))[:count]
        issuer = issuer_of(control)
        keeping = faithful([one.of_set for one in machines])
        for program in kwok_programs(programs, run.path, control, keeping):
            supervisor.add(program).start()
        yield Bench(supervisor, machines, access_to(control, azure, machines), issuer)


HEADINGS = ("identity", "joins", "joined s", "Ready s", "p99 of mutating ms", "429s", "sent again", "failed", "CPU s")


def table(rows: Iterable[Measured]) -> str:
    """Return the figures as a Markdown table."""
    lines = [HEADINGS, tuple("---" for _ in HEADINGS), *(_cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Measured) -> tuple[str, ...]:
    figures = row.joined
    cpu = ", ".join(f"{name} {seconds:.1f}" for name, seconds in sorted(row.cpu.items(), key=lambda pair: -pair[1]) if seconds >= 0.1)
    return (
        row.way,
        "spread" if row.spread else "at once",
        f"{figures.seconds:.1f}",
        f"{row.ready:.1f}",
        f"{figures.mutating.p99 * 1000:.0f}",
        str(figures.refused),
        str(figures.retries),
        str(len(figures.failures)),
        cpu,
    )


@click.command()
@click.option("--region", default="swedencentral", show_default=True)
@click.option("--machines", default=1_000, show_default=True)
@click.option("--way", "ways", multiple=True, type=click.Choice(WAYS), default=WAYS, show_default=True)
@click.option("--joins", multiple=True, type=click.Choice(("at once", "spread")), default=("at once", "spread"), show_default=True)
@click.option("--daemons/--no-daemons", default=True, show_default=True, help="With the DaemonSets and Deployments that the program ships.")
@click.option("--api-servers", type=int, help="Fewer API servers than planned.")
@record_option
def main(
    region: str, machines: int, ways: tuple[str, ...], joins: tuple[str, ...], daemons: bool, api_servers: int | None, record: bool
) -> None:
    """Measure joins, one row for each way, and for each but the bare one at once and spread."""
    rows = []
    with prepared(region, machines, daemons, api_servers) as bench:
        for way in ways:
            for join in joins if way != POSTED else ("at once",):
                rows.append(bench.measure(way, STORM if join == "at once" else Smoothing()))
                click.echo(table(rows[-1:]))
    click.echo(f"\n{machines} machines of {region}, {'with' if daemons else 'without'} the shipped DaemonSets and Deployments\n")
    click.echo(table(rows))
    if record:
        title = f"{machines:,} machines of {region} join, {'with' if daemons else 'without'} the shipped DaemonSets and Deployments"
        command = f"python -m bench.joining --region {region} --machines {machines}"
        path = results.write_now("joining", title, command, (), [ResultTable("", HEADINGS, [_cells(row) for row in rows])])
        click.echo(f"wrote {path}")


if __name__ == "__main__":
    main()
