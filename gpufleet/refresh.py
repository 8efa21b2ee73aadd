"""gpufleet refresh: what has changed in a region's Azure and clusters without Pulumi, told and taken up into its state."""

from __future__ import annotations

import sys

import click

from gpufleet.azure_options import Asked, azure_options, wide_console
from gpufleet.engine_options import CLOCK, EngineAsked, clock_option
from gpufleet.pulumi_engine import run_on_engine, work_for_engine
from stacks.load import load_plan


@click.command(short_help="Show what changed behind Pulumi's back, and take it up.")
@click.argument("region")
@azure_options
@clock_option
@click.option("--only-show", is_flag=True, help="Show what has changed, and leave the state as it is.")
@click.option("--diff", "everything", is_flag=True, help="Show every resource with its changed values, not only what fits a screen.")
@click.option("--engine", is_flag=True, hidden=True, expose_value=False, help="As for the other verbs; this one knows no other engine.")
def refresh(region: str, asked: Asked, clock: str | None, only_show: bool, everything: bool) -> None:
    """Ask Azure and the clusters of REGION how everything is, and show where that differs from what Pulumi last knew.

    \b
    Only Pulumi's own engine has a state that can differ from what there is, so this needs its CLI; it works on what
    gpufleet up --engine has brought up. What it shows it takes up into the state; the next up makes it again what the
    region file says.
      gpufleet refresh dev --only-show                    after somebody has changed something by hand
      gpufleet refresh dev
      gpufleet up dev --engine

    Exits 0 whether or not something has changed, 1 when something failed, 2 when an option is refused, the CLI is missing, or nothing
    was brought up.
    """
    from rehearsal.pulumi_cli.region_commands import refresh as refreshed
    from rehearsal.pulumi_cli.workspace import EngineFolder

    if asked.unprotect:
        raise click.UsageError("refresh deletes nothing; leave --unprotect away")
    console = wide_console()
    plan = load_plan(region)
    asked.conditions()
    work = work_for_engine(console, plan, region, asked, EngineAsked(wanted=True, no_fallback=True, clock=clock or CLOCK))
    if work is not None and not EngineFolder(work.folder).exists:
        click.echo(f"nothing was brought up in {work.folder}; gpufleet up {region} --engine does it", err=True)
        sys.exit(2)
    if work is not None:
        run_on_engine(console, work, lambda at_work: refreshed(at_work, asked.allowed(), only_show=only_show), everything=everything)
