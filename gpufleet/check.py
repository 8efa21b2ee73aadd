"""gpufleet check: which limits of Azure and Kubernetes a region comes near or breaks."""

from __future__ import annotations

import dataclasses
import json
import sys

import click
from rich.console import Console
from rich.table import Table

from components.plan import limits
from components.plan.limits import Row
from stacks.load import load_plan, load_siblings

NUMBERS = ("use", "bound", "headroom")
TIGHT = 0.1
"""Headroom under which a row is coloured as tight."""


@click.command(short_help="Print use, bound and headroom of every limit.")
@click.argument("region")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print every row as JSON: limit, where, use, bound, unit, headroom, broken, reason, remedy, source; and the files left out.",
)
@click.option("--all", "everywhere", is_flag=True, help="Show each limit in every place, not only where it is tightest.")
def check(region: str, as_json: bool, everywhere: bool) -> None:
    """Print use, bound and headroom of every limit that REGION can reach.

    \b
    Each line is one limit where it is tightest, the tightest first; --all shows every place.
    "rule" marks a bound that is kept or broken, such as an odd number of etcd members.
    A use without a bound is one that nobody has declared: quotas[] in the region file declares granted vCPUs.
    Limits of a subscription count every region file under stacks/regions, and beside a draft, that names it too:
    "subscription a3c5e1f0, with dev" is what both use.

    Exits 1 when a limit is broken, with reason and remedy, so that it can gate a pull request.
    """
    plan, siblings = load_plan(region), load_siblings(region)
    rows = limits.check(plan, siblings.plans)
    broken = [row for row in rows if row.broken]
    if as_json:
        told = {
            "region": plan.name,
            "broken": len(broken),
            "left_out": siblings.left_out,
            "rows": [dataclasses.asdict(row) for row in rows],
        }
        click.echo(json.dumps(told, indent=2))
    else:
        _print(plan.name, plan.nodes, ordered(rows) if everywhere else tightest(rows), len(rows), broken)
        for line in siblings.left_out:
            click.echo(f"left out: {line}")
    sys.exit(1 if broken else 0)


def ordered(rows: tuple[Row, ...]) -> list[Row]:
    """Broken rows first, then by headroom, then kept rules and uses without bound."""
    return sorted(
        rows,
        key=lambda row: (not row.broken, row.headroom is None, row.headroom if row.headroom is not None else 0.0, row.limit, row.where),
    )


def tightest(rows: tuple[Row, ...]) -> list[Row]:
    """Each limit once, where it is tightest; broken rows all, and vCPUs for each family."""
    shown: dict[str, Row] = {}
    for row in ordered(rows):
        key = f"{row.limit}/{row.where}" if row.broken or ("/" in row.where and row.unit == "vCPU") else row.limit
        if row.broken or row.limit not in shown:
            shown.setdefault(key, row)
    return list(shown.values())


def _print(region: str, nodes: int, rows: list[Row], total: int, broken: list[Row]) -> None:
    """Draw the table, and a sentence for each breach."""
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("limit", "where", "use", "bound", "unit", "headroom"):
        table.add_column(name, justify="right" if name in NUMBERS else "left", no_wrap=name != "limit")
    for row in rows:
        style = "bold red" if row.broken else "yellow" if row.headroom is not None and row.headroom < TIGHT else ""
        bound = "not declared" if row.bound is None else f"{'≥ ' if row.at_least else ''}{limits.amount(row.bound)}"
        table.add_row(row.limit, row.where, limits.amount(row.use), bound, row.unit, headroom(row), style=style)
    console.print(table)
    where = "" if len(rows) == total else f", shown where each is tightest ({total} in all: --all)"
    console.print(f"\n{region}: {nodes:,} nodes; {len(rows)} limits{where}; {f'{len(broken)} broken' if broken else 'none broken'}")
    for row in broken:
        console.print(f"broken: {row.sentence()} [{row.source}]", soft_wrap=True, markup=False)


def headroom(row: Row) -> str:
    """Headroom for a person: percent, "broken", "rule kept" or "unknown"."""
    if row.broken:
        return "broken"
    if row.bound is None:
        return "unknown"
    return "rule kept" if row.headroom is None else f"{row.headroom:.0%}"
