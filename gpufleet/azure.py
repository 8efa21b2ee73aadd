"""gpufleet azure: serve the embedded Azure of a region over HTTPS, for Azure's official Python clients."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from components.errors import GpufleetError
from gpufleet.directories import Directory
from gpufleet.interruption import exit_interrupted
from gpufleet.output_streams import OutputWriteError
from gpufleet.slow_step import slow_step
from stacks.load import load_plan

if TYPE_CHECKING:
    from components.plan.model import RegionPlan
    from rehearsal.arm.client_environment import ClientSettings
    from rehearsal.arm.listeners import ServerAddresses


@click.command(short_help="Serve the embedded Azure of a region over HTTPS.")
@click.argument("region", required=False, metavar="REGION")
@click.option(
    "--listen",
    default="127.0.0.1:0",
    show_default=True,
    help="Address to listen on; port 0 selects a free port, a fixed port (127.0.0.1:8443) keeps the endpoint after a restart.",
)
@click.option("--region", "former_region", metavar="REGION", hidden=True, help="Former option for the argument REGION.")
@click.option(
    "--state",
    type=Directory(),
    help="Directory of the state, shared with gpufleet up; without it the state is lost at the end.",
)
@click.option("--scenario", help="Name or file of the faults to inject; by default the scenario of the stored state, or none.")
@click.option(
    "--clock", default="real", show_default=True, help="real, scaled:FACTOR (60: one minute per second), or manual (moved by POST only)."
)
@click.option(
    "--metadata-port", type=click.IntRange(0, 65_535), default=0, help="Port of the metadata service; 0, the default, selects a free port."
)
def azure(
    region: str | None,
    former_region: str | None,
    listen: str,
    state: Path | None,
    scenario: str | None,
    clock: str,
    metadata_port: int,
) -> None:
    """Serve the embedded Azure of REGION over HTTPS, for Azure's official Python SDKs and azure-identity.

    Other clients (the Azure CLI, Pulumi's azure-native, Terraform) should work with the same settings, but are not tested.

    \b
    It prints its endpoint, its certificate authority, and the lines for a shell and for Python with which clients connect and
    sign in; then "ready" and the endpoint. SIGINT or SIGTERM end it, with a snapshot if --state is given.
      gpufleet azure dev --state out/dev/azure --clock scaled:60
    Besides Azure Resource Manager it serves, at the same endpoint:
      /metadata/endpoints, /<tenant>/oauth2/v2.0/token     discovery and sign-in
      /keyvault/<vault>                                    each key vault: a SecretClient's vault_url, with verify_challenge_resource=False
      /imds<resource id of a machine>/metadata             each machine's metadata service, which also has a port without TLS
      /admin/clock, /admin/state, /admin/health            clock (POST {"advance": "5m"}), state, health of machines
    Every acknowledged write is stored: after kill -9 the same command resumes with it. A stored Azure continues at this machine's time;
    on a manual clock, at its own.

    Exit status: 0 stopped by a signal; 1 the snapshot could not be written, but the journal is complete; 2 the command line, a file or
    the address is invalid.
    """
    # Azure's SDKs take seconds to import, which would slow down every other verb.
    from rehearsal.arm.listeners import read_address, serve
    from rehearsal.arm.served_azure import open_live_model
    from rehearsal.arm.time_source import read_clock

    plan = load_plan(_region(region, former_region))
    with ExitStack() as ending:
        folder = state if state is not None else Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="gpufleet-azure-")))
        try:
            address, factor = read_address(listen), read_clock(clock)
            with slow_step(f"opening the embedded Azure of {plan.name}"):
                live = ending.enter_context(open_live_model(plan, folder, scenario, factor, keep=state is not None))
            written = asyncio.run(serve(live, folder, address, metadata_port, lambda where: _tell(where, plan, state, clock)))
        except OutputWriteError as error:
            kept = "" if state is None else f", and its state is in {state}"
            raise OutputWriteError(error.reason, f"the server has ended{kept}") from None
        except GpufleetError as error:
            raise click.ClickException(str(error)) from None
        except KeyboardInterrupt:
            exit_interrupted(" before the Azure was served; run the same command again")
        except OSError as error:
            raise click.ClickException(f"{error.filename or listen}: {error.strerror or error}; choose another") from None
    if not written:
        sys.exit(1)
    click.echo("stopped; nothing was kept, as no --state was given" if state is None else f"stopped; snapshot written to {state}")


def _region(region: str | None, former_region: str | None) -> str:
    """Return the region of the argument, or of the former option, which prints a warning; raise UsageError for none or both."""
    if former_region is None:
        if region is None:
            raise click.UsageError("Missing argument 'REGION'.", click.get_current_context())
        return region
    if region is not None:
        raise click.UsageError(f"the region is given twice: {region}, and --region {former_region}; remove --region {former_region}")
    click.echo(f"DeprecationWarning: The option --region is deprecated. Use gpufleet azure {former_region}.", err=True)
    return former_region


def _tell(where: ServerAddresses, plan: RegionPlan, state: Path | None, clock: str) -> None:
    """Print the endpoint and how a client connects."""
    from rehearsal.arm.client_environment import ClientSettings

    door = ClientSettings(where.base, where.authority, str(plan.spec.access.tenant), plan.spec.subscription, where.identity)
    click.echo(f"the embedded Azure of {plan.name}, on {clock} time, kept in {state or 'memory alone'}")
    click.echo(f"  endpoint               {door.base}")
    click.echo(f"  certificate authority  {door.authority}")
    click.echo(f"  metadata service       {where.metadata}/imds<resource id of the machine>")
    click.echo(f"  sign in                tenant {door.tenant}, client {door.identity.client}, secret {door.identity.secret}")
    click.echo("for azure-identity and Azure's Python SDKs, in Python:")
    click.echo(_example(door))
    click.echo("what they read from the environment, in a shell:")
    _exports(door.of_sdks())
    click.echo("what Pulumi's azure-native and Terraform read (tested with the provider of --engine; not with the real ones):")
    _exports(door.of_providers())
    click.echo(f"ready {where.base}")
    sys.stdout.flush()


def _example(door: ClientSettings) -> str:
    """Return five lines of Python that list the resource groups, without indentation, for a Python prompt."""
    base, authority = door.base, str(door.authority.resolve())
    who = f"{door.tenant!r}, {door.identity.client!r}, {door.identity.secret!r}"
    return f"""\
from azure.identity import ClientSecretCredential
from azure.mgmt.resource.resources import ResourceManagementClient
who = ClientSecretCredential({who}, authority={base!r}, disable_instance_discovery=True, connection_verify={authority!r})
how = {{'base_url': {base!r}, 'credential_scopes': [{base + "/.default"!r}], 'connection_verify': {authority!r}}}
print([group.name for group in ResourceManagementClient(who, {door.subscription!r}, **how).resource_groups.list()])"""


def _exports(values: Mapping[str, str]) -> None:
    for key, value in values.items():
        click.echo(f"  export {key}={value}")
