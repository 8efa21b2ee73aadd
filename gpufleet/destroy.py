"""gpufleet destroy: delete a region's resources from its embedded Azure."""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import click

from gpufleet.consoles import result_console
from gpufleet.options import AzureOptions, EngineOptions, azure_options, engine_options, has_files, report_refusals
from gpufleet.output_streams import saved_before_output, saved_state
from gpufleet.pulumi_engine import run_on_engine, work_for_engine
from gpufleet.up_output import held_lines, print_destroyed, shown
from stacks.load import load_plan


@click.command(short_help="Delete a region from the embedded Azure.")
@click.argument("region")
@azure_options
@engine_options
@click.option("--purge", is_flag=True, help="Also purge the region's deleted vaults, so that another up can use their names.")
@click.option("--only-purge", is_flag=True, help="Purge the region's deleted vaults, and delete nothing else.")
def destroy(region: str, azure: AzureOptions, engine: EngineOptions, purge: bool, only_purge: bool) -> None:
    """Delete all resources of REGION from its embedded Azure: the clusters, then the base stack.

    \b
    Protected resources (node pools, etcd, vaults, backups, namespaces of teams) stop the command, and then nothing is
    deleted. Allow their deletion one by one, or for all:
      gpufleet destroy dev --unprotect all
    A deleted vault keeps its name reserved for the number of days in the region file, as in Azure. If the region file has
    no purge protection, --purge frees the names in the same command, and --only-purge frees them later:
      gpufleet destroy dev --only-purge

    \b
    For a region that Pulumi's own engine created:
      gpufleet destroy dev --engine --unprotect all

    Exit status: 1 if something failed or was refused; 2 if a file or an option is invalid, or the directory is in use or belongs to
    another region.
    """
    from rehearsal.azure.persistence import save
    from rehearsal.azure.region_cloud import open_region_cloud
    from rehearsal.azure.state_directory import StateDirectory
    from rehearsal.local_up.deleted_vaults import reserved_names
    from rehearsal.local_up.up import has_nothing, purge_only, tear_down

    if only_purge and (purge or azure.unprotect):
        raise click.UsageError("--only-purge deletes no resources; remove --purge and --unprotect, or remove --only-purge")
    console = result_console()
    began = time.monotonic()
    plan = load_plan(region)
    scenario = azure.load_scenario()
    if (work := work_for_engine(plan, region, azure, engine)) is not None:
        from rehearsal.pulumi_cli import region_commands

        if only_purge:
            run_on_engine(console, work, region_commands.purge_only)
        run_on_engine(console, work, lambda at_work: region_commands.tear_down(at_work, azure.allowed(), purge=purge))
    folder = azure.folder(plan.name)
    if not has_files(folder):
        console.print(f"{plan.name} has no embedded Azure in {folder}: nothing to destroy", markup=False, soft_wrap=True)
        return
    with report_refusals(console, region, folder), StateDirectory(folder) as directory, shown("destroy") as progress:
        cloud = open_region_cloud(directory, plan, scenario)
        if only_purge:
            outcome = purge_only(plan, cloud, azure.allowed())
        else:
            going = replace(azure, unprotect=()) if has_nothing(plan, cloud) else azure
            outcome = tear_down(plan, cloud, going.allowed(), progress, purge=purge)
        save(directory, cloud)
    with saved_before_output(saved_state("destroy", folder, complete=outcome.complete)):
        print_destroyed(console, outcome, time.monotonic() - began, folder, only_purge=only_purge)
        for line in held_lines(reserved_names(plan, cloud), region, folder):
            console.print(line, markup=False, soft_wrap=True)
    sys.exit(0 if outcome.complete else 1)
