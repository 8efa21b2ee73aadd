"""Benchmark of planning and rehearsing a region."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click
from rich.console import Console

from bench import growth
from bench.child_process import Child, ChildError, measured, run
from bench.command import BenchOutput, Say, run_command
from bench.figures import Figure
from bench.results import record_option

REGION = "southcentralus"
PLAN_SECONDS = 1.0
REHEARSAL_SECONDS = 20.0
REHEARSAL_MB = 600.0
OVERHEAD = 1.1
PARTS = ("plan", "rehearsal", "growth", "overhead")
REPEATS = 2
"""Fresh processes for what takes seconds."""


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--only", type=click.Choice(PARTS), multiple=True, help="Measure this part only; may be given several times.")
@click.option("--rounds", type=click.IntRange(1, 20), default=1, show_default=True, help="Timed rehearsals of each size in growth.")
@click.option("--pairs", type=click.IntRange(1, 50), default=7, show_default=True, help="Pairs of programs in overhead.")
@record_option
def main(only: tuple[str, ...], rounds: int, pairs: int, record: bool) -> None:
    """Measure what planning and rehearsing a region costs, and print each figure beside its bound.

    \b
    plan       read, plan and check southcentralus (22,500 nodes), the first time in a fresh process
    rehearsal  `gpufleet rehearse southcentralus` in a fresh process: wall seconds and peak memory
    growth     rehearsals of 1, 3 and 9 clusters of 75 scale sets: whether the 675th costs what the 75th did
    overhead   gpufleet's program beside a bare one that registers the same resources, with the same inputs and the same
               dependencies, by one call of the SDK each, and that has neither plan nor components nor boot files

    Three to five minutes, all of it on one core. Ratios are taken from CPU seconds, which other
    programs disturb less than wall seconds; on a busy machine give more --rounds and --pairs.

    The command writes only temporary files. Exits 0 if all values are within their bounds, 1 if one is not, 2 if a
    measurement failed, 130 if interrupted.
    """
    output = BenchOutput()
    say = output.say
    work: dict[str, Callable[[], list[Figure]]] = {
        "plan": lambda: _plan(say),
        "rehearsal": lambda: _rehearsal(say),
        "growth": lambda: _growth(rounds, say, output.console),
        "overhead": lambda: _overhead(pairs, say),
    }
    figures = [figure for part in PARTS if part in (only or PARTS) for figure in work[part]()]
    if record:
        output.record("rehearse", "Planning and rehearsing a region", "python -m bench.rehearse", figures)
    output.conclude(figures)


def _plan(say: Say) -> list[Figure]:
    """Measure planning without Python's start and imports, most of which are Pulumi's, which a plan does not need."""
    say(f"plan: {REGION}, {REPEATS} fresh processes")
    seconds = [measured("plan", REGION)[1]["wall"] for _ in range(REPEATS)]
    return [Figure(f"plan of {REGION}, wall", max(seconds), "s", PLAN_SECONDS, f"slowest of {REPEATS} fresh processes, without imports")]


def _rehearsal(say: Say) -> list[Figure]:
    """Measure the command as a user runs it."""
    children = []
    with tempfile.TemporaryDirectory(prefix="gpufleet-bench-") as folder:
        for number in range(REPEATS):
            say(f"rehearsal: gpufleet rehearse {REGION}, {number + 1} of {REPEATS}")
            children.append(run([str(Path(sys.executable).with_name("gpufleet")), "rehearse", REGION, "--out", folder]))
            say(f"  {_took(children[-1])}")
    how = f"of {REPEATS} fresh processes, all included"
    return [
        Figure(f"rehearsal of {REGION}, wall", max(child.wall for child in children), "s", REHEARSAL_SECONDS, f"slowest {how}"),
        Figure("the same, CPU", max(child.cpu for child in children), "s", None, f"most {how}"),
        Figure("the same, peak memory", max(child.peak_mb for child in children), "MB", REHEARSAL_MB, f"most {how}"),
    ]


def _took(child: Child) -> str:
    return f"wall {child.wall:.1f} s, CPU {child.cpu:.1f} s, {child.peak_mb:,.0f} MB"


def _growth(rounds: int, say: Say, console: Console) -> list[Figure]:
    runs = growth.measure(rounds, say)
    console.print(growth.phases_table(runs))
    return growth.figures(runs)


def _overhead(pairs: int, say: Say) -> list[Figure]:
    """Return the cost of gpufleet's program over the bare ones.

    The bound applies to the program's own process under `pulumi up`. Dynamic providers create keys and certificates in another
    process, and the bare program creates none.
    """
    say(f"overhead: {REGION}, gpufleet and bare, {pairs} pairs after one that is checked and not counted")
    _, report = measured("overhead", REGION, str(pairs))
    samples = report["pairs"]
    program = [one["ours"] - one["keys"] for one in samples]
    ratios = [ours / one["bare"] for ours, one in zip(program, samples, strict=True)]
    spread = f"median of {pairs} pairs, {min(ratios):.2f} to {max(ratios):.2f}"
    whole = statistics.median(one["ours"] / one["bare"] for one in samples)
    independent = statistics.median(ours / one["independent"] for ours, one in zip(program, samples, strict=True))
    beyond = statistics.median(ours - one["bare"] for ours, one in zip(program, samples, strict=True))
    return [
        Figure("gpufleet over bare registration", statistics.median(ratios), "", OVERHEAD, f"CPU, {spread}"),
        Figure("the same, keys and certificates made", whole, "", None, "which the bare program does not do"),
        Figure("the same, over plain values without dependencies", independent, "", None, "which no cloud would accept"),
        Figure("gpufleet beyond bare", beyond * 1000, "ms", None, "plan, components, boot files, objects"),
    ]


if __name__ == "__main__":
    run_command(main, ChildError)
