"""Benchmark of Pulumi's engine for a region, from the first up to destroy."""

from __future__ import annotations

import os
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
import yaml
from rich.table import Table

from bench.command import BenchOutput, Say, run_command
from bench.engine_cpu import PARTS, watched
from bench.engine_programs.program_cpu import CPU_FILE, GRAPH_FILE
from bench.figures import Figure
from bench.overhead import run_ours
from bench.results import ResultTable, record_option
from rehearsal.binaries.pins import BinariesMissingError
from rehearsal.local_cluster.hub.hub_network import HubNetworkError, hub_namespace, unavailable_reason
from rehearsal.local_up.update_state import Approvals
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms, choose_engine
from rehearsal.pulumi_cli.region_commands import RegionResult, bring_up, refresh, tear_down
from rehearsal.pulumi_cli.stack_operations import EngineError, ProgressReporter, RegionEngine, region_engine
from rehearsal.pulumi_cli.workspace import EngineFolder, WorkspaceError
from stacks.load import ROOT, load_catalog, load_plan

OVERHEAD = 1.1
PROGRAMS = ROOT / "bench" / "engine_programs"


class RegionNotUpError(Exception):
    """A region without a complete deployment, so that nothing can be measured."""


@dataclass(frozen=True)
class VerbResult:
    """Result of one verb: wall seconds, CPU seconds by part, changes, and the size of the clusters' state in MB."""

    name: str
    wall: float
    parts: dict[str, float]
    state_mb: float
    changes: str


@dataclass
class Bench:
    """One region, measured verb by verb."""

    engine: RegionEngine
    say: Say
    allowed: Approvals
    rows: list[VerbResult] = field(default_factory=list)

    def take(self, name: str, verb: Callable[[RegionEngine], RegionResult]) -> None:
        """Measure one verb; raise RegionNotUpError if it is not complete."""
        self.say(name)
        began = time.monotonic()
        with watched() as seconds:
            outcome = verb(self.engine)
        wall = time.monotonic() - began
        if not outcome.complete:
            first_failure = next(
                (f"{urn.rpartition('::')[2]}: {said[0]}" for one in outcome.timelines for urn, said in one.failures.items()), ""
            )
            raise RegionNotUpError(f"{name} is not complete; {first_failure or outcome.untried}")
        changes = "; ".join(
            ", ".join(f"{count:,} {op}" for op, count in sorted(timeline.changes.items())) or "nothing" for timeline in outcome.timelines
        )
        self.rows.append(VerbResult(name, wall, seconds.by_part(), self.state_mb(), changes))
        self.say(f"  wall {wall:.0f} s; {changes}")

    def state_mb(self) -> float:
        """Return the size in MB of the clusters' state, which the file backend writes at every checkpoint."""
        folder = self.engine.folder.backend / ".pulumi" / "stacks" / "gpufleet"
        return (folder / f"{self.engine.plan.stack}.json").stat().st_size / 1e6


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--region", default="southcentralus", show_default=True, help="Name of a region; dev takes minutes.")
@click.option("--parallel", type=click.IntRange(1, 1_000), default=64, show_default=True, help="Operations open at once.")
@click.option("--pairs", type=click.IntRange(0, 20), default=3, show_default=True, help="Pairs of gpufleet's program and a bare one.")
@click.option("--only-overhead", is_flag=True, help="Measure gpufleet's program and the bare one only, and no verb.")
@click.option("--no-checkpoints", is_flag=True, help="Write the state only at the end of an operation; never use this for a real region.")
@click.option("--factor", default=600.0, show_default=True, help="Seconds of Azure's time per second here.")
@record_option
def main(region: str, parallel: int, pairs: int, only_overhead: bool, no_checkpoints: bool, factor: float, record: bool) -> None:
    """Measure what Pulumi's own engine takes for a region: first up, no-change up, another image on one pool, refresh, destroy.

    \b
    Azure is the embedded one over HTTPS, the API servers are real, the CLI is the one on PATH; without it, or without a
    hub's network, nothing is measured and the reason is printed. CPU seconds are those of the engine, of the language host
    with the program, of the providers, and of the dynamic providers that make keys; Azure's and the clusters' are not.
    Overhead: previews of the empty clusters' stack, by gpufleet's program and by one that registers the same resources
    with the same inputs by one call of the SDK each; the CPU that each spends after its imports.

    dev takes five minutes; southcentralus an hour. Exits 0 when the bound is kept or nothing could be measured, 1 when it is missed, 2 when
    something failed.
    """
    output = BenchOutput()
    choice = choose_engine(unavailable_reason)
    if choice.programs is None:
        output.console.print(f"skipped: {choice.reason}", markup=False)
        return
    with (
        tempfile.TemporaryDirectory(prefix="gpufleet-bench-") as folder,
        _at_work(region, Path(folder), choice.programs, factor, no_checkpoints, output.say) as at_work,
    ):
        bench = Bench(at_work, output.say, Approvals(frozenset({"all"}), None, parallel))
        pair_seconds = _pairs(bench, region, Path(folder), pairs) if pairs else []
        if not only_overhead:
            _measure_verbs(bench, region, Path(folder))
    figures = _figures(pair_seconds)
    if record:
        title = f"Pulumi's engine, {region}, CLI {choice.programs.version}"
        output.record(f"pulumi-{region}", title, f"python -m bench.pulumi --region {region}", figures, [_result_table(bench.rows)])
    output.conclude(figures, *([_table(bench.rows, choice.programs.version)] if bench.rows else []))


