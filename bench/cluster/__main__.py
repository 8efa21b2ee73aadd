"""Benchmark of a cluster: time to join nodes and to run pods, compared with a bare cluster of the same programs."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from bench.cluster.bare_cluster import bare
from bench.cluster.gpufleet_cluster import ours
from bench.cluster.measure import Measured, measure
from bench.cluster.plots import draw
from bench.cluster.progress import TimeLimitError
from bench.cluster.running import LABELS
from bench.cluster.settings import SETTINGS, Setting
from bench.command import BenchOutput, Say, run_command
from bench.figures import Figure
from bench.results import record_option
from lifecycle.kubernetes_api.connection import ApiServerUnreachableError
from rehearsal.binaries.find import Binaries, BinariesMissingError, find_binaries
from rehearsal.local_cluster.control_plane import ControlPlaneNotReadyError
from rehearsal.local_cluster.joining.joiner import Identities
from rehearsal.local_cluster.run_directory import RunDirectoryError

RATIO = 1.2
"""Bound of gpufleet's time over the bare cluster's, for joins and for pods."""
COMPARED_NODES = 500
"""Smallest number of nodes for which the bound applies: below it, waits of a second dominate."""
IDENTITIES = (Identities.IMPERSONATED, Identities.ISSUED, Identities.BOOTSTRAP)
IDLE_PROGRAM = "kube-scheduler"
"""A program without decisions while nodes join, so that its CPU time indicates the machine's speed. kwok is unsuitable: its watch ends
at times, and it then receives all nodes again.
"""
MIB = 2**20
BOTH = ("ours", "bare")
Pair = Sequence[Measured]
"""gpufleet's and the bare cluster, or the selected one."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--nodes", type=click.IntRange(20, 7_500), default=200, show_default=True, help="Nodes, and pods that take a whole node.")
@click.option("--setting", type=click.Choice(list(SETTINGS)), default="fast", show_default=True, help="See above.")
@click.option("--only", type=click.Choice(BOTH), help="Measure one of the two; no ratios then.")
@click.option("--identities", type=click.Choice([way.value for way in IDENTITIES]), default="impersonated", show_default=True)
@click.option(
    "--pairs",
    type=click.IntRange(1, 9),
    default=1,
    show_default=True,
    help="Pairs of clusters (with --only, clusters), whose medians are reported.",
)
@click.option("--limit", type=click.IntRange(10), help="Seconds that a phase may take; default 120, and 4 for every 50 nodes.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("out/bench"), show_default=True)
@record_option
def main(nodes: int, setting: str, only: str | None, identities: str, pairs: int, limit: int | None, out: Path, record: bool) -> None:
    """Join N nodes and run N pods of a whole node each, in gpufleet's cluster and in a bare one, and print the ratios of their times.

    \b
    ours  gpufleet's cluster: a region variant of southcentralus with N nodes of ND96isr_H100_v5, one etcd member, one for
          events and one API server. The usual program creates it in the embedded Azure. The control plane runs from its
          machines' boot files, with the program's objects except DaemonSets and Deployments; gpufleet's joiner joins the nodes
    bare  the same programs with default flags: etcd without TLS, API server that allows everything, no audit, no
          encryption; Nodes of the same content and encoding posted by eight connections. Its controller manager and scheduler
          have gpufleet's limits of requests per second: with their defaults of 20 and 50 they would mostly wait
    \b
    faithful  as rendered, and Kubernetes' defaults: taints, scores, all controllers; leases of 200 s in both, and grace in proportion;
              etcd of both without fsync, as in fast, since the processor is measured and not the disk
    fast      the same list of changes in both, printed first: no leases, few controllers, a scheduler that takes the first
              node with room, GOGC=400; and no audit in gpufleet's cluster

    impersonated machines share eight connections of one identity that acts for each node (authorizers, admission, priority and
    fairness see every node by itself); issued ones have a connection and a certificate each; bootstrap leaves nothing out.

    A shared machine changes its speed while a pair runs, and whatever runs first may be slower. An even number of pairs has either
    cluster first equally often; the scheduler's CPU time while nodes join, when it has nothing to decide, hints at the speed.

    Writes JSON, SVG and PNG of each pair into --out. A pair of 7,500 nodes takes four to six minutes in fast and fourteen in faithful on
    two free cores, and 7 GB of memory. Exits 0 if the ratios are within their bounds, 1 if one is not, 2 on a failure, 130 if interrupted.
    All programs are ended.
    """
    output = BenchOutput()
    say = output.say
    chosen = SETTINGS[setting]
    for line in chosen.changes():
        say(f"changed: {line}")
    programs = find_binaries(say)
    patience = float(limit or 120 + nodes * 4 // 50)
    done: list[Pair] = []
    for number in range(pairs):
        if pairs > 1:
            say(f"{'cluster' if only else 'pair'} {number + 1} of {pairs}")
        taken = [_one(name, nodes, chosen, programs, Identities(identities), patience, say) for name in order(number, only)]
        done.append(as_pair(taken))
        document = {
            "nodes": nodes,
            "setting": setting,
            "identities": identities,
            "machine": machine(),
            "clusters": [one.document() for one in done[-1]],
        }
        for path in write(document, out / f"cluster-{setting}-{nodes}{f'-{number + 1}' if pairs > 1 else ''}"):
            say(f"wrote {path}")
    figures = list(figures_of(done, nodes))
    if record:
        command = f"python -m bench.cluster --nodes {nodes} --setting {setting} --pairs {pairs}"
        output.record(f"cluster-{setting}-{nodes}", f"Cluster of {nodes:,} nodes beside a bare one, {setting}", command, figures)
    output.conclude(figures, processes_table(done[-1], f"processes{f' of pair {pairs}' if pairs > 1 else ''}"))


def order(number: int, only: str | None) -> Sequence[str]:
    """Return the clusters of a pair, counted from 0, in the order of their measurement."""
    return [only] if only else BOTH if number % 2 == 0 else BOTH[::-1]


def as_pair(taken: Iterable[Measured]) -> Pair:
    """Return gpufleet's cluster before the bare one, in any order of measurement."""
    return sorted(taken, key=lambda one: BOTH.index(one.name))


def _one(name: str, nodes: int, setting: Setting, programs: Binaries, how: Identities, limit: float, say: Say) -> Measured:
    """Measure one cluster from its start to its end."""
    running = ours(nodes, setting, programs, how, say) if name == "ours" else bare(nodes, setting, programs, say)
    with running as cluster:
        return measure(cluster, nodes, setting, limit, say)


def machine() -> dict[str, Any]:
    """Return a description of the machine."""
    return {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system(), "load": os.getloadavg()}


def write(document: dict[str, Any], path: Path) -> tuple[Path, ...]:
    """Write a run as JSON, SVG and PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.with_suffix(".json")
    file.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    return (file, *draw(document, path))


def figures_of(done: Sequence[Pair], nodes: int) -> Iterable[Figure]:
    """Yield seconds of each cluster, and ratios if both were measured: medians of all pairs."""
    median = f"median of {len(done)}; " if len(done) > 1 else ""
    for of_one in zip(*done, strict=True):
        name = LABELS.get(of_one[0].name, of_one[0].name)
        came_up, join, pods = (statistics.median(getattr(one, phase) for one in of_one) for phase in ("came_up", "join", "pods"))
        yield Figure(f"{name}: API server ready", came_up, "s", None, f"{median}from the start of its first program")
        yield Figure(
            f"{name}: {nodes:,} nodes Ready", join, "s", None, f"{median}{'the last: ' if median else ''}{join_details(of_one[-1])}"
        )
        yield Figure(f"{name}: {nodes:,} pods Running", pods, "s", None, f"{median}from the first Deployment")
    if len(done[0]) == 2:
        bound = RATIO if nodes >= COMPARED_NODES else None
        rows: tuple[tuple[str, Callable[[Measured], float], float | None, str], ...] = (
            ("nodes", attrgetter("join"), bound, "wall seconds"),
            ("pods", attrgetter("pods"), bound, "wall seconds"),
            ("nodes and pods", lambda one: one.join + one.pods, bound, "wall seconds of both, one after the other"),
            ("join, CPU", lambda one: sum(taken.join_cpu for taken in one.taken.values()), None, "CPU seconds of all processes"),
            (
                f"join, CPU of {IDLE_PROGRAM}",
                lambda one: one.taken[IDLE_PROGRAM].join_cpu,
                None,
                "CPU seconds, a hint at the machine's speed",
            ),
            ("pods, CPU", lambda one: sum(taken.pods_cpu for taken in one.taken.values()), None, "CPU seconds of all processes"),
        )
        for what, taken, most, unit in rows:
            found = [(taken(first), taken(second)) for first, second in done]
            # Few nodes join between two samples of the processes.
            if all(theirs for _, theirs in found):
                each = ", ".join(f"{mine:,.1f} / {theirs:,.1f}" for mine, theirs in found)
                yield Figure(
                    f"gpufleet over bare, {what}", statistics.median(mine / theirs for mine, theirs in found), "", most, f"{unit}: {each}"
                )


def join_details(one: Measured) -> str:
    """Return the details of a join as text."""
    return ", ".join(f"{name} {value:.3g}" for name, value in one.details.items())


def processes_table(done: Sequence[Measured], title: str) -> Table:
    """Return a table of CPU and memory by process."""
    table = Table(title=title, title_justify="left")
    for heading in ("cluster", "process", "CPU s, join", "CPU s, pods", "peak MiB"):
        table.add_column(heading, justify="left" if heading in ("cluster", "process") else "right")
    for one in done:
        for name, taken in one.taken.items():
            table.add_row(one.name, name, f"{taken.join_cpu:.1f}", f"{taken.pods_cpu:.1f}", f"{taken.peak / MIB:,.0f}")
    return table


if __name__ == "__main__":
    run_command(
        main, ControlPlaneNotReadyError, BinariesMissingError, TimeLimitError, ApiServerUnreachableError, RunDirectoryError, RuntimeError
    )
