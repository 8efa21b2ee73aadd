"""Decides the course of a rehearsal: plan, limits, both stacks in process, cross-checks, report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from components.plan import limits
from components.plan.limits import Row
from components.plan.model import RegionPlan
from rehearsal.crosscheck import CHECKS, cross_check
from rehearsal.crosscheck.finding import Finding
from rehearsal.graph import Graph
from rehearsal.registered import RegisteredFace
from rehearsal.report.page import write_report
from rehearsal.run import rare_collections, run_program
from stacks.load import load_plan
from stacks.program import make

PROJECT = "gpufleet"
GRAPHS = {"base": "base.json", "clusters": "clusters.json"}

Progress = Callable[[str, int], None]
"""Told of each phase as it begins (count 0), and in the two stacks of the number of resources registered so far."""


@dataclass(frozen=True)
class Rehearsal:
    """What a rehearsal found: timings in seconds by phase, folder where everything was written."""

    plan: RegionPlan
    rows: tuple[Row, ...]
    base: Graph
    clusters: Graph
    findings: tuple[Finding, ...]
    timings: dict[str, float]
    report: Path


@rare_collections()
def rehearse(region: str, out: Path, progress: Progress) -> Rehearsal:
    """Rehearse a region, given by name or path, and write report.html and both graphs to `<out>/<region>/`.

    FileRefused for a file with faults, LimitsBroken for a plan that breaks limits, ProgramFailed where the program does not reach its end;
    OSError where the folder cannot be written.
    """
    timings: dict[str, float] = {}
    with _phase("plan", timings, progress):
        plan = load_plan(region)
    with _phase("limits", timings, progress):
        rows = limits.check(plan)
        limits.refuse_broken(plan)
    with _phase("base stack", timings, progress):
        base = _run(plan, plan.base_stack, {}, lambda count: progress("base stack", count))
    with _phase("clusters", timings, progress):
        clusters = _run(plan, plan.stack, {plan.base_stack: base}, lambda count: progress("clusters", count))
    with _phase("cross-checks", timings, progress):
        findings = cross_check(plan, base, clusters)
    with _phase("report", timings, progress):
        _write_graphs(out / plan.name, base, clusters)
        report = write_report(out, plan, base, clusters, limits=rows, checks=CHECKS, findings=findings, timings=timings)
    return Rehearsal(plan, rows, base, clusters, findings, timings, report)


@contextmanager
def _phase(name: str, timings: dict[str, float], progress: Progress) -> Iterator[None]:
    """Tell of a phase and time it."""
    progress(name, 0)
    began = time.monotonic()
    yield
    timings[name] = time.monotonic() - began


def _run(plan: RegionPlan, stack: str, made: dict[str, Graph], progress: Callable[[int], None]) -> Graph:
    """Run the program of one stack on the in-process monitor; made holds the graphs of the stacks that it reads."""
    face = RegisteredFace(tenant=plan.spec.access.tenant)
    outputs = {name: graph.stack_outputs for name, graph in made.items()}
    return run_program(lambda: make(plan, stack), PROJECT, stack, face=face, stack_outputs=outputs, progress=progress)


def _write_graphs(folder: Path, base: Graph, clusters: Graph) -> None:
    """Write both graphs, secrets masked, for whoever wants to look closer."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, graph in (("base", base), ("clusters", clusters)):
        (folder / GRAPHS[name]).write_text(graph.to_json(), encoding="utf-8")
