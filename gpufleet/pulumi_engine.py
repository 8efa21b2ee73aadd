"""Runs a verb on Pulumi's own engine: shows how far it has come, tells how it ended, and turns what stops it into sentences."""

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

from gpufleet.azure_options import OUT, Asked
from gpufleet.engine_options import EngineAsked

if TYPE_CHECKING:
    from components.plan.model import RegionPlan
    from rehearsal.pulumi_cli.engine_choice import PulumiPrograms
    from rehearsal.pulumi_cli.events import OperationTimeline
    from rehearsal.pulumi_cli.region_commands import RegionResult
    from rehearsal.pulumi_cli.stack_operations import ProgressReporter, RegionEngine

EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 1, 2, 130
LIVE_APART, LINES_APART = 0.2, 10.0
"""Seconds between two changes of the live line, and between two lines where there is no terminal."""


@dataclass(frozen=True)
class Work:
    """What is to be done: for the region of a plan, given by name or path, in a folder, with these programs."""

    plan: RegionPlan
    region: str
    folder: Path
    programs: PulumiPrograms
    scenario: str | None
    factor: float


def work_for_engine(console: Console, plan: RegionPlan, region: str, asked: Asked, engine: EngineAsked) -> Work | None:
    """Say which engine does the work, and why; None where it is the one in process, and exits where that will not do."""
    if not engine.wanted:
        return None
    from rehearsal.local_cluster.hub.hub_network import unavailable_reason
    from rehearsal.pulumi_cli.engine_choice import choose_engine

    factor = _factor(engine.clock)
    choice = choose_engine(unavailable_reason)
    console.print(choice.line, markup=False, soft_wrap=True)
    if choice.programs is not None:
        return Work(plan, region, asked.state or OUT / plan.name / "engine", choice.programs, asked.scenario, factor)
    if engine.no_fallback:
        click.echo("refused, because nothing but Pulumi's own engine will do; nothing was changed", err=True)
        sys.exit(EXIT_REFUSED)
    return None


def run_on_engine(console: Console, work: Work, verb: Callable[[RegionEngine], RegionResult], *, everything: bool = False) -> NoReturn:
    """Do a verb's work, print what it came to, and exit as it ended: 0 complete, 1 failed or refused, 2 not begun, 130 interrupted."""
    from rehearsal.binaries.missing_binaries import BinariesMissingError
    from rehearsal.local_cluster.hub.hub_network import HubNetworkError
    from rehearsal.local_up.update import NothingProtectedError, UpdateRefusedError
    from rehearsal.pulumi_cli.messages import conclusion
    from rehearsal.pulumi_cli.stack_operations import EngineError
    from rehearsal.pulumi_cli.workspace import WorkspaceError

    began = time.monotonic()
    try:
        outcome = _done(console, work, verb)
    except UpdateRefusedError as refused:
        console.print(f"refused; nothing was changed\n{refused}", markup=False, soft_wrap=True)
        sys.exit(EXIT_FAILED)
    except EngineError as failed:
        console.print(f"{failed}", markup=False, soft_wrap=True)
        sys.exit(EXIT_FAILED)
    except (WorkspaceError, NothingProtectedError, HubNetworkError, BinariesMissingError) as error:
        click.echo(str(error), err=True)
        sys.exit(EXIT_REFUSED)
    except OSError as error:
        click.echo(f"{error.filename or work.folder}: {error.strerror or error}; mend that, then run the same command again", err=True)
        sys.exit(EXIT_REFUSED)
    except KeyboardInterrupt:
        click.echo("interrupted before Pulumi began; nothing was changed", err=True)
        sys.exit(EXIT_INTERRUPTED)
    for line in conclusion(outcome, _command(), everything=everything):
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"took {time.monotonic() - began:.0f} s; kept in {work.folder}", markup=False, soft_wrap=True)
    sys.exit(EXIT_INTERRUPTED if outcome.interrupted else 0 if outcome.complete else EXIT_FAILED)


def _done(console: Console, work: Work, verb: Callable[[RegionEngine], RegionResult]) -> RegionResult:
    from rehearsal.local_cluster.hub.hub_network import hub_namespace
    from rehearsal.pulumi_cli.stack_operations import region_engine
    from rehearsal.pulumi_cli.workspace import EngineFolder

    folder = EngineFolder(work.folder)
    with (
        folder.locked() as lock,
        _shown(console) as reporter,
        hub_namespace(work.plan, folder.hub_data, scenario=work.scenario, factor=work.factor, say=reporter.report) as inside,
        region_engine(work.plan, work.region, folder, work.programs, inside, lock, reporter) as at_work,
    ):
        return verb(at_work)


def _factor(clock: str) -> float:
    """Seconds of Azure's time per second here; UsageError where the clock is none that Pulumi's own engine can wait by."""
    from rehearsal.arm.time_source import InvalidClockError, read_clock

    try:
        factor = read_clock(clock)
    except InvalidClockError as error:
        raise click.UsageError(str(error)) from None
    if not factor:
        raise click.UsageError("on a clock that is moved by hand no operation of Pulumi's engine would end; give scaled:FACTOR, or real")
    return factor


def _command() -> str:
    """What the person typed."""
    return shlex.join(["gpufleet", *sys.argv[1:]])


@contextmanager
def _shown(console: Console) -> Iterator[ProgressReporter]:
    """Where progress goes: one live line on a terminal, elsewhere a line at a stack's start and then from time to time."""
    from rehearsal.pulumi_cli.messages import progress
    from rehearsal.pulumi_cli.stack_operations import ProgressReporter

    lock, last = threading.Lock(), {"": 0.0}

    def say(sentence: str) -> None:
        console.print(sentence, markup=False, soft_wrap=True)

    def due(timeline: OperationTimeline, apart: float) -> bool:
        """Whether it is time to tell; a timeline's first moment always is. Events come from a thread of the CLI's."""
        with lock:
            now, key = time.monotonic(), f"{timeline.verb} {timeline.stack}"
            if key in last and now - last[key] < apart:
                return False
            last[key] = now
            return True

    if not console.is_terminal:
        yield ProgressReporter(say, lambda timeline: say(progress(timeline)) if due(timeline, LINES_APART) else None)
        return
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True) as bars:
        task = bars.add_task("making a place inside the hub's network", total=None)
        yield ProgressReporter(
            say, lambda timeline: bars.update(task, description=progress(timeline)) if due(timeline, LIVE_APART) else None
        )
