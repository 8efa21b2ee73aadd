"""gpufleet certificates: list the certificates of a region, when each expires, and what to do."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from components.errors import GpufleetError
from components.plan.model import RegionPlan
from gpufleet.consoles import result_console
from gpufleet.directories import OUT, Directory
from gpufleet.limit_table import GAP, wrapped
from gpufleet.slow_step import slow_step
from stacks.load import load_plan, short_path

if TYPE_CHECKING:
    from gpufleet.certificate_report import CertificateRow, Holder


@click.command(short_help="Print when each certificate expires, and what to do.")
@click.argument("region")
@click.option(
    "--state",
    type=Directory(),
    help="Directory of an embedded Azure to read instead of the region's key vaults; gpufleet up uses out/<region>/azure.",
)
@click.option("--within", type=click.FloatRange(min=0), metavar="DAYS", help="Exit 1 if a certificate expires in fewer days.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print every certificate as JSON: cluster, name, purpose, machines, vaults, serial, begins, ends, due, days_left, todo.",
)
def certificates(region: str, state: Path | None, within: float | None, as_json: bool) -> None:
    """Print every certificate and authority of REGION's clusters, sorted by the date of expiry.

    \b
    The command reads the clusters' key vaults in Azure with the identity of az login, inside the hub's network. Only
    with --state it reads an embedded Azure, so that a report about Azure never shows an old model. The last line names
    the source.
      gpufleet certificates dev --state out/dev/azure
      gpufleet certificates southcentralus --within 30      for a schedule: exit 1 triggers an alert
    pulumi up renews a certificate when less than a third of its life is left; machines fetch it within six hours, and no
    service is restarted. An authority is replaced only if ca_generation is raised: docs/runbooks/certificates.md.

    Certificates of kubelets are not listed: each kubelet renews its own. Exit status: 0 if none expires soon; 1 if one expires within
    --within DAYS, or has expired; 2 if the file is invalid, or a vault cannot be read.
    """
    # The parser of certificates takes a tenth of the time in which every other verb starts.
    from gpufleet.certificate_report import CertificateInvalidError, report, soonest
    from gpufleet.certificate_vaults import VaultReadError

    plan = load_plan(region)
    now = datetime.now(UTC)
    try:
        with slow_step(f"reading the certificates of {plan.name} from {state or 'its key vaults in Azure'}"):
            rows = report(_read(plan, state), now)
    except (VaultReadError, CertificateInvalidError) as error:
        click.echo(f"{error}{'' if state else _local_hint(region, plan)}", err=True)
        sys.exit(2)
    ending = soonest(rows, within or 0.0)
    source = f"the embedded Azure in {state}" if state else "key vaults of Azure"
    if as_json:
        click.echo(
            json.dumps(
                {"region": plan.name, "now": now.isoformat(), "source": source, "certificates": [row.as_json() for row in rows]}, indent=2
            )
        )
    else:
        console = result_console(200)
        draw(console, rows, frozenset(row.serial for row in rows if row.due < now or row in ending))
        console.print(f"\n{_summary(plan, rows, ending, within)}; read from {source}", markup=False, soft_wrap=True)
    sys.exit(1 if ending else 0)


def _read(plan: RegionPlan, state: Path | None) -> list[tuple[Holder, str]]:
    """Read every certificate of the region; VaultReadError."""
    from gpufleet.certificate_report import holders
    from gpufleet.certificate_vaults import VaultReadError, read_embedded, read_key_vaults

    holders_of_region = [holder for cluster in plan.clusters for holder in holders(cluster)]
    if state is None:
        return read_key_vaults(holders_of_region)
    try:
        return read_embedded(holders_of_region, plan, state)
    except VaultReadError:
        raise
    except GpufleetError as error:
        raise click.ClickException(str(error)) from None


def _local_hint(region: str, plan: RegionPlan) -> str:
    """Return a hint with the command that reads an embedded Azure of the region in its default place; empty if there is none."""
    for folder in (OUT / plan.name / "azure", OUT / plan.name / "engine" / "inside" / "azure"):
        if any(folder.glob("state-*.json")):
            command = shlex.join(["gpufleet", "certificates", region, "--state", str(short_path(folder))])
            return f"; these are the key vaults of Azure: to read your embedded Azure, run {command}"
    return ""


def _summary(plan: RegionPlan, rows: list[CertificateRow], ending: list[CertificateRow], within: float | None) -> str:
    """Return the number of certificates, and of those that expire too soon."""
    count = f"{plan.name}: {len(rows)} certificates of {len(plan.clusters)} cluster{'' if len(plan.clusters) == 1 else 's'}"
    if within is None:
        return f"{count}; {len(ending)} ended" if ending else f"{count}; the first ends in {rows[0].days_left:,.0f} days"
    return f"{count}; {len(ending) or 'none'} end{'s' if len(ending) <= 1 else ''} within {within:g} days"


HEADS = ("days", "ends", "cluster", "certificate", "for", "held by", "to do")
INDENT = 6


def draw(console: Console, rows: Sequence[CertificateRow], now_due: frozenset[str]) -> None:
    """Print the rows; `now_due` are the serials of certificates that need action."""
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(HEADS, *cells, strict=True)]
    if sum(widths) + GAP * (len(HEADS) - 1) > console.width:
        for row in rows:
            for line in _lines(row, console.width):
                console.print(Text(line, style=_style(row, now_due)), soft_wrap=True)
        return
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, GAP, 0, 0))
    for head in HEADS:
        table.add_column(head, justify="right" if head == "days" else "left", no_wrap=True)
    for row, texts in zip(rows, cells, strict=True):
        table.add_row(*texts, style=_style(row, now_due))
    console.print(table)


def machines(row: CertificateRow) -> str:
    """Return the machines that hold a certificate."""
    return ", ".join(row.machines) or "no machine"


def _cells(row: CertificateRow) -> tuple[str, ...]:
    return (f"{row.days_left:,.0f}", f"{row.ends:%Y-%m-%d}", row.cluster, row.name, row.purpose, machines(row), row.todo)


def _lines(row: CertificateRow, width: int) -> Iterator[str]:
    """Format a row without a table: days left and name, the rest below, wrapped."""
    room = max(width - INDENT - GAP, 1)
    yield f"{row.days_left:>{INDENT},.0f}{' ' * GAP}{row.cluster}/{row.name}"[:width]
    for text in (f"{row.purpose}; ends {row.ends:%Y-%m-%d}", f"held by {machines(row)}", row.todo):
        yield from (" " * (INDENT + GAP) + line for line in wrapped(text, room))


def _style(row: CertificateRow, now_due: frozenset[str]) -> str:
    return "bold red" if row.days_left < 0 else "yellow" if row.serial in now_due else ""
