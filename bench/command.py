"""Progress, figures, exit status and signals of benchmark commands."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

import click
from rich.console import Console, RenderableType

from bench import results
from bench.figures import Figure, figures_table

EXIT_MISSED, EXIT_FAILED, EXIT_INTERRUPTED = 1, 2, 130
Say = Callable[[str], None]


class BenchOutput:
    """Output of a benchmark: progress with elapsed seconds on standard error, and the figures at the end."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self.console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)

    def say(self, text: str) -> None:
        """Print a line of progress."""
        print(f"bench {time.monotonic() - self._began:4.0f} s: {text}", file=sys.stderr, flush=True)

    def conclude(self, figures: Sequence[Figure], *more: RenderableType) -> None:
        """Print figures with their bounds, other tables and the machine; exit with status 1 where a bound is missed."""
        for one in (figures_table(figures), *more, self._machine()):
            self.console.print(one)
        if missed := [figure.name for figure in figures if not figure.kept]:
            self.console.print(f"missed: {'; '.join(missed)}", markup=False)
            sys.exit(EXIT_MISSED)

    def record(self, name: str, title: str, command: str, figures: Sequence[Figure], tables: Sequence[results.ResultTable] = ()) -> None:
        """Write the figures as a result file, and print its path."""
        self.say(f"wrote {results.write_now(name, title, command, figures, tables)}")

    def _machine(self) -> str:
        load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
        took = f"took {time.monotonic() - self._began:.0f} s on {os.cpu_count()} cores, Python {sys.version.split()[0]}"
        return f"{took}; load at the end {load}"


def run_command(command: click.Command, *failures: type[Exception]) -> None:
    """Run a benchmark as a command; failures are errors that prevent a measurement, each printed as one sentence."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        command(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(EXIT_FAILED)
    except failures as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(EXIT_FAILED)
    except (click.Abort, KeyboardInterrupt):
        print("bench: interrupted; what it had started has ended, and its temporary files are gone", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


def _stop(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
