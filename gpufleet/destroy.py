"""gpufleet destroy: delete what a region has in its embedded Azure."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.console import Console

from gpufleet.azure_options import allowed, azure_options, refusals_told, state_directory
from gpufleet.up_progress import shown
from gpufleet.up_summary import print_outcome
from stacks.load import load_plan


@click.command(short_help="Delete what a region has in the embedded Azure.")
@click.argument("region")
@azure_options
@click.option("--purge", is_flag=True, help="Purge the region's deleted vaults too, which frees their names for another up.")
def destroy(region: str, state: Path | None, scenario: str | None, parallel: int | None, unprotect: tuple[str, ...], purge: bool) -> None:
    """Delete everything of REGION in its embedded Azure: the clusters, then the base stack.

    \b
    Protected resources (node pools, etcd, vaults, backups, teams' namespaces) are refused by name, and then nothing is
    deleted; allow them one by one, or all:
      gpufleet destroy dev --unprotect all
    Vaults stay as deleted ones for the days that the region file says, as Azure keeps them, and hold their names until
    then; --purge frees them, also afterwards, where the region file has no purge protection.

    Exits 1 when something failed or was refused, 2 when a file is refused or the directory is in use.
    """
    from rehearsal.azure.scenario import Scenario
    from rehearsal.azure.scenarios import load_scenario
    from rehearsal.keeping import keep
    from rehearsal.state_directory import StateDirectory
    from rehearsal.upward.region_azure import kept_azure
    from rehearsal.upward.up import tear_down

    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    began = time.monotonic()
    plan = load_plan(region)
    conditions = load_scenario(scenario) if scenario else Scenario()
    folder = state_directory(state, plan.name)
    if not folder.exists():
        console.print(f"{plan.name} has no embedded Azure in {folder}: nothing to destroy", markup=False, soft_wrap=True)
        return
    with refusals_told(console), StateDirectory(folder) as directory, shown(console, "destroy") as progress:
        cloud = kept_azure(directory, plan, conditions)
        outcome = tear_down(plan, cloud, allowed(unprotect, parallel), progress, purge=purge)
        keep(directory, cloud)
    print_outcome(console, outcome, time.monotonic() - began, folder, everything=False)
    sys.exit(0 if outcome.complete else 1)
