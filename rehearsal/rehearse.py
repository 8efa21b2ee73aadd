"""Decides the course of a rehearsal: plan, limits, the region brought up in an embedded Azure, cross-checks, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from components.errors import GpufleetError
from components.plan import limits
from components.plan.limits import LimitRow
from components.plan.model import RegionPlan
from rehearsal.azure.cloud import Cloud
from rehearsal.checks import CHECKS, cross_check
from rehearsal.checks.finding import Finding
from rehearsal.checks.machines_up import ALL_UP, check_machines
from rehearsal.local_up.failure_text import paragraphs
from rehearsal.local_up.timeline import Timeline, timeline_of
from rehearsal.local_up.up import UpOutcome, bring_up_anew
from rehearsal.program.graph import Graph
from rehearsal.program.run import rare_collections
from rehearsal.report.page import PAGE, write_report, write_whole
from stacks.load import load_plan, load_siblings
from stacks.notes import notes

GRAPHS = {"base": "base.json", "clusters": "clusters.json"}

Progress = Callable[[str, int], None]
"""Told of each phase as it begins (count 0), and in the two stacks of the number of resources that are there so far."""


class RegionNotUpError(GpufleetError):
    """The region does not come up in an Azure in which nothing goes wrong; its text says what stands, what does not, and what to do."""

    exit_status = 1


@dataclass(frozen=True)
class RehearsalResult:
    """What a rehearsal found; cloud is the Azure then, notes are lines on what to mind before `pulumi up`, timings seconds by phase."""

    plan: RegionPlan
    cloud: Cloud
    rows: tuple[LimitRow, ...]
    base: Graph
    clusters: Graph
    timeline: Timeline
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    timings: dict[str, float]
    report: Path


@rare_collections()
def rehearse(region: str, out: Path, progress: Progress) -> RehearsalResult:
    """Rehearse a region, given by name or path, and write report.html and both graphs to `<out>/<region>/`.

    FileRefused for a file with faults, LimitsBroken for a plan that breaks limits, ProgramFailed where the program does not reach its end,
    NotUp where Azure does not take what it asks for; OSError where the folder cannot be written.
    """
    timings: dict[str, float] = {}
    with _phase("plan", timings, progress):
        plan = load_plan(region)
    folder = out / plan.name
    _forget(folder)
    with _phase("limits", timings, progress):
        siblings = load_siblings(region)
        rows = limits.check(plan, siblings.plans)
        limits.raise_if_broken(plan, siblings.plans)
    _make(folder)
    outcome = _up(plan, timings, progress)
    base, clusters = outcome.graphs
    with _phase("cross-checks", timings, progress):
        findings = (*cross_check(plan, base, clusters), *check_machines(plan, outcome.cloud))
    with _phase("report", timings, progress):
        _write_graphs(folder, base, clusters)
        timeline = timeline_of(outcome)
        checks = (*CHECKS, ALL_UP)
        report = write_report(out, plan, base, clusters, limits=rows, checks=checks, findings=findings, timings=timings, timeline=timeline)
    told_beside = (*notes(region, plan), *siblings.left_out)
    return RehearsalResult(plan, outcome.cloud, rows, base, clusters, timeline, findings, told_beside, timings, report)


@contextmanager
def _phase(name: str, timings: dict[str, float], progress: Progress) -> Iterator[None]:
    """Tell of a phase and time it."""
    progress(name, 0)
    began = time.monotonic()
    yield
    timings[name] = time.monotonic() - began


def _up(plan: RegionPlan, timings: dict[str, float], progress: Progress) -> UpOutcome:
    """Bring the region up in an empty Azure in which nothing goes wrong, and time both stacks; NotUp."""
    phases = {plan.base_stack: "base stack", plan.stack: "clusters"}
    began: dict[str, float] = {}

    def tell(stack: str, count: int, _seconds: float) -> None:
        began.setdefault(phases[stack], time.monotonic())
        progress(phases[stack], count)

    outcome = bring_up_anew(plan, tell)
    moments = [*began.values(), time.monotonic()]
    timings |= {name: after - before for name, before, after in zip(began, moments, moments[1:], strict=False)}
    if not outcome.complete:
        raise RegionNotUpError("\n".join(paragraphs(outcome)))
    return outcome


def _forget(folder: Path) -> None:
    """Take away what an earlier rehearsal said of a region file that may have changed since."""
    for name in (*GRAPHS.values(), PAGE):
        (folder / name).unlink(missing_ok=True)


def _make(folder: Path) -> None:
    """Make sure that the folder can be written before the time for it is spent; OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / PAGE, "").unlink()


def _write_graphs(folder: Path, base: Graph, clusters: Graph) -> None:
    """Write both graphs, secrets masked, for whoever wants to look closer."""
    for name, graph in (("base", base), ("clusters", clusters)):
        write_whole(folder / GRAPHS[name], graph.to_json())
