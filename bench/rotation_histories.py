"""Benchmark of the decision core's histories: run many of them in an adversarial world, and report broken rules.

Command: python -m bench.rotation_histories
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import click
from rich.table import Table

from bench.command import BenchOutput, run_command
from bench.figures import Figure
from lifecycle.rotation.model import NodeState
from tests.support.rotation_world.history import run_history
from tests.support.rotation_world.rules import Violation
from tests.support.rotation_world.scenario import Scenario

HISTORIES = 100_000
BATCH = 500
"""Histories of one piece of work of a process."""
SHOWN = 10
"""Broken rules that are printed."""


def _run(first: int) -> tuple[Counter[str], list[str], float]:
    """Run a batch of histories; return counts, broken rules and CPU seconds."""
    counts, broken, began = Counter[str](), [], time.process_time()
    for number in range(first, first + BATCH):
        try:
            outcome = run_history(Scenario.drawn(number))
        except Violation as error:
            broken.append(f"Scenario.drawn({number}): {error}")
            continue
        counts.update(histories=1, steps=outcome.steps, transitions=outcome.transitions, starts=outcome.starts, crashes=outcome.crashes)
        counts.update({state.value: number for state, number in outcome.ended.items()})
    return counts, broken, time.process_time() - began


def _batches(histories: int, processes: int) -> Iterator[tuple[Counter[str], list[str], float]]:
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(_run, range(0, histories, BATCH))


@click.command()
@click.option("--histories", default=HISTORIES, show_default=True, help=f"number of histories, in batches of {BATCH}")
@click.option("--processes", default=os.cpu_count() or 1, show_default=True, help="number of processes")
def main(histories: int, processes: int) -> None:
    """Run histories of the decision core and count broken rules."""
    output = BenchOutput()
    counts, broken, seconds = Counter[str](), [], 0.0
    batches = _batches(histories, processes)
    while part := list(islice(batches, 20)):
        for found, errors, took in part:
            counts.update(found)
            broken += errors
            seconds += took
            for error in errors:
                output.say(error)
        output.say(f"{counts['histories']:,} histories, {len(broken)} with a broken rule")
    table = Table(title="broken rules", title_justify="left")
    table.add_column("history and rule")
    for error in broken[:SHOWN]:
        table.add_row(error)
    ran = counts["histories"] + len(broken)
    output.conclude(
        [
            Figure("histories with a broken rule", len(broken), "", 0, f"of {ran:,} histories"),
            Figure("CPU of a history", seconds / ran * 1_000, "ms", None, "world, decision core and rules"),
            *(Figure(name, counts[name], "", None, "sum") for name in ("steps", "transitions", "starts", "crashes")),
            *(Figure(f"nodes {state}", counts[state], "", None, "sum") for state in (NodeState.READY, NodeState.REMOVED)),
            *(Figure(f"nodes {state}", counts[state], "", None, "sum") for state in (NodeState.FAILED, NodeState.BLOCKED)),
        ],
        *([table] if broken else []),
    )


if __name__ == "__main__":
    run_command(main)
