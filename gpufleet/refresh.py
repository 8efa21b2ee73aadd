"""gpufleet refresh: print what changed outside Pulumi in a region's Azure and clusters, and update the state."""

from __future__ import annotations

import sys

import click

from gpufleet.consoles import result_console
from gpufleet.options import CLOCK, AzureOptions, EngineOptions, azure_options, clock_option
from gpufleet.pulumi_engine import run_on_engine, work_for_engine
from stacks.load import load_plan


@click.command(short_help="Print what changed outside Pulumi, and update the state.")
@click.argument("region")
@azure_options
@clock_option
@click.option("--only-show", is_flag=True, help="Print the changes; do not update the state.")
@click.option("--diff", "everything", is_flag=True, help="Print every resource with its changed values, without the limit of one screen.")
@click.option(
    "--engine", is_flag=True, hidden=True, expose_value=False, help="Accepted as for the other verbs; refresh always uses Pulumi's engine."
)
def refresh(region: str, azure: AzureOptions, clock: str | None, only_show: bool, everything: bool) -> None:
    """Read all resources of REGION from Azure and the clusters, and print the differences from Pulumi's state.

    \b
    Only Pulumi's own engine has a state that can differ from the cloud, so this verb needs the Pulumi CLI. It works on
    regions that gpufleet up --engine created. It updates the state; the next up restores what the region file says.
      gpufleet refresh dev --only-show                    after a change by hand
      gpufleet refresh dev
      gpufleet up dev --engine

    Exit status: 0 with or without differences; 1 if something failed; 2 if an option is invalid, the CLI is missing, or the region was
    not created.
    """
    from rehearsal.pulumi_cli.region_commands import refresh as refreshed
    from rehearsal.pulumi_cli.workspace import EngineFolder

    if azure.unprotect:
        raise click.UsageError("refresh deletes nothing; leave --unprotect away")
    console = result_console()
    plan = load_plan(region)
    azure.load_scenario()
    work = work_for_engine(plan, region, azure, EngineOptions(use_pulumi=True, no_fallback=True, clock=clock or CLOCK))
    if work is not None and not EngineFolder(work.folder).exists:
        click.echo(f"nothing was created in {work.folder}; run gpufleet up {region} --engine first", err=True)
        sys.exit(2)
    if work is not None:
        run_on_engine(console, work, lambda at_work: refreshed(at_work, azure.allowed(), only_show=only_show), everything=everything)
