"""The command line: one group, one file per verb, and the one place where errors become sentences."""

from __future__ import annotations

import os
import sys
from typing import TextIO

import click

from components.plan.limits import LimitsExceededError
from gpufleet.alerts import alerts
from gpufleet.azure import azure
from gpufleet.binaries import engines
from gpufleet.certificates import certificates
from gpufleet.check import check
from gpufleet.dashboard import dashboard
from gpufleet.destroy import destroy
from gpufleet.image_files import image_files
from gpufleet.preview import preview
from gpufleet.refresh import refresh
from gpufleet.rehearse import rehearse
from gpufleet.schema import schema
from gpufleet.up import up
from stacks.file_problems import InvalidFileError

EXIT_BROKEN = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="gpufleet", prog_name="gpufleet")
def group() -> None:
    """Plan, check and rehearse GPU training fleets on Azure.

    A REGION is a name under stacks/regions (southcentralus), or a path to a region file (./drafts/westeurope.yaml).

    \b
    Start here, without a cloud account:
      gpufleet check southcentralus       which limits the region comes near or breaks
      gpufleet rehearse southcentralus    bring the whole region up in an embedded Azure and draw what it made
      gpufleet up dev                     the same, and keep that Azure; then change the file: preview, up, destroy
    With the Pulumi CLI:
      gpufleet up dev --engine            the same by Pulumi's own engine, with real API servers; also preview, refresh, destroy
    With the Pulumi CLI and an account:
      pulumi up -s southcentralus-base                  once: hub, gallery, vaults, backup storage
      pulumi up -s southcentralus --continue-on-error   the clusters, from inside the hub's network

    Exit status: 0 all is well; 1 a limit is broken or a check failed; 2 the file or the command line is refused; 130 interrupted.
    """


group.add_command(alerts)
group.add_command(azure)
group.add_command(certificates)
group.add_command(check)
group.add_command(dashboard)
group.add_command(destroy)
group.add_command(engines)
group.add_command(image_files)
group.add_command(preview)
group.add_command(refresh)
group.add_command(rehearse)
group.add_command(schema)
group.add_command(up)


def main() -> None:
    """Run the command line; a user's mistake is told in one line per fault, never as a traceback."""
    try:
        try:
            group.main(standalone_mode=False)
        finally:
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_REFUSED)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except InvalidFileError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_REFUSED)
    except LimitsExceededError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_BROKEN)
    except BrokenPipeError:
        _lead_nowhere(sys.stdout)
        sys.exit(0)
    except OSError as error:
        _lead_nowhere(sys.stdout)
        click.echo(f"output cannot be written: {error.strerror or error}", err=True)
        sys.exit(EXIT_REFUSED)


def _lead_nowhere(stream: TextIO) -> None:
    """The reader (head, less) has gone or the disk is full: Python's own flush at exit must not complain of it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
