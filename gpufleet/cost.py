"""gpufleet cost: print the cost of a region's virtual machines per pool, cluster and region."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import click
from rich.table import Table

from components.plan.cost import HOURS_PER_MONTH, CostRow, CostTotal, RegionCost, cost_of_region
from components.plan.cost_text import INCLUDED, cost_text, dollars, machine_count
from components.plan.model import RegionPlan
from gpufleet.consoles import result_console
from stacks.load import load_plan
from stacks.prices import PRICES, load_prices

WIDE = 110
"""Columns from which the VM size has a column of its own; in a narrower terminal it is below the name of the pool."""
NONE = "–"

prices_option = click.option(
    "--prices",
    "prices_file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=PRICES,
    help="File of list prices, as `gpufleet prices refresh` writes it.  [default: stacks/prices.json]",
)


@click.command(short_help="Print the cost of a region's machines.")
@click.argument("region")
@click.option("--json", "as_json", is_flag=True, help="Print rows and totals as JSON; a missing price is null.")
@prices_option
def cost(region: str, as_json: bool, prices_file: Path) -> None:
    """Print the cost of REGION's virtual machines in US dollars: per pool, cluster and region; per hour, month and GPU-hour.

    \b
    Each machine has the pay-as-you-go list price for Linux in the region's location, or the negotiated price from `prices` in
    the region file. Control planes are included: API servers and etcd members. A size without price in the location is named,
    and is in no total; a total without it begins with "at least". A cluster's price per GPU-hour includes all its machines.
      gpufleet cost southcentralus
      gpufleet cost southcentralus --json
      gpufleet prices refresh           get today's list prices from Azure

    Exit status: 0, also if sizes have no price; 2 if the region file or the file of prices is invalid.
    """
    plan = load_plan(region)
    found = cost_of_region(plan, load_prices(prices_file))
    if as_json:
        click.echo(json.dumps(_as_json(plan, found), indent=2))
        return
    console = result_console()
    console.print(_table(plan, found, wide=console.width >= WIDE))
    for line in _lines(plan, found):
        console.print(line, soft_wrap=True, markup=False)


def _table(plan: RegionPlan, found: RegionCost, *, wide: bool) -> Table:
    """Return the table: under each cluster its rows and its total, and the region's total last."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("pool or role", overflow="fold")
    if wide:
        table.add_column("size", no_wrap=True)
    for head in ("machines", "US$/h\neach", "US$/h", f"US$ per\n{HOURS_PER_MONTH} h", "US$ per\nGPU-h"):
        table.add_column(head, justify="right", no_wrap=True)
    for name, sums in found.clusters.items():
        table.add_row(name, style="bold")
        for row in (row for row in found.rows if row.cluster == name):
            size = row.size.name.removeprefix("Standard_")
            label = ["  " + row.role, size] if wide else [f"  {row.role}\n    {size}"]
            table.add_row(*label, f"{row.machines:,}", *_row_amounts(row))
        table.add_row(*_total_cells(f"  total {name}", sums, wide=wide))
    table.add_row(*_total_cells(f"total {plan.name}", found.total, wide=wide), style="bold")
    return table


def _row_amounts(row: CostRow) -> tuple[str, str, str, str]:
    if row.price is None or row.usd_per_hour is None:
        return "no price", NONE, NONE, NONE
    each = f"{row.price.usd_per_hour}{'*' if row.price.negotiated else ''}"
    return each, dollars(row.usd_per_hour), f"{row.usd_per_hour * HOURS_PER_MONTH:,.0f}", _per_gpu(row.usd_per_gpu_hour)


def _total_cells(name: str, sums: CostTotal, *, wide: bool) -> list[str]:
    least = "at least" if sums.unpriced else ""
    amounts = (f"{sums.machines:,}", least, dollars(sums.usd_per_hour), f"{sums.usd_per_month:,.0f}", _per_gpu(sums.usd_per_gpu_hour))
    return [name, *([""] if wide else []), *amounts]


def _per_gpu(value: Decimal | None) -> str:
    return NONE if value is None else dollars(value)


def _lines(plan: RegionPlan, found: RegionCost) -> Iterator[str]:
    """Yield the lines below the table: the total, what it includes, and where the prices come from."""
    sums = found.total
    yield ""
    yield f"{plan.name} ({plan.spec.location}): {cost_text(sums)}"
    yield f"included: {INCLUDED}"
    if sums.spot:
        yield f"spot: {machine_count(sums.spot)} cost{'s' if sums.spot == 1 else ''} at most the price shown"
    if sums.negotiated:
        yield f"* negotiated: {machine_count(sums.negotiated)} at a price from `prices` in the region file"
    for source in sorted({row.price.source for row in found.rows if row.machines and row.price is not None and not row.price.negotiated}):
        yield f"source: {source}"
    if sums.unpriced:
        yield "remedy for a missing price: gpufleet prices refresh, or an entry under `prices` in the region file"


def _as_json(plan: RegionPlan, found: RegionCost) -> dict[str, object]:
    return {
        "region": plan.name,
        "location": plan.spec.location,
        "currency": "USD",
        "hours_per_month": HOURS_PER_MONTH,
        "included": INCLUDED,
        "rows": [_row_json(row) for row in found.rows],
        "clusters": {name: _total_json(sums) for name, sums in found.clusters.items()},
        "total": _total_json(found.total),
    }


def _row_json(row: CostRow) -> dict[str, object]:
    return {
        "cluster": row.cluster,
        "role": row.role,
        "vm_size": row.size.name,
        "machines": row.machines,
        "gpus": row.gpus,
        "spot": row.spot,
        "usd_per_machine_hour": _number(None if row.price is None else row.price.usd_per_hour),
        "usd_per_hour": _number(row.usd_per_hour),
        "usd_per_month": _number(None if row.usd_per_hour is None else row.usd_per_hour * HOURS_PER_MONTH),
        "usd_per_gpu_hour": _number(row.usd_per_gpu_hour),
        "negotiated": row.price is not None and row.price.negotiated,
        "price_date": row.price and row.price.date,
        "price_source": row.price and row.price.source,
    }


def _total_json(sums: CostTotal) -> dict[str, object]:
    """Return a total; its amounts are those of the machines with a price, and complete is true if every machine has one."""
    return {
        "machines": sums.machines,
        "gpus": sums.gpus,
        "complete": not sums.unpriced,
        "usd_per_hour": _number(sums.usd_per_hour),
        "usd_per_month": _number(sums.usd_per_month),
        "usd_per_gpu_hour": _number(sums.usd_per_gpu_hour),
        "negotiated_machines": sums.negotiated,
        "spot_machines": sums.spot,
        "without_price": [dataclasses.asdict(one) for one in sums.unpriced],
        "price_dates": sums.dates,
    }


def _number(value: Decimal | None) -> float | None:
    return None if value is None else round(float(value), 6)