def _measure_verbs(bench: Bench, region: str, folder: Path) -> None:
    """Measure all verbs in order."""
    plain = Approvals(parallel=bench.allowed.parallel)
    bench.take("first up", lambda at_work: bring_up(at_work, plain))
    bench.take("up, nothing changed", lambda at_work: bring_up(at_work, plain))
    draft = _other_image(region, folder)
    bench.engine.plan = load_plan(str(draft))
    bench.engine.folder.prepare(bench.engine.plan, str(draft))
    bench.take("up, another image on one pool", lambda at_work: bring_up(at_work, plain))
    bench.take("refresh", lambda at_work: refresh(at_work, plain, only_show=False))
    bench.take("destroy", lambda at_work: tear_down(at_work, bench.allowed, purge=False))


def _pairs(bench: Bench, region: str, folder: Path, pairs: int) -> list[tuple[float, float]]:
    """Return CPU seconds of gpufleet's program and the bare one, in previews of the clusters' stack while only the base is up."""
    plan, engine = bench.engine.plan, bench.engine
    bench.say("the base stack, for the previews of both programs")
    for stack in (plan.base_stack, plan.stack):
        engine.open_stack(stack)
    base = engine.operate("up", plan.base_stack, ("--yes", "--skip-preview", "--parallel", str(bench.allowed.parallel)))
    if not base.complete:
        raise RegionNotUpError(f"the base stack is not complete; {base.failures}")
    graph = folder / "graph.pickle"
    graph.write_bytes(pickle.dumps(run_ours(region).clusters))
    took = []
    for number in range(pairs + 1):
        bench.say(f"gpufleet and bare, pair {number} of {pairs}" + ("" if number else ", which is not counted"))
        took.append((_program_seconds(engine, "gpufleet_program", folder, graph), _program_seconds(engine, "bare_program", folder, graph)))
    engine.folder.prepare(plan, region)
    return took[1:]


def _program_seconds(engine: RegionEngine, name: str, folder: Path, graph: Path) -> float:
    """Return the CPU seconds of a benchmark's program in a preview of the clusters' stack."""
    path, cpu = engine.folder.project / "Pulumi.yaml", folder / "cpu"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "main": str(PROGRAMS / name)}))
    timeline = engine.operate("preview", engine.plan.stack, (), {CPU_FILE: str(cpu), GRAPH_FILE: str(graph)})
    if not timeline.complete:
        raise RegionNotUpError(f"the preview of {name} is not complete; {timeline.failures}")
    return float(cpu.read_text())


def _other_image(region: str, folder: Path) -> Path:
    """Write a region file in which the first suitable pool pins another version of its image; return its path."""
    plan, published = load_plan(region), load_catalog().published
    text = (ROOT / "stacks" / "regions" / f"{region}.yaml").read_text()
    for pool in (pool for cluster in plan.clusters for pool in cluster.pools):
        name, _, version = str(pool.spec.image).partition("@")
        for other in published[name]:
            if other.version != version:
                path = folder / f"{region}.yaml"
                path.write_text(text.replace(f"{name}@{version}", f"{name}@{other.version}", 1))
                return path
    raise RegionNotUpError(f"no pool of {region} has an image of which another version is published")


@contextmanager
def _at_work(region: str, folder: Path, programs: PulumiPrograms, factor: float, no_checkpoints: bool, say: Say) -> Iterator[RegionEngine]:
    plan, ours = load_plan(region), EngineFolder(folder / "engine")
    reporter = ProgressReporter(lambda text: say(f"  {text}"), lambda _: None)
    more = {"PULUMI_EXPERIMENTAL": "true", "PULUMI_SKIP_CHECKPOINTS": "true"} if no_checkpoints else {}
    with ours.locked() as lock, hub_namespace(plan, ours.hub_data, factor=factor, say=reporter.report) as inside:
        given = type(inside)(inside.command, {**inside.environment, **more, "PYTHONPATH": str(ROOT)})
        with region_engine(plan, region, ours, programs, given, lock, reporter) as at_work:
            yield at_work


def _figures(pairs: list[tuple[float, float]]) -> list[Figure]:
    if not pairs:
        return []
    ratios = [ours / bare for ours, bare in pairs]
    spread = f"median of {len(pairs)} pairs of previews, {min(ratios):.2f} to {max(ratios):.2f}"
    return [
        Figure("gpufleet over the same resources written bare", statistics.median(ratios), "", OVERHEAD, f"CPU, {spread}"),
        Figure("gpufleet's CPU", statistics.median(ours for ours, _ in pairs), "s", None, "clusters' stack, after its imports"),
    ]


HEADINGS = ("verb", "wall s", *(f"{part}, CPU s" for part in PARTS), "state MB", "resources")


def _cells(row: VerbResult) -> tuple[str, ...]:
    return (row.name, f"{row.wall:.0f}", *(f"{row.parts.get(part, 0.0):.1f}" for part in PARTS), f"{row.state_mb:.1f}", row.changes)


def _result_table(rows: list[VerbResult]) -> ResultTable:
    return ResultTable("", HEADINGS, [_cells(row) for row in rows])


def _table(rows: list[VerbResult], version: str) -> Table:
    table = Table(title=f"Pulumi's own engine, {version}, {os.cpu_count()} cores", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in (HEADINGS[0], HEADINGS[-1]) else "right")
    for row in rows:
        table.add_row(*_cells(row))
    return table


if __name__ == "__main__":
    run_command(main, RegionNotUpError, EngineError, WorkspaceError, HubNetworkError, BinariesMissingError)
