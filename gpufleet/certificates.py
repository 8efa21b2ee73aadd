"""gpufleet certificates: which certificates of a region end when, and what is to be done."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from components.plan.model import RegionPlan
from gpufleet.certificate_holders import Holder, holders
from gpufleet.certificate_report import CertificateInvalidError, Row, report, soonest
from gpufleet.certificate_table import draw
from gpufleet.certificate_vaults import VaultReadError, read_kept, read_key_vaults
from stacks.load import load_plan


@click.command(short_help="Print when each certificate ends, and what to do.")
@click.argument("region")
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of an embedded Azure, in the place of the region's key vaults.",
)
@click.option("--within", type=click.FloatRange(min=0), metavar="DAYS", help="Exit 1 when a certificate ends in fewer days.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print every certificate as JSON: cluster, name, purpose, machines, vaults, serial, begins, ends, due, days_left, todo.",
)
def certificates(region: str, state: Path | None, within: float | None, as_json: bool) -> None:
    """Print every certificate and authority of REGION's clusters, what ends first before the rest.

    \b
    They are read from the clusters' key vaults, as whoever is signed in (az login), from inside the hub's network; or
    with --state from an embedded Azure:
      gpufleet certificates dev --state out/dev/azure
      gpufleet certificates southcentralus --within 30      for a schedule: exit 1 wakes somebody
    pulumi up renews a certificate when less than a third of its life is left; machines fetch it within six hours, and no
    service is restarted. An authority is replaced only when ca_generation is raised: docs/runbooks/certificates.md.

    Certificates of kubelets are not here: each renews its own. Exit status: 0 all have longer; 1 one ends within --within DAYS, or
    has ended; 2 the file is refused, or a vault cannot be read.
    """
    plan = load_plan(region)
    now = datetime.now(UTC)
    try:
        rows = report(_read(plan, state), now)
    except (VaultReadError, CertificateInvalidError) as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    ending = soonest(rows, within or 0.0)
    if as_json:
        click.echo(json.dumps({"region": plan.name, "now": now.isoformat(), "certificates": [row.as_json() for row in rows]}, indent=2))
    else:
        console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
        draw(console, rows, frozenset(row.serial for row in rows if row.due < now or row in ending))
        console.print(f"\n{_summary(plan, rows, ending, within)}", markup=False, soft_wrap=True)
    sys.exit(1 if ending else 0)


def _read(plan: RegionPlan, state: Path | None) -> list[tuple[Holder, str]]:
    """Every certificate of the region; VaultUnread."""
    wanted = [holder for cluster in plan.clusters for holder in holders(cluster)]
    if state is None:
        return read_key_vaults(wanted)
    from rehearsal.azure.region_cloud import OtherRegionError
    from rehearsal.azure.state_directory import StateCorruptError, StateInUseError

    try:
        return read_kept(wanted, plan, state)
    except (StateCorruptError, StateInUseError, OtherRegionError) as error:
        raise click.ClickException(str(error)) from None


def _summary(plan: RegionPlan, rows: list[Row], ending: list[Row], within: float | None) -> str:
    """How many there are, and how many end too soon."""
    told = f"{plan.name}: {len(rows)} certificates of {len(plan.clusters)} cluster{'' if len(plan.clusters) == 1 else 's'}"
    if within is None:
        return f"{told}; {len(ending)} ended" if ending else f"{told}; the first ends in {rows[0].days_left:,.0f} days"
    return f"{told}; {len(ending) or 'none'} end{'s' if len(ending) <= 1 else ''} within {within:g} days"
