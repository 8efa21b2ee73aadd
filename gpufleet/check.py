"""gpufleet check: print the use, bound and headroom of the limits of Azure and Kubernetes."""

from __future__ import annotations

import dataclasses
import json
import sys

import click

from components.plan import limits
from components.plan.limit import ordered, tightest
from components.plan.limits import LimitRow
from components.plan.model import RegionPlan
from gpufleet.consoles import result_console
from gpufleet.limit_table import NARROW, draw, headroom, least_headroom, left_over, wrapped
from stacks.file_problems import FileProblem, InvalidFileError
from stacks.load import Siblings, load_plan, load_siblings
from stacks.notes import notes

__all__ = ["check", "headroom", "tightest"]


@click.command(short_help="Print use, bound and headroom of every limit.")
@click.argument("region")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print every row as JSON: limit, where, use, bound, unit, headroom, broken, reason, remedy, source; the files left out; the "
    "notes. Of a refused file: its problems (file, path, line, column, value, reason, remedy), with exit status 2.",
)
@click.option("--all", "everywhere", is_flag=True, help="Print each limit in every place, not only where its headroom is smallest.")
def check(region: str, as_json: bool, everywhere: bool) -> None:
    """Print use, bound and headroom of every limit that REGION can reach.

    \b
    Each line is one limit where its headroom is smallest, sorted by headroom; --all prints every place. A terminal of
    fewer than 120 columns gets the limits that are exceeded, have the least headroom or have no declared bound.
    Yellow marks less than 10 % headroom, red an exceeded limit.
    "rule kept" marks a bound that a plan may equal, such as an odd number of etcd members.
    A bound is "not declared" until quotas[] in the region file declares the granted vCPUs.
    Limits of a subscription count every region file under stacks/regions that names the subscription, and for a draft
    those in its own folder: "subscription a3c5e1f0, with dev" is the use of both.
    A note names something to fix before pulumi up; it does not change the exit status.

    Exit status: 1 if a limit is exceeded, with reason and remedy, so that it can gate a pull request; 2 if the file is invalid.
    """
    try:
        plan, siblings = load_plan(region), load_siblings(region)
    except InvalidFileError as error:
        if as_json:
            click.echo(json.dumps({"region": region, "refused": [_problem_json(problem) for problem in error.problems]}, indent=2))
        raise
    rows = limits.check(plan, siblings.plans)
    noted = notes(region, plan, siblings.plans)
    if as_json:
        click.echo(json.dumps(_as_json(plan, rows, siblings, noted), indent=2))
    else:
        console = result_console()
        listed = ordered(rows) if everywhere else tightest(rows)
        shown = listed if everywhere or console.width >= NARROW else least_headroom(listed)
        draw(console, shown)
        for line in (
            *(wrapped(text, console.width) if (text := left_over(listed, shown)) else ()),
            *_summary(plan, rows, everywhere),
            *(f"left out: {line}" for line in siblings.left_out),
            *(f"note: {line}" for line in noted),
        ):
            console.print(line, soft_wrap=True, markup=False)
    sys.exit(1 if any(row.broken for row in rows) else 0)


def _problem_json(problem: FileProblem) -> dict[str, object]:
    """Return the texts and the position of a problem."""
    return {key: value for key, value in dataclasses.asdict(problem).items() if key != "kind"}


def _as_json(plan: RegionPlan, rows: tuple[LimitRow, ...], siblings: Siblings, noted: tuple[str, ...]) -> dict[str, object]:
    return {
        "region": plan.name,
        "broken": sum(row.broken for row in rows),
        "left_out": siblings.left_out,
        "notes": noted,
        "rows": [dataclasses.asdict(row) for row in rows],
    }


def _summary(plan: RegionPlan, rows: tuple[LimitRow, ...], everywhere: bool) -> list[str]:
    """Return the number of limits and places checked, and a sentence for each exceeded limit."""
    broken = [row for row in rows if row.broken]
    counted = f"{len({row.limit for row in rows})} limits in {len(rows)} places"
    where = "" if everywhere else ", each shown where it is tightest (--all: everywhere)"
    verdict = f"{len(broken)} broken" if broken else "none broken"
    breaches = [f"broken: {row.sentence()} [{row.source}]" for row in broken]
    return ["", f"{plan.name}: {plan.nodes:,} nodes; {counted}{where}; {verdict}", *breaches]
