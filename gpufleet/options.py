"""Options that the verbs on an embedded Azure share, and the values that they give."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from gpufleet.directories import OUT, Directory
from gpufleet.interruption import exit_interrupted
from gpufleet.up_output import held_lines
from stacks.load import short_path

if TYPE_CHECKING:
    from rehearsal.azure.scenario import Scenario
    from rehearsal.local_up.update_state import Approvals


@dataclass(frozen=True)
class AzureOptions:
    """Values of the options that every verb on an embedded Azure has; None or empty if an option was not given."""

    state: Path | None
    scenario: str | None
    parallel: int | None
    unprotect: tuple[str, ...]

    def folder(self, region: str) -> Path:
        """Return the state directory of a region's embedded Azure; UsageError if Pulumi's engine uses it."""
        from rehearsal.pulumi_cli.workspace import EngineFolder

        folder = self.state or short_path(OUT / region / "azure")
        if EngineFolder(folder).exists:
            raise click.UsageError(f"{folder} belongs to Pulumi's own engine; add --engine, or give another directory with --state")
        return folder

    def load_scenario(self) -> Scenario:
        """Return the scenario; InvalidFileError."""
        from rehearsal.azure.scenario import NOTHING_WRONG
        from rehearsal.azure.scenario_files import load_scenario

        return load_scenario(self.scenario) if self.scenario else NOTHING_WRONG

    def allowed(self, accept_loss_of: int | None = None) -> Approvals:
        """Return what the user allows the update to do."""
        from rehearsal.local_up.request_scheduler import PARALLEL
        from rehearsal.local_up.update_state import Approvals

        return Approvals(frozenset(self.unprotect), accept_loss_of, self.parallel or PARALLEL)


def azure_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of an embedded Azure to a command, which receives them as `azure: AzureOptions`."""

    @wraps(command)
    def given(*, state: Path | None, scenario: str | None, parallel: int | None, unprotect: tuple[str, ...], **more: Any) -> None:
        command(azure=AzureOptions(state, scenario, parallel, unprotect), **more)

    wrapped: Callable[..., None] = given

    for option in reversed(
        (
            click.option(
                "--state",
                type=Directory(),
                help="Directory of the embedded Azure.  "
                "[default: out/<region>/azure in the project's folder, or out/<region>/engine with Pulumi's own engine]",
            ),
            click.option("--scenario", help="Faults to inject: a name under rehearsal/scenarios, or a path to a file."),
            click.option("--parallel", type=click.IntRange(1, 1_000), help="Concurrent operations, as for Pulumi.  [default: 64]"),
            click.option(
                "--unprotect",
                multiple=True,
                metavar="NAME",
                help="Allow deletion of a protected resource, by its Azure or Pulumi name; `all` for every resource.",
            ),
        )
    ):
        wrapped = option(wrapped)
    return wrapped


def has_files(folder: Path) -> bool:
    """Return whether a directory exists and is not empty; without files, a verb that changes nothing writes nothing there."""
    return folder.is_dir() and any(folder.iterdir())


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print one line per note."""
    for note in notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)


@contextmanager
def report_refusals(console: Console, region: str, folder: Path) -> Iterator[None]:
    """Report why a verb cannot run: exit 1 if an update is refused or the program fails, 2 for an unusable directory.

    After Ctrl-C the status is 130, after SIGTERM 143.
    """
    from rehearsal.local_up.deleted_vaults import ReservedVaultNameError
    from rehearsal.local_up.update_state import UpdateRefusedError
    from rehearsal.program.run import ProgramError

    before = _snapshots(folder)
    try:
        yield
    except UpdateRefusedError as refused:
        console.print(f"refused; nothing was changed\n{refused}", markup=False, soft_wrap=True)
        sys.exit(1)
    except ReservedVaultNameError as refused:
        lines = "\n".join(held_lines(refused.held, region, folder))
        console.print(f"refused; nothing was changed\n{lines}", markup=False, soft_wrap=True)
        sys.exit(1)
    except ProgramError as failed:
        console.print(f"the program of {failed}; nothing was changed", markup=False, soft_wrap=True)
        sys.exit(1)
    except OSError as error:
        click.echo(_write_error(error, folder, has_state=bool(before)), err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        if _snapshots(folder) != before:
            exit_interrupted(f" after the result was saved in {folder}; run the same command again to see whether anything is missing")
        exit_interrupted(f"; nothing was saved, {folder} is unchanged: run the same command again")


def _snapshots(folder: Path) -> list[str]:
    """Return the names of the complete snapshots of a state directory; empty if it does not exist."""
    return sorted(path.name for path in folder.glob("state-*.json"))


def _write_error(error: OSError, folder: Path, *, has_state: bool) -> str:
    """Describe an error of reading or writing a state directory, with its remedy."""
    why = f"{error.filename or folder}: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        state = f"the state in {folder} is unchanged" if has_state else f"{folder} holds no state yet"
        return f"{why}; {state}: free space there, then run the same command again"
    if has_state:
        return f"{why}; the state in {folder} is unchanged: fix this, then run the same command again"
    return f"{why}; give another directory with --state"


CLOCK = "scaled:60"


@dataclass(frozen=True)
class EngineOptions:
    """Values of the options that choose the engine: Pulumi's own or in process, and the clock of the embedded Azure."""

    use_pulumi: bool
    no_fallback: bool
    clock: str


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the engine to a command, which receives them as `engine: EngineOptions`."""

    @wraps(command)
    def given(*, engine: bool, no_fallback: bool, clock: str | None, **more: Any) -> None:
        if not engine and (no_fallback or clock):
            raise click.UsageError(f"{'--no-fallback' if no_fallback else '--clock'} goes with --engine")
        command(engine=EngineOptions(engine, no_fallback, clock or CLOCK), **more)

    wrapped: Callable[..., None] = given
    for option in (clock_option, no_fallback_option, _ENGINE):
        wrapped = option(wrapped)
    return wrapped


_ENGINE = click.option(
    "--engine",
    is_flag=True,
    help="Use Pulumi's own engine, through its CLI, inside a local copy of the hub's network; in process if that is not available. "
    "The first line on standard error names the engine, and why.",
)
no_fallback_option = click.option("--no-fallback", is_flag=True, help="With --engine: exit with status 2 instead of running in process.")
clock_option = click.option("--clock", help=f"With --engine: clock of the embedded Azure, scaled:FACTOR or real.  [default: {CLOCK}]")
