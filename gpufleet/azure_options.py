"""The options that every verb on an embedded Azure has, and what it makes of them."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from gpufleet.deleted_vaults import held_lines

if TYPE_CHECKING:
    from rehearsal.azure.scenario import Scenario
    from rehearsal.local_up.update import Allowed

OUT = Path("out")


@dataclass(frozen=True)
class Asked:
    """What a person says with the options that every verb has; None and empty where one is left out."""

    state: Path | None
    scenario: str | None
    parallel: int | None
    unprotect: tuple[str, ...]

    def folder(self, region: str) -> Path:
        """Where a region's embedded Azure is kept; UsageError where Pulumi's own engine works in it."""
        from rehearsal.pulumi_cli.workspace import EngineFolder

        folder = self.state or OUT / region / "azure"
        if EngineFolder(folder).exists:
            raise click.UsageError(f"{folder} is where Pulumi's own engine works; add --engine, or give another directory with --state")
        return folder

    def conditions(self) -> Scenario:
        """What goes wrong meanwhile; FileRefused."""
        from rehearsal.azure.scenario import NOTHING_WRONG
        from rehearsal.azure.scenarios import load_scenario

        return load_scenario(self.scenario) if self.scenario else NOTHING_WRONG

    def allowed(self, accept_loss_of: int | None = None) -> Allowed:
        """What a person has allowed an update."""
        from rehearsal.local_up.request_scheduler import PARALLEL
        from rehearsal.local_up.update import Allowed

        return Allowed(frozenset(self.unprotect), accept_loss_of, self.parallel or PARALLEL)


def azure_options(command: Callable[..., None]) -> Callable[..., None]:
    """Which Azure: its directory, what goes wrong in it, and how many operations are open at once; the command is given Asked."""

    @wraps(command)
    def given(*, state: Path | None, scenario: str | None, parallel: int | None, unprotect: tuple[str, ...], **more: Any) -> None:
        command(asked=Asked(state, scenario, parallel, unprotect), **more)

    wrapped: Callable[..., None] = given

    for option in reversed(
        (
            click.option(
                "--state",
                type=click.Path(file_okay=False, path_type=Path),
                help="Directory of the embedded Azure.  [default: out/<region>/azure, or out/<region>/engine with Pulumi's own engine]",
            ),
            click.option("--scenario", help="What goes wrong meanwhile: a name under rehearsal/scenarios, or a path to a file."),
            click.option("--parallel", type=click.IntRange(1, 1_000), help="Operations open at once, as Pulumi's option.  [default: 64]"),
            click.option(
                "--unprotect",
                multiple=True,
                metavar="NAME",
                help="Let a protected resource go, by Azure's or Pulumi's name; all for every one.",
            ),
        )
    ):
        wrapped = option(wrapped)
    return wrapped


def wide_console() -> Console:
    """A console of the terminal's width, and elsewhere wide enough for a log."""
    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


@contextmanager
def refusals_told(console: Console, region: str, folder: Path) -> Iterator[None]:
    """What keeps a verb from doing its work, in sentences: exit 1 where nobody allowed it or the program fails, 2 for the directory
    and the command line, 130 for an interrupt.
    """
    from rehearsal.azure.region_cloud import OtherRegionError
    from rehearsal.azure.state_directory import StateCorruptError, StateInUseError
    from rehearsal.local_up.deleted_vaults import VaultNamesHeldError
    from rehearsal.local_up.update import NothingProtectedError, UpdateRefusedError
    from rehearsal.program.run import ProgramError

    before = _snapshots(folder)
    try:
        yield
    except UpdateRefusedError as refused:
        console.print(f"refused; nothing was changed\n{refused}", markup=False, soft_wrap=True)
        sys.exit(1)
    except VaultNamesHeldError as refused:
        told = "\n".join(held_lines(refused.held, region, folder))
        console.print(f"refused; nothing was changed\n{told}", markup=False, soft_wrap=True)
        sys.exit(1)
    except ProgramError as failed:
        console.print(f"the program of {failed}; nothing was changed", markup=False, soft_wrap=True)
        sys.exit(1)
    except (StateInUseError, StateCorruptError, OtherRegionError, NothingProtectedError) as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(_unwritten(error, folder, held=bool(before)), err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        if _snapshots(folder) != before:
            click.echo(f"interrupted when all was done and kept in {folder}", err=True)
        else:
            click.echo(f"interrupted; nothing of this run is kept, {folder} is as it was", err=True)
        sys.exit(130)


def _snapshots(folder: Path) -> list[str]:
    """Names of the finished snapshots of a state directory, none where there is no directory."""
    return sorted(path.name for path in folder.glob("state-*.json"))


def _unwritten(error: OSError, folder: Path, *, held: bool) -> str:
    """What a person can do where a directory, which may hold a state, cannot be read or written."""
    why = f"{error.filename or folder}: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        state = f"the state in {folder} is unchanged" if held else f"{folder} holds no state yet"
        return f"{why}; {state}: free space there, then run the same command again"
    if held:
        return f"{why}; the state in {folder} is unchanged: mend that, then run the same command again"
    return f"{why}; give another directory with --state"
