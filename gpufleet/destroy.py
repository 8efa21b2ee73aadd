"""gpufleet destroy: delete what a region has in its embedded Azure."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import click

from gpufleet.azure_options import Asked, azure_options, refusals_told, wide_console
from gpufleet.deleted_vaults import held_lines
from gpufleet.engine_options import EngineAsked, engine_options
from gpufleet.pulumi_engine import run_on_engine, work_for_engine
from gpufleet.up_progress import shown
from gpufleet.up_summary import print_destroyed
from stacks.load import load_plan


@click.command(short_help="Delete what a region has in the embedded Azure.")
@click.argument("region")
@azure_options
@engine_options
@click.option("--purge", is_flag=True, help="Purge the region's deleted vaults too, which frees their names for another up.")
@click.option("--only-purge", is_flag=True, help="Purge the region's deleted vaults, and delete nothing that stands.")
def destroy(region: str, asked: Asked, engine: EngineAsked, purge: bool, only_purge: bool) -> None:
    """Delete everything of REGION in its embedded Azure: the clusters, then the base stack.

    \b
    Protected resources (node pools, etcd, vaults, backups, teams' namespaces) are refused by name, and then nothing is
    deleted; allow them one by one, or all:
      gpufleet destroy dev --unprotect all
    Vaults stay as deleted ones for the days that the region file says, as Azure keeps them, and hold their names until
    then. Where the region file has no purge protection, --purge frees them in the same command, and --only-purge later:
      gpufleet destroy dev --only-purge

    \b
    What Pulumi's own engine has brought up, it destroys:
      gpufleet destroy dev --engine --unprotect all

    Exits 1 when something failed or was refused, 2 when a file or an option is refused, or the directory is in use or another region's.
    """
    from rehearsal.azure.persistence import keep
    from rehearsal.azure.region_cloud import kept_azure
    from rehearsal.azure.state_directory import StateDirectory
    from rehearsal.local_up.deleted_vaults import held_names
    from rehearsal.local_up.up import has_nothing, purge_only, tear_down

    if only_purge and (purge or asked.unprotect):
        raise click.UsageError("--only-purge deletes nothing that stands; leave --purge and --unprotect away, or leave --only-purge away")
    console = wide_console()
    began = time.monotonic()
    plan = load_plan(region)
    conditions = asked.conditions()
    if (work := work_for_engine(console, plan, region, asked, engine)) is not None:
        from rehearsal.pulumi_cli import region_commands

        if only_purge:
            run_on_engine(console, work, region_commands.purge_only)
        run_on_engine(console, work, lambda at_work: region_commands.tear_down(at_work, asked.allowed(), purge=purge))
    folder = asked.folder(plan.name)
    if not folder.exists():
        console.print(f"{plan.name} has no embedded Azure in {folder}: nothing to destroy", markup=False, soft_wrap=True)
        return
    with refusals_told(console, region, folder), StateDirectory(folder) as directory, shown(console, "destroy") as progress:
        cloud = kept_azure(directory, plan, conditions)
        if only_purge:
            outcome = purge_only(plan, cloud, asked.allowed())
        else:
            going = replace(asked, unprotect=()) if has_nothing(plan, cloud) else asked
            outcome = tear_down(plan, cloud, going.allowed(), progress, purge=purge)
        keep(directory, cloud)
    print_destroyed(console, outcome, time.monotonic() - began, folder, only_purge=only_purge)
    for line in held_lines(held_names(plan, cloud), region, folder):
        console.print(line, markup=False, soft_wrap=True)
    sys.exit(0 if outcome.complete else 1)
