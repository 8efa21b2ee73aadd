"""Run a verb with Pulumi's own engine: show its progress, print its result, and report errors."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gpufleet.consoles import is_live, progress_console
from gpufleet.directories import OUT
from gpufleet.interruption import exit_interrupted, interrupted_status
from gpufleet.options import AzureOptions, EngineOptions
from gpufleet.output_streams import saved_before_output, saved_state
from stacks.load import short_path

if TYPE_CHECKING:
    from components.plan.model import RegionPlan
    from rehearsal.pulumi_cli.engine_choice import PulumiPrograms
    from rehearsal.pulumi_cli.events import OperationTimeline
    from rehearsal.pulumi_cli.region_commands import RegionResult
    from rehearsal.pulumi_cli.stack_operations import ProgressReporter, RegionEngine

EXIT_FAILED, EXIT_REFUSED = 1, 2
LIVE_APART, LINES_APART = 0.2, 10.0
"""Seconds between two updates of the live line, and between two lines without a terminal."""


@dataclass(frozen=True)
class Work:
    """Arguments of a verb; `region` is the name or path that the user gave, `factor` the seconds of model time per second."""

    plan: RegionPlan
    region: str
    folder: Path
    programs: PulumiPrograms
    scenario: str | None
    factor: float


def work_for_engine(plan: RegionPlan, region: str, azure: AzureOptions, engine: EngineOptions) -> Work | None:
    """Print on standard error which engine is used, and why; None for the engine in process.

    Exits with --no-fallback if Pulumi's is not available.
    """
    if not engine.use_pulumi:
        return None
    from rehearsal.local_cluster.hub.hub_network import unavailable_reason
    from rehearsal.local_up.assumed_captures import with_assumed_captures
    from rehearsal.pulumi_cli.engine_choice import choose_engine

    factor = _factor(engine.clock)
    choice = choose_engine(unavailable_reason)
    progress_console().print(choice.line, markup=False, soft_wrap=True)
    if choice.programs is not None:
        folder = azure.state or short_path(OUT / plan.name / "engine")
        return Work(with_assumed_captures(plan), region, folder, choice.programs, azure.scenario, factor)
    if engine.no_fallback:
        click.echo("refused: --no-fallback requires Pulumi's own engine; nothing was changed", err=True)
        sys.exit(EXIT_REFUSED)
    return None


def run_on_engine(console: Console, work: Work, verb: Callable[[RegionEngine], RegionResult], *, everything: bool = False) -> NoReturn:
    """Run a verb, print its result, and exit: 0 complete, 1 failed or refused, 2 not started, 130 interrupted, 143 terminated."""
    from rehearsal.local_up.update_state import UpdateRefusedError
    from rehearsal.pulumi_cli.messages import conclusion
    from rehearsal.pulumi_cli.stack_operations import EngineError

    began = time.monotonic()
    try:
        outcome = _done(work, verb)
    except UpdateRefusedError as refused:
        console.print(f"refused; nothing was changed\n{refused}", markup=False, soft_wrap=True)
        sys.exit(EXIT_FAILED)
    except EngineError as failed:
        console.print(f"{failed}", markup=False, soft_wrap=True)
        sys.exit(EXIT_FAILED)
    except OSError as error:
        click.echo(f"{error.filename or work.folder}: {error.strerror or error}; fix this, then run the same command again", err=True)
        sys.exit(EXIT_REFUSED)
    except KeyboardInterrupt:
        exit_interrupted(" before Pulumi started; nothing was changed: run the same command again")
    with saved_before_output(saved_state(outcome.verb, work.folder, complete=outcome.complete)):
        for line in conclusion(outcome, _command(), everything=everything):
            console.print(line, markup=False, soft_wrap=True)
        console.print(f"took {time.monotonic() - began:.0f} s; kept in {work.folder}", markup=False, soft_wrap=True)
    if outcome.interrupted:
        sys.exit(interrupted_status())
    sys.exit(0 if outcome.complete else EXIT_FAILED)


def _done(work: Work, verb: Callable[[RegionEngine], RegionResult]) -> RegionResult:
    from rehearsal.local_cluster.hub.hub_network import hub_namespace
    from rehearsal.pulumi_cli.stack_operations import region_engine
    from rehearsal.pulumi_cli.workspace import EngineFolder

    folder = EngineFolder(work.folder)
    with (
        folder.locked() as lock,
        _shown() as reporter,
        hub_namespace(work.plan, folder.hub_data, scenario=work.scenario, factor=work.factor, say=reporter.report) as inside,
        region_engine(work.plan, work.region, folder, work.programs, inside, lock, reporter) as at_work,
    ):
        return verb(at_work)


def _factor(clock: str) -> float:
    """Return the seconds of model time per second; UsageError for a clock that does not advance by itself."""
    from rehearsal.arm.time_source import InvalidClockError, read_clock

    try:
        factor = read_clock(clock)
    except InvalidClockError as error:
        raise click.UsageError(str(error)) from None
    if not factor:
        raise click.UsageError("operations of Pulumi's engine never end on a manual clock; give scaled:FACTOR, or real")
    return factor


def _command() -> str:
    """Return the command line of this process."""
    return shlex.join(["gpufleet", *sys.argv[1:]])


@contextmanager
def _shown() -> Iterator[ProgressReporter]:
    """Show progress on standard error: a live line on a terminal, elsewhere a line at the start of each stack and every ten seconds."""
    from rehearsal.pulumi_cli.messages import progress
    from rehearsal.pulumi_cli.stack_operations import ProgressReporter

    console = progress_console()
    lock, last = threading.Lock(), {"": 0.0}

    def say(sentence: str) -> None:
        console.print(sentence, markup=False, soft_wrap=True)

    def due(timeline: OperationTimeline, apart: float) -> bool:
        """Return whether to print progress now; always for the first event. Events arrive on a thread of the CLI."""
        with lock:
            now, key = time.monotonic(), f"{timeline.verb} {timeline.stack}"
            if key in last and now - last[key] < apart:
                return False
            last[key] = now
            return True

    if not is_live(console):
        yield ProgressReporter(say, lambda timeline: say(progress(timeline)) if due(timeline, LINES_APART) else None)
        return
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task("creating the hub's network", total=None)
        yield ProgressReporter(
            say, lambda timeline: bars.update(task, description=progress(timeline)) if due(timeline, LIVE_APART) else None
        )
