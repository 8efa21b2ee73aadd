"""gpufleet preview: what gpufleet up would do to a region's embedded Azure, and whether it would get through."""

from __future__ import annotations

import sys
import time

import click

from gpufleet.azure_options import Asked, azure_options, refusals_told, wide_console
from gpufleet.engine_options import EngineAsked, engine_options
from gpufleet.pulumi_engine import run_on_engine, work_for_engine
from gpufleet.up_progress import shown
from gpufleet.up_summary import print_outcome
from stacks.load import load_plan, load_siblings


@click.command(short_help="Show what up would do, without doing it.")
@click.argument("region")
@azure_options
@engine_options
@click.option("--accept-loss-of", type=click.IntRange(1), metavar="N", help="Show it with N machines given up, as up would need it.")
@click.option("--diff", "everything", is_flag=True, help="Show every resource with its changed values, not only what fits a screen.")
def preview(region: str, asked: Asked, engine: EngineAsked, accept_loss_of: int | None, everything: bool) -> None:
    """Show what gpufleet up would do to the embedded Azure of REGION, without doing it.

    \b
    It brings a copy up and compares the two, so it also tells how long that takes in Azure's time, which refusals and
    failures it meets in a scenario, and how many machines are left with an older model.
      gpufleet preview dev                                after a change of the region file
      gpufleet preview dev --diff                         with every value
      gpufleet preview dev --scenario allocation-3-percent
      gpufleet preview dev --engine                       as pulumi preview has it, with what must be made anew and why

    Exits 0 when up would get through, with changes or without; 1 when something would fail or be refused.
    """
    from components.plan.limits import raise_if_broken
    from rehearsal.azure.region_cloud import kept_azure, new_azure
    from rehearsal.azure.state_directory import StateDirectory
    from rehearsal.local_up.up import bring_up

    console = wide_console()
    began = time.monotonic()
    plan = load_plan(region)
    raise_if_broken(plan, load_siblings(region).plans)
    conditions = asked.conditions()
    if (work := work_for_engine(console, plan, region, asked, engine)) is not None:
        from rehearsal.pulumi_cli import region_commands

        run_on_engine(console, work, lambda at_work: region_commands.preview(at_work, asked.allowed(accept_loss_of)), everything=everything)
    folder = asked.folder(plan.name)
    with refusals_told(console, region, folder), shown(console, "preview") as progress:
        if folder.exists():
            with StateDirectory(folder) as directory:
                cloud = kept_azure(directory, plan, conditions)
        else:
            cloud = new_azure(plan, conditions)
        outcome = bring_up(plan, cloud, asked.allowed(accept_loss_of), progress)
    print_outcome(console, outcome, time.monotonic() - began, None, everything=everything)
    sys.exit(0 if outcome.complete else 1)
