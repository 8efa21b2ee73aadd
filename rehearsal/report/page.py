"""Report page of a rehearsal: one HTML file without external parts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from components.plan.cost import HOURS_PER_MONTH, RegionCost
from components.plan.cost_text import INCLUDED, dollars, price_basis, unpriced_text
from components.plan.limits import LimitRow, LimitsExceededError
from components.plan.model import RegionPlan
from rehearsal.checks.finding import Finding
from rehearsal.local_up.timeline import Timeline
from rehearsal.program.graph import Graph
from rehearsal.report.address_figures import address_use, block_map
from rehearsal.report.limit_lines import BAR_WIDTH, TIGHT, limit_lines
from rehearsal.report.numbers import number, percent, spare
from rehearsal.report.region_map import region_map
from rehearsal.report.rotation_charts import rotation_figures
from rehearsal.report.tables import gpus_by_model, type_rows
from rehearsal.report.up_timeline import clock, up_timeline
from rehearsal.rotation.region_rotation import RegionRotation
from stacks.atomic_write import write_atomically
from stacks.file_problems import InvalidFileError

TEMPLATE, REFUSED, STYLE, PAGE = "report.html.j2", "refused.html.j2", "report.css", "report.html"


def render_report(
    plan: RegionPlan,
    base: Graph,
    clusters: Graph,
    *,
    limits: Sequence[LimitRow],
    checks: Sequence[str],
    findings: Sequence[Finding],
    timings: Mapping[str, float],
    made: str,
    timeline: Timeline,
    cost: RegionCost,
    notes: Sequence[str] = (),
    rotation: RegionRotation | None = None,
) -> str:
    """Return the page as text: base and clusters are the graphs of the region's two stacks, timings seconds by phase, in order.

    made is the text of provenance(): time, digest and version. timeline is that of the region's creation in the embedded Azure, and cost
    that of its machines. notes are sentences on what to do before `pulumi up`. rotation is that of all nodes, None if it was left out.
    """
    lines = limit_lines(limits)
    return _render(
        TEMPLATE,
        plan=plan,
        base=base,
        clusters=clusters,
        lines=lines,
        limit_count=len({row.limit for row in limits}),
        place_count=len(limits),
        tight=sum(line.look == "tight" for line in lines.measured),
        checks=checks,
        findings=findings,
        timings=timings,
        made=made,
        cost=cost,
        sums=cost.total,
        gpus_by_model=gpus_by_model(cost.rows),
        hours_per_month=HOURS_PER_MONTH,
        included=INCLUDED,
        price_basis=price_basis,
        unpriced_text=unpriced_text,
        scale_sets=sum(len(pool.scale_sets) for cluster in plan.clusters for pool in cluster.pools),
        private_addresses=sum(cluster.private_addresses for cluster in plan.clusters),
        types=type_rows(base, clusters),
        map=region_map(plan),
        address_use=address_use(plan, limits),
        blocks=block_map(plan),
        timeline=timeline,
        timeline_drawing=up_timeline(plan, timeline),
        clock=clock,
        rotation=rotation,
        rotation_figures=rotation_figures(rotation) if rotation else None,
        dollars=dollars,
        notes=notes,
    )


def render_refusal(name: str, command: str, refusal: InvalidFileError | LimitsExceededError, limits: Sequence[LimitRow], made: str) -> str:
    """Return the page of a plan that was refused: the errors of its file, or all its limits; command is the one to run again."""
    problems = refusal.problems if isinstance(refusal, InvalidFileError) else ()
    return _render(REFUSED, name=name, command=command, problems=problems, lines=limit_lines(limits), made=made)


def _render(template: str, **values: object) -> str:
    """Return a page of this package; the values that all its templates need are added."""
    environment = Environment(
        loader=PackageLoader("rehearsal.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(
        values,
        tight_share=TIGHT,
        bar_width=BAR_WIDTH,
        number=number,
        percent=percent,
        spare=spare,
        # The style sheet is a file of this package; escaped, its quotes and child selectors would not work.
        style=Markup((Path(__file__).parent / STYLE).read_text()),  # noqa: S704
    )


def write_report(
    out: Path,
    plan: RegionPlan,
    base: Graph,
    clusters: Graph,
    *,
    limits: Sequence[LimitRow],
    checks: Sequence[str],
    findings: Sequence[Finding],
    timings: Mapping[str, float],
    timeline: Timeline,
    cost: RegionCost,
    notes: Sequence[str] = (),
    rotation: RegionRotation | None = None,
) -> Path:
    """Write `<out>/<region>/report.html` atomically and return its path; raise OSError if it cannot be written."""
    folder = out / plan.name
    folder.mkdir(parents=True, exist_ok=True)
    made = provenance(plan)
    text = render_report(
        plan,
        base,
        clusters,
        limits=limits,
        checks=checks,
        findings=findings,
        timings=timings,
        made=made,
        timeline=timeline,
        cost=cost,
        notes=notes,
        rotation=rotation,
    )
    return write_atomically(folder / PAGE, text)


def write_refusal(
    out: Path, name: str, command: str, refusal: InvalidFileError | LimitsExceededError, limits: Sequence[LimitRow] = ()
) -> Path:
    """Write the page of a refused plan as `<out>/<name>/report.html` and return its path; raise OSError if it cannot be written."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    return write_atomically(folder / PAGE, render_refusal(name, command, refusal, limits, _time_and_version()))


def provenance(plan: RegionPlan) -> str:
    """Return the time, the version of gpufleet, and the digest of the region file's values."""
    digest = hashlib.sha256(plan.spec.model_dump_json().encode()).hexdigest()[:12]
    return f"{_time_and_version()}, region file {digest}"


def _time_and_version() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, gpufleet {version('gpufleet')}"
