"""Speed of a rotation's journal: reading 60,000 transitions beside parsing the same bytes, and appending steps beside bare writes."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from bench.command import BenchOutput, run_command
from bench.figures import Figure
from bench.results import record_option
from lifecycle.rotation.journal import RunStart, read_journal
from lifecycle.rotation.journal_file import JournalFile
from lifecycle.rotation.journal_records import StepRecord, Target, columns, encode
from lifecycle.rotation.journal_writer import JournalWriter, run_record
from lifecycle.rotation.model import Action, NodeState, RunNode, Step, Transition
from lifecycle.rotation.policy import Policy

NODES = 7_500
APPENDED = 1_000
"""Steps of which appending is measured."""
PATH = (
    (NodeState.CORDONED, "no budget or gang prevents its start"),
    (NodeState.DRAINING, "its jobs received the checkpoint signal"),
    (NodeState.DRAINING, "the deadline of the checkpoint has passed"),
    (NodeState.DRAINED, "its last pod is gone"),
    (NodeState.REPLACING, "Azure accepted the request"),
    (NodeState.JOINING, "its OS disk is new"),
    (NodeState.PREFLIGHT, "its kubelet reports Ready"),
    (NodeState.READY, "preflight passed"),
)
"""Transitions of a node without a fault, with causes of typical length."""
BOUND_MILLISECONDS = 150.0
STARTED = 1_790_000_000.0


class _Held:
    """Lease of the benchmark, which nothing else uses."""

    def check_held(self) -> None:
        """Return: the lease is held."""


def run_start() -> RunStart:
    """Return a run of NODES nodes in scale sets of 100."""
    nodes = tuple(
        RunNode(f"gpu-{number:05d}", f"gpu-{number // 100:03d}", "gpu", "its image is older than the pin") for number in range(NODES)
    )
    policy = Policy(machines=375, per_scale_set=5, scale_sets_at_once=8, deadlines={})
    return RunStart("bench", "bench-0", "bench", STARTED, "bench", {"gpu": Target(image="gpu@2", boot_digest="0" * 64)}, policy, nodes)


def steps(size: int) -> Iterator[tuple[Transition, ...]]:
    """Yield the transitions of each step: size of them, of nodes that are in all states of PATH at the same time."""
    batch: list[Transition] = []
    for tick in range(NODES + 16 * len(PATH)):
        for place, (state, cause) in enumerate(PATH):
            number = tick - 16 * place
            if 0 <= number < NODES:
                at = STARTED + tick
                draining = state is NodeState.DRAINING
                gangs = (f"team-{number % 7}/job-{number // 16}",) if place == 0 else ()
                batch.append(Transition(f"gpu-{number:05d}", state, at, cause, until=at + 900 if draining else None, gangs=gangs))
                if len(batch) == size:
                    yield tuple(batch)
                    batch.clear()
    if batch:
        yield tuple(batch)


def write_journal(path: Path, size: int) -> list[float]:
    """Write the journal of a run's first APPENDED steps; return the seconds of each step's append."""
    writer = JournalWriter.start(JournalFile.create(path), _Held(), run_start())
    seconds = []
    for transitions in itertools.islice(steps(size), APPENDED):
        began = time.perf_counter()
        writer.carry_out(Step(transitions, (), (), None, "", False), transitions[-1].at, _no_action)
        seconds.append(time.perf_counter() - began)
    writer.close()
    return seconds


def _no_action(action: Action) -> None:
    raise ValueError(f"the benchmark has no action, and was to execute {action}")


def bare_appends(path: Path, lines: list[bytes]) -> list[float]:
    """Write and sync the same bytes without the journal; return the seconds of each append."""
    seconds = []
    with path.open("xb", buffering=0) as file:
        for line in lines:
            began = time.perf_counter()
            file.write(line)
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - began)
    return seconds


def milliseconds(measured: Callable[[], object], rounds: int) -> float:
    """Return the median CPU time of a call."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        measured()
        times.append(time.process_time() - began)
    return statistics.median(times) * 1_000


def parse(lines: list[bytes]) -> None:
    """Parse lines, and keep nothing."""
    for line in lines:
        json.loads(line)


def reading_figures(folder: Path, size: int, rounds: int, bound: float | None) -> Iterator[Figure]:
    """Yield the figures of reading a journal with `size` transitions per step."""
    path = folder / f"read-{size}.jsonl"
    index = {node.name: number for number, node in enumerate(run_start().nodes)}
    records = (StepRecord(seq=number, **columns(batch, batch[-1].at, index)) for number, batch in enumerate(steps(size), 1))
    path.write_bytes(encode(run_record(run_start())) + b"".join(encode(record) for record in records))
    store = JournalFile.open(path)
    lines = path.read_bytes().splitlines()
    journal = read_journal(store)
    if len(journal.transitions) != NODES * len(PATH):
        raise ValueError(f"the journal has {len(journal.transitions)} transitions instead of {NODES * len(PATH)}")
    floor = milliseconds(lambda: parse(lines), rounds)
    took = milliseconds(lambda: read_journal(store), rounds)
    store.close()
    how = f"CPU, median of {rounds}; {len(lines):,} records, {path.stat().st_size / 1e6:.1f} MB"
    yield Figure(f"read and validate 60,000 transitions, {size} per step", took, "ms", bound, how)
    yield Figure(f"floor: json.loads of the same lines, {size} per step", floor, "ms", None, "CPU; checks nothing and makes no transitions")


def append_figures(folder: Path, size: int) -> Iterator[Figure]:
    """Yield the figures of appending the steps of a journal with `size` transitions per step."""
    path = folder / f"{size}.jsonl"
    began = time.process_time()
    own = write_journal(path, size)
    cpu = (time.process_time() - began) / len(own)
    bare = bare_appends(folder / "bare", path.read_bytes().splitlines(keepends=True)[1:])
    yield Figure(
        f"append a step of {size} transitions",
        statistics.median(own) * 1_000,
        "ms",
        None,
        f"wall time with fdatasync, median of {len(own):,}",
    )
    yield Figure(
        "floor: write and fdatasync of the same bytes", statistics.median(bare) * 1_000, "ms", None, f"wall time, median of {len(bare):,}"
    )
    yield Figure("CPU of an append", cpu * 1_000, "ms", None, "with the making of the benchmark's transitions")


@click.command()
@click.option("--rounds", default=15, show_default=True, help="Readings of each journal.")
@record_option
def main(rounds: int, record: bool) -> None:
    """Measure the journal of a rotation of 7,500 nodes with 8 transitions each."""
    output = BenchOutput()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output.say(f"appending {APPENDED:,} steps")
        figures = list(append_figures(folder, 10))
        for size, bound in ((10, BOUND_MILLISECONDS), (100, BOUND_MILLISECONDS), (1, None)):
            output.say(f"reading the journal with {size} transitions per step")
            figures += reading_figures(folder, size, rounds, bound)
    if record:
        output.record("journal", "Journal of a rotation", "python -m bench.journal", figures)
    output.conclude(figures)


if __name__ == "__main__":
    run_command(main, OSError, ValueError)
