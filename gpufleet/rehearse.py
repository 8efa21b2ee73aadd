"""gpufleet rehearse: create a whole region in an embedded Azure, check the result, and draw it."""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from components.plan.cost_text import cost_text
from gpufleet.check import headroom, tightest
from gpufleet.consoles import is_live, progress_console, result_console
from gpufleet.directories import OUT, Directory
from gpufleet.interruption import exit_interrupted
from gpufleet.output_streams import saved_before_output
from gpufleet.up_output import span
from stacks.file_problems import InvalidFileError

if TYPE_CHECKING:
    from rehearsal.rehearse import RehearsalResult
    from rehearsal.rotation.region_rotation import RegionRotation

FEWEST_SHOWN = 3
"""Number of limits in the summary: those with the least headroom."""
FINDINGS_SHOWN = 8
LABEL = "modelled population"
"""Label of every figure about jobs that no cluster was read for."""


@click.command(short_help="Create a region in an embedded Azure, check and draw it.")
@click.argument("region", default="southcentralus")
@click.option("--out", type=Directory(), default=OUT, show_default="out in the project's folder", help="Folder for the report.")
@click.option("--no-rotation", is_flag=True, help="Leave out the rotation of all nodes.")
@click.option("--real", "real", is_flag=True, help="Then run one cluster's real control plane on this machine, and join its machines.")
@click.option("--cluster", metavar="NAME", help="With --real: name of the cluster.  [default: the smallest]")
@click.option("--nodes", type=int, metavar="N", help="With --real: number of machines to join.  [default: all]")
@click.option("--api-servers", type=int, metavar="N", help="With --real: number of API servers.  [default: as planned]")
@click.option("--keep", is_flag=True, help="With --real: keep the cluster running until Ctrl-C, and print how to use kubectl with it.")
def rehearse(
    region: str, out: Path, no_rotation: bool, real: bool, cluster: str | None, nodes: int | None, api_servers: int | None, keep: bool
) -> None:
    """Create REGION in an embedded Azure, check the result, and draw it.

    \b
    No cloud account and no Pulumi CLI are needed; nothing outside the --out folder is changed.
    Steps: read and plan the region file; check every limit; run the programs of the base stack and of the clusters'
    stack, whose resources become requests to a model of Azure, until every machine runs with its addresses; compare the
    registered resources with the plan, and check them for consistency (addresses, vCPUs, reachability); rotate all nodes
    in virtual time, with a modelled population of jobs and the decisions of a real rotation; write
    <out>/<region>/report.html and both graphs. The model is then discarded; gpufleet up stores one. For an invalid file or
    an exceeded limit, the report lists the errors or the limits, and nothing is created. "Azure's time" in the result is
    time on the model's clock, which Azure would need; "took" is the time on this machine.

    \b
    With --real, the etcd members, API servers, controller managers and schedulers of one cluster then run on this machine,
    from the boot files of its machines. The program's Kubernetes objects are applied, machines join as at boot, and the
    cluster is checked. Missing programs are built first (gpufleet binaries). All processes and files are removed at the
    end, also after Ctrl-C or a crash. Linux only.

    Exit status: 1 if a limit is exceeded, a resource is not created or a check finds a difference; 2 if the region file or an option is
    invalid; 130 after Ctrl-C; 143 after SIGTERM.
    """
    # The SDKs of Azure and Kubernetes take seconds to import, which would slow down every other verb.
    from rehearsal.program.run import ProgramError
    from rehearsal.rehearse import RegionNotUpError

    if not real and (cluster or nodes is not None or api_servers is not None or keep):
        raise click.UsageError("--cluster, --nodes, --api-servers and --keep need --real; add --real")
    console = result_console()
    run_real: Callable[[RehearsalResult], bool] | None = None
    # The rehearsal itself reports an invalid file, and writes a page that lists its errors.
    with suppress(InvalidFileError):
        run_real = _prepared(region, (cluster, nodes, api_servers, keep), console) if real else None
    began = time.monotonic()
    try:
        result = _with_progress(region, out, with_rotation=not no_rotation)
    except ProgramError as error:
        console.print(f"the program of {error}", markup=False, soft_wrap=True)
        sys.exit(1)
    except RegionNotUpError as error:
        console.print(str(error), markup=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        exit_interrupted(f"; the report in {out} is not complete, and nothing else was written: run the same command again")
    except OSError as error:
        console.print(f"{out}: cannot be written: {error.strerror}; give another folder with --out", markup=False, soft_wrap=True)
        sys.exit(2)
    with saved_before_output(f"the report is in {result.report}"):
        for line in (*summary(result, time.monotonic() - began), *(f"note: {note}" for note in result.notes)):
            console.print(line, markup=False, soft_wrap=True)
    try:
        passed = run_real(result) if run_real else True
    except KeyboardInterrupt:
        exit_interrupted(f"; the report is in {result.report}, and nothing runs any more")
    sys.exit(0 if passed and not result.findings else 1)


def _prepared(region: str, options: tuple[str | None, int | None, int | None, bool], console: Console) -> Callable[[RehearsalResult], bool]:
    """Check the options of --real before the rehearsal; return a function that runs the cluster and returns whether all checks hold."""
    from gpufleet.rehearse_real import RealOptions, prepared, run_real

    size = prepared(region, RealOptions(*options), console)
    return lambda result: run_real(result, size, console)


def _with_progress(region: str, out: Path, *, with_rotation: bool) -> RehearsalResult:
    """Rehearse with progress on standard error: a live line per phase on a terminal, and a plain line per phase elsewhere."""
    from rehearsal.rehearse import rehearse as run_rehearsal

    console = progress_console()
    if not is_live(console):

        def show_phase(phase: str, count: int) -> None:
            if not count:
                console.print(f"rehearsal: {phase}", markup=False)

        return run_rehearsal(region, out, show_phase, with_rotation=with_rotation)
    columns = (TextColumn("{task.description:<14}"), BarColumn(bar_width=24), TextColumn("{task.fields[count]}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(phase: str, count: int) -> None:
            if phase not in tasks:
                for done in tasks.values():
                    bars.update(done, total=1, completed=1)
                tasks[phase] = bars.add_task(phase, total=None, count="")
            elif count % 25 == 0:
                bars.update(tasks[phase], count=f"{count:,} {'nodes' if phase == 'rotation' else 'resources'}")

        return run_rehearsal(region, out, show, with_rotation=with_rotation)


def summary(result: RehearsalResult, seconds: float) -> list[str]:
    """Summarise the rehearsal in fewer than 25 lines."""
    plan = result.plan
    types = Counter(item.type for graph in (result.base, result.clusters) for item in graph.created_resources)
    tight = [row for row in tightest(result.rows) if row.headroom is not None][:FEWEST_SHOWN]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        f"{plan.name} ({plan.spec.location}): {plan.nodes:,} nodes in {len(plan.clusters)} cluster{'s' if len(plan.clusters) > 1 else ''}",
        *(_cluster_line(result, index) for index in range(len(plan.clusters))),
        f"  resources: {types.total():,} of {len(types)} types",
        f"  {_up_line(result)}",
        f"  machines cost {cost_text(result.cost.total)}",
        f"  limits: {len({row.limit for row in result.rows})} in {len(result.rows)} places, none broken; nearest: "
        + "; ".join(f"{row.limit}, {row.where}: {headroom(row)} left" for row in tight),
        "  cross-checks: " + ("no difference" if not result.findings else f"{len(result.findings)} found"),
        *(f"    {finding.sentence()}" for finding in result.findings[:FINDINGS_SHOWN]),
        *(rotation_lines(result.rotation) if result.rotation else ()),
        f"  took {seconds:.1f} s ({', '.join(f'{name} {took:.1f}' for name, took in result.timings.items())}), {peak:,.0f} MB at most",
        f"  open {result.report}",
    ]


def rotation_lines(rotation: RegionRotation) -> Iterator[str]:
    """Yield the lines about the rotation of all nodes: its duration over the lower bound, and what it costs the jobs."""
    ratio = f" ({rotation.seconds / rotation.bound:.2f} times)" if rotation.bound else ""
    every = "all" if rotation.ready == rotation.nodes else f"{rotation.ready:,} of"
    yield (
        f"  rotation of {every} {rotation.nodes:,} nodes, {LABEL}: {span(rotation.seconds)}, lower bound {span(rotation.bound)}{ratio}; "
        f"at most {rotation.most_unavailable:,} unavailable"
    )
    yield (
        f"    {rotation.lost_gpu_hours:,.0f} GPU-hours lost, {rotation.interrupted:,} jobs interrupted, "
        f"{rotation.interrupted_twice:,} of them more than once"
    )
    yield from (f"    stopped: {one}" for one in rotation.stopped)


def _up_line(result: RehearsalResult) -> str:
    """Return the line about time, machines and addresses."""
    up = result.timeline
    machines = f"{up.running:,} of {up.machines:,} machines in scale sets, with {up.addresses:,} private addresses"
    return f"comes up in {span(up.seconds)} of Azure's time: {machines}"


def _cluster_line(result: RehearsalResult, index: int) -> str:
    """Return the line about one cluster."""
    cluster = result.plan.clusters[index]
    gpus = sum(pool.size.gpus * pool.spec.nodes for pool in cluster.pools)
    sets = sum(len(pool.scale_sets) for pool in cluster.pools)
    plane = f"{cluster.api_servers.count} API servers, etcd {len(cluster.etcd.members)}+{len(cluster.events_etcd.members)}"
    return f"  {cluster.name}: {cluster.nodes:,} nodes, {gpus:,} GPUs, {sets} scale sets; {plane}; {cluster.connectivity.value}"
