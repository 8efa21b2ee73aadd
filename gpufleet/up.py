"""gpufleet up: create a region in an embedded Azure, or update it there to match the region file."""

from __future__ import annotations

import sys
import time

import click

from gpufleet.consoles import progress_console, result_console
from gpufleet.options import AzureOptions, EngineOptions, azure_options, engine_options, print_notes, report_refusals
from gpufleet.output_streams import saved_before_output, saved_state
from gpufleet.pulumi_engine import run_on_engine, work_for_engine
from gpufleet.up_output import print_outcome, shown
from stacks.load import load_plan, load_siblings
from stacks.notes import missing_captures


@click.command(short_help="Create or update a region in the embedded Azure.")
@click.argument("region")
@azure_options
@engine_options
@click.option(
    "--accept-loss-of",
    type=click.IntRange(1),
    metavar="N",
    help="Allow the deletion of exactly N machines, drained or not, if the region file removes their scale sets.",
)
@click.option("--diff", "everything", is_flag=True, help="Print every resource with its changed values, without the limit of one screen.")
def up(region: str, azure: AzureOptions, engine: EngineOptions, accept_loss_of: int | None, everything: bool) -> None:
    """Create or update REGION in its embedded Azure to match the region file: the base stack, then the clusters.

    \b
    No cloud account and no Pulumi CLI are needed. The command runs the program of pulumi up against a model of Azure,
    which --state stores between commands. The model's clock is virtual, so hours of Azure's time pass in seconds.
    "Azure's time" in the result is time on this clock, which Azure would need; the seconds "here" are this machine's.
    Run it again after a change of the region file or a failure: it does only what is missing.
      gpufleet up dev                                     create or update
      gpufleet preview dev                                print what up would do, and whether it would succeed
      gpufleet up dev --scenario quota-one-short          the same with a quota that is too small
    Resources that the region file no longer has are deleted. Protected resources (node pools, etcd, vaults, backups) and
    machines that were not drained and deleted by instance before are not: the update is refused, and nothing changes.

    If deleted vaults reserve names that the region needs, the update is refused with the command that frees them.

    \b
    --engine uses Pulumi's own engine, if the Pulumi CLI is on PATH and Linux allows a network namespace for the hub. It
    runs against the same Azure over HTTPS, and against real API servers, which start when their machines exist.
    Without the CLI the command runs in process. The first line on standard error names the engine. See docs/pulumi.md.
      gpufleet up dev --engine                            takes minutes; stored in out/dev/engine

    Exit status: 1 if something failed or was refused; 2 if a file or an option is invalid, or the directory is in use or belongs to
    another region.
    """
    # The SDKs of Azure and Kubernetes take seconds to import, which would slow down every other verb.
    from components.plan.limits import raise_if_broken
    from rehearsal.azure.persistence import save
    from rehearsal.azure.region_cloud import open_region_cloud
    from rehearsal.azure.state_directory import StateDirectory
    from rehearsal.local_up.up import bring_up

    console = result_console()
    began = time.monotonic()
    plan = load_plan(region)
    raise_if_broken(plan, load_siblings(region).plans)
    print_notes(progress_console(), missing_captures(plan))
    scenario = azure.load_scenario()
    if (work := work_for_engine(plan, region, azure, engine)) is not None:
        from rehearsal.pulumi_cli import region_commands

        run_on_engine(
            console, work, lambda at_work: region_commands.bring_up(at_work, azure.allowed(accept_loss_of)), everything=everything
        )
    folder = azure.folder(plan.name)
    with report_refusals(console, region, folder), StateDirectory(folder) as directory, shown("up") as progress:
        cloud = open_region_cloud(directory, plan, scenario)
        outcome = bring_up(plan, cloud, azure.allowed(accept_loss_of), progress)
        save(directory, cloud)
    with saved_before_output(saved_state("up", folder, complete=outcome.complete)):
        print_outcome(console, outcome, time.monotonic() - began, folder, everything=everything)
    sys.exit(0 if outcome.complete else 1)
