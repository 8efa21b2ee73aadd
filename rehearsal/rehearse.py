"""Run a rehearsal: plan, limits, local up on an empty model, cross-checks, rotation of all nodes, report."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from components.errors import GpufleetError
from components.plan import limits
from components.plan.cost import RegionCost, cost_of_region
from components.plan.limits import LimitRow, LimitsExceededError
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
from rehearsal.report.page import PAGE, write_refusal, write_report
from rehearsal.rotation.region_rotation import RegionRotation, RegionRun, first_whole_window, rotate_region
from stacks.atomic_write import write_atomically
from stacks.file_problems import InvalidFileError
from stacks.load import load_plan, load_siblings, region_path
from stacks.notes import notes
from stacks.prices import load_prices

GRAPHS = {"base": "base.json", "clusters": "clusters.json"}

Progress = Callable[[str, int], None]
"""Callback for the start of each phase (count 0), in the two stacks for the number of resources so far, and in the rotation of nodes."""
ROTATION_SEED = 1
"""Seed of the population that a rehearsal rotates, so that two rehearsals of one plan have the same jobs."""


class PlanRefusedError(GpufleetError):
    """A region file with errors, or a plan that exceeds limits; the text states each, and the page that shows them."""

    def __init__(self, refusal: InvalidFileError | LimitsExceededError, report: Path) -> None:
        self.exit_status = refusal.exit_status
        super().__init__(f"{refusal}\nnot rehearsed; open {report}")


class RegionNotUpError(GpufleetError):
    """A region that does not come up in a model without failures; the text states the failures and remedies."""

    exit_status = 1


@dataclass(frozen=True)
class RehearsalResult:
    """Result of a rehearsal; cloud is the model at its end, notes are hints before `pulumi up`, timings seconds by phase.

    rotation: of all nodes, with the modelled population; None if it was left out.
    """

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
    cost: RegionCost
    rotation: RegionRotation | None = None


@rare_collections()
def rehearse(region: str, out: Path, progress: Progress, *, with_rotation: bool = True) -> RehearsalResult:
    """Rehearse a region, given by name or path, and write report.html and both graphs to `<out>/<region>/`.

    with_rotation: also rotate all nodes in virtual time, with a modelled population.

    Raises PlanRefusedError for an invalid file or a plan that exceeds limits, after writing a report.html that says so; ProgramError where
    the program fails, RegionNotUpError where the model refuses a resource, and OSError where the folder cannot be written.
    """
    timings: dict[str, float] = {}
    folder = out / region_path(region).stem
    rows: tuple[LimitRow, ...] = ()
    try:
        with _phase("plan", timings, progress):
            plan = load_plan(region)
            cost = cost_of_region(plan, load_prices())
        with _phase("limits", timings, progress):
            siblings = load_siblings(region)
            rows = limits.check(plan, siblings.plans)
            limits.raise_if_broken(plan, siblings.plans)
    except (InvalidFileError, LimitsExceededError) as refusal:
        try:
            _delete_results(folder)
            report = write_refusal(out, folder.name, shlex.join(["gpufleet", "rehearse", region]), refusal, rows)
        except OSError:
            raise refusal from None
        raise PlanRefusedError(refusal, report) from None
    _delete_results(folder)
    _check_writable(folder)
    outcome = _up(plan, timings, progress)
    # Ids of missing captures are assumed in the outcome's plan. The notes are about the region file's own plan.
    noted, plan = notes(region, plan, siblings.plans), outcome.plan
    base, clusters = outcome.graphs
    with _phase("cross-checks", timings, progress):
        findings = (*cross_check(plan, base, clusters), *check_machines(plan, outcome.cloud))
    rotation = None
    if with_rotation:
        with _phase("rotation", timings, progress):
            rotation = _rotate(plan, progress)
    with _phase("report", timings, progress):
        _write_graphs(folder, base, clusters)
        timeline = timeline_of(outcome)
        checks = (*CHECKS, ALL_UP)
        hints = (*noted, *siblings.left_out)
        report = write_report(
            out,
            plan,
            base,
            clusters,
            limits=rows,
            checks=checks,
            findings=findings,
            timings=timings,
            timeline=timeline,
            cost=cost,
            notes=hints,
            rotation=rotation,
        )
    return RehearsalResult(plan, outcome.cloud, rows, base, clusters, timeline, findings, hints, timings, report, cost, rotation)


@contextmanager
def _phase(name: str, timings: dict[str, float], progress: Progress) -> Iterator[None]:
    """Report a phase and measure its time."""
    progress(name, 0)
    began = time.monotonic()
    yield
    timings[name] = time.monotonic() - began


def _up(plan: RegionPlan, timings: dict[str, float], progress: Progress) -> UpOutcome:
    """Bring the region up in an empty model without failures, and measure both stacks; raise RegionNotUpError."""
    phases = {plan.base_stack: "base stack", plan.stack: "clusters"}
    began: dict[str, float] = {}

    def report_progress(stack: str, count: int, _seconds: float) -> None:
        began.setdefault(phases[stack], time.monotonic())
        progress(phases[stack], count)

    outcome = bring_up_anew(plan, report_progress)
    moments = [*began.values(), time.monotonic()]
    timings |= {name: after - before for name, before, after in zip(began, moments, moments[1:], strict=False)}
    if not outcome.complete:
        raise RegionNotUpError("\n".join(paragraphs(outcome)))
    return outcome


def _rotate(plan: RegionPlan, progress: Progress) -> RegionRotation:
    """Rotate all nodes from the next time at which a window is open."""
    ended: dict[str, int] = {}

    def report_progress(cluster: str, count: int, _nodes: int) -> None:
        ended[cluster] = count
        progress("rotation", max(1, sum(ended.values())))

    return rotate_region(plan, RegionRun(first_whole_window(plan, time.time()), ROTATION_SEED, conditions="hard"), report_progress)


def _delete_results(folder: Path) -> None:
    """Delete the results of an earlier rehearsal; the region file may have changed since."""
    for name in (*GRAPHS.values(), PAGE):
        (folder / name).unlink(missing_ok=True)


def _check_writable(folder: Path) -> None:
    """Check that the folder is writable before the rehearsal takes time; raise OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / PAGE, "").unlink()


def _write_graphs(folder: Path, base: Graph, clusters: Graph) -> None:
    """Write both graphs with masked secrets."""
    for name, graph in (("base", base), ("clusters", clusters)):
        write_atomically(folder / GRAPHS[name], graph.to_json())
