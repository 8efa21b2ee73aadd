"""The options that every verb on an embedded Azure has, and what it makes of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

if TYPE_CHECKING:
    from rehearsal.upward.update import Allowed

F = TypeVar("F", bound=Callable[..., Any])
OUT = Path("out")


def azure_options(command: F) -> F:
    """Which Azure: its directory, what goes wrong in it, and how many operations are open at once."""
    for option in reversed(
        (
            click.option(
                "--state",
                type=click.Path(file_okay=False, path_type=Path),
                help="Directory of the embedded Azure.  [default: out/<region>/azure]",
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
        command = option(command)
    return command


def allowed(unprotect: tuple[str, ...], parallel: int | None, accept_loss_of: int | None = None) -> Allowed:
    """What a person has allowed an update."""
    from rehearsal.upward.caller import PARALLEL
    from rehearsal.upward.update import Allowed

    return Allowed(frozenset(unprotect), accept_loss_of, parallel or PARALLEL)


def state_directory(state: Path | None, region: str) -> Path:
    """Where a region's embedded Azure is kept."""
    return state or OUT / region / "azure"


@contextmanager
def refusals_told(console: Console) -> Iterator[None]:
    """What keeps a verb from doing its work, in sentences: exit 1 where nobody allowed it or the program fails, 2 for the directory."""
    from rehearsal.run import ProgramFailed
    from rehearsal.state_directory import StateBroken, StateInUse
    from rehearsal.upward.update import UpRefused

    try:
        yield
    except UpRefused as refused:
        console.print(f"refused; nothing was changed\n{refused}", markup=False, soft_wrap=True)
        sys.exit(1)
    except ProgramFailed as failed:
        console.print(f"the program of {failed}; nothing was changed", markup=False, soft_wrap=True)
        sys.exit(1)
    except (StateInUse, StateBroken) as error:
        click.echo(str(error), err=True)
        sys.exit(2)
    except OSError as error:
        click.echo(f"{error.filename or 'the state directory'}: {error.strerror}; give another directory with --state", err=True)
        sys.exit(2)
