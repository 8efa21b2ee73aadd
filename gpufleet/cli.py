"""The command line: one group, one file per verb, and the one place where errors are reported."""

from __future__ import annotations

import sys

import click

from components.errors import GpufleetError
from gpufleet.alerts import alerts
from gpufleet.azure import azure
from gpufleet.binaries import binaries, engines
from gpufleet.certificates import certificates
from gpufleet.check import check
from gpufleet.cost import cost
from gpufleet.dashboard import dashboard
from gpufleet.destroy import destroy
from gpufleet.image_files import image_files
from gpufleet.interruption import exit_interrupted
from gpufleet.preview import preview
from gpufleet.prices import prices
from gpufleet.refresh import refresh
from gpufleet.rehearse import rehearse
from gpufleet.rotation import rotation
from gpufleet.schema import schema
from gpufleet.up import up

EXIT_REFUSED = 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="gpufleet", prog_name="gpufleet")
def group() -> None:
    """Plan, check and rehearse GPU training fleets on Azure.

    A REGION is a name under stacks/regions (southcentralus), or a path to a region file (./drafts/westeurope.yaml).

    \b
    Start here, without a cloud account:
      gpufleet check southcentralus       print the use, bound and headroom of every limit
      gpufleet cost southcentralus        print the cost of its machines per pool, cluster and region
      gpufleet rehearse southcentralus    create the whole region in an embedded Azure, check it, and draw it
      gpufleet up dev                     create it in an embedded Azure that stays; then change the file: preview, up, destroy
    With the Pulumi CLI:
      gpufleet up dev --engine            the same with Pulumi's own engine and real API servers; also preview, refresh, destroy
    With the Pulumi CLI and an Azure account:
      pulumi up -s southcentralus-base                  once: hub, gallery, vaults, backup storage
      pulumi up -s southcentralus --continue-on-error   the clusters, from inside the hub's network

    Exit status: 0 success; 1 a limit is exceeded or a check failed; 2 the file or the command line is invalid; 130 interrupted;
    143 terminated; 141 the reader of the output ended before all of it was written (| head -1).
    """


group.add_command(alerts)
group.add_command(azure)
group.add_command(binaries)
group.add_command(certificates)
group.add_command(check)
group.add_command(cost)
group.add_command(dashboard)
group.add_command(destroy)
group.add_command(engines)
group.add_command(image_files)
group.add_command(preview)
group.add_command(prices)
group.add_command(refresh)
group.add_command(rehearse)
group.add_command(rotation)
group.add_command(schema)
group.add_command(up)


def main() -> None:
    """Run the command line; report an error of the user in one line per fault, never as a traceback."""
    try:
        try:
            group.main(standalone_mode=False)
        finally:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_REFUSED)
    except (click.Abort, KeyboardInterrupt):
        exit_interrupted()
    except GpufleetError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_status)
