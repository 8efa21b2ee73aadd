"""gpufleet up: make a region's embedded Azure what the region file says."""

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


@click.command(short_help="Bring a region up in the embedded Azure, or change it there.")
@click.argument("region")
@azure_options
@engine_options
@click.option(
    "--accept-loss-of",
    type=click.IntRange(1),
    metavar="N",
    help="Let Azure take exactly N machines away, drained or not, where the region file asks for fewer.",
)
@click.option("--diff", "everything", is_flag=True, help="Show every resource with its changed values, not only what fits a screen.")
def up(region: str, asked: Asked, engine: EngineAsked, accept_loss_of: int | None, everything: bool) -> None:
    """Make the embedded Azure of REGION what the region file says: the base stack, then the clusters.

    \b
    No cloud account and no Pulumi CLI are needed. The program is the one that pulumi up runs; the Azure that it meets
    is a model, kept in --state between two commands, whose time passes as fast as this machine can reckon.
    Run it again after a change of the region file, or after something failed: it does what is missing, no more.
      gpufleet up dev                                     from nothing, or from what stands
      gpufleet preview dev                                what up would do, and whether it would get through
      gpufleet up dev --scenario quota-one-short          the same in an Azure that grants too few vCPUs
    What the region file no longer has is deleted. Protected resources (node pools, etcd, vaults, backups) are not, and no
    machine is taken away that was not drained and deleted by instance before: both are refused, and then nothing changes.

    Nor is anything tried while deleted vaults hold names that the region needs: the command that frees them is told.

    \b
    With --engine it is Pulumi's own engine that works, where the Pulumi CLI is on PATH and Linux lets a hub's network be
    made here: against the same Azure over HTTPS, and against real API servers, which start when their machines are there.
    Without the CLI it works in process after all; the first line says which, and why. More is in docs/pulumi.md.
      gpufleet up dev --engine                            minutes; kept in out/dev/engine, apart from the other

    Exits 1 when something failed or was refused, 2 when a file or an option is refused, or the directory is in use or another region's.
    """
    # Azure's and Kubernetes' SDKs take seconds to import, which no other verb should pay.
    from components.plan.limits import raise_if_broken
    from rehearsal.azure.persistence import keep
    from rehearsal.azure.region_cloud import kept_azure
    from rehearsal.azure.state_directory import StateDirectory
    from rehearsal.local_up.up import bring_up

    console = wide_console()
    began = time.monotonic()
    plan = load_plan(region)
    raise_if_broken(plan, load_siblings(region).plans)
    conditions = asked.conditions()
    if (work := work_for_engine(console, plan, region, asked, engine)) is not None:
        from rehearsal.pulumi_cli import region_commands

        run_on_engine(
            console, work, lambda at_work: region_commands.bring_up(at_work, asked.allowed(accept_loss_of)), everything=everything
        )
    folder = asked.folder(plan.name)
    with refusals_told(console, region, folder), StateDirectory(folder) as directory, shown(console, "up") as progress:
        cloud = kept_azure(directory, plan, conditions)
        outcome = bring_up(plan, cloud, asked.allowed(accept_loss_of), progress)
        keep(directory, cloud)
    print_outcome(console, outcome, time.monotonic() - began, folder, everything=everything)
    sys.exit(0 if outcome.complete else 1)
