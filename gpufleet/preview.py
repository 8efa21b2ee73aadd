"""gpufleet preview: print what gpufleet up would do to a region's embedded Azure, and whether it would succeed."""

from __future__ import annotations

import sys
import time

import click

from gpufleet.consoles import progress_console, result_console
from gpufleet.options import AzureOptions, EngineOptions, azure_options, engine_options, has_files, print_notes, report_refusals
from gpufleet.pulumi_engine import run_on_engine, work_for_engine
from gpufleet.up_output import print_outcome, shown
from stacks.load import load_plan, load_siblings
from stacks.notes import missing_captures


@click.command(short_help="Print what up would do, without doing it.")
@click.argument("region")
@azure_options
@engine_options
@click.option(
    "--accept-loss-of", type=click.IntRange(1), metavar="N", help="Preview the update with the loss of N machines allowed, as for up."
)
@click.option("--diff", "everything", is_flag=True, help="Print every resource with its changed values, without the limit of one screen.")
def preview(region: str, azure: AzureOptions, engine: EngineOptions, accept_loss_of: int | None, everything: bool) -> None:
    """Print what gpufleet up would do to the embedded Azure of REGION, without doing it.

    \b
    It updates a copy and compares the two. So it also prints the time that the update takes in Azure, the refusals and
    failures of a scenario, and how many machines would keep an older model. "Azure's time" is time on the model's clock,
    which Azure would need; the seconds "here" are those of this machine.
      gpufleet preview dev                                after a change of the region file
      gpufleet preview dev --diff                         with every value
      gpufleet preview dev --scenario allocation-3-percent
      gpufleet preview dev --engine                       as pulumi preview prints it, with replacements and their reasons

    Exit status: 0 if up would succeed, with or without changes; 1 if something would fail or be refused.
    """
    from components.plan.limits import raise_if_broken
    from rehearsal.azure.region_cloud import new_region_cloud, open_region_cloud
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

        run_on_engine(console, work, lambda at_work: region_commands.preview(at_work, azure.allowed(accept_loss_of)), everything=everything)
    folder = azure.folder(plan.name)
    with report_refusals(console, region, folder), shown("preview") as progress:
        if has_files(folder):
            with StateDirectory(folder) as directory:
                cloud = open_region_cloud(directory, plan, scenario)
        else:
            print_notes(progress_console(), [f"{folder} contains no Azure yet; this compares with an empty one"])
            cloud = new_region_cloud(plan, scenario)
        outcome = bring_up(plan, cloud, azure.allowed(accept_loss_of), progress)
    print_outcome(console, outcome, time.monotonic() - began, None, everything=everything)
    sys.exit(0 if outcome.complete else 1)
