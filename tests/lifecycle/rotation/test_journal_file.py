"""A journal file has one writer, keeps what was confirmed whenever its writer is killed, and does not hide faults of the disk."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from journal_samples import STARTED, OwnLease, run_start, step, walk

from lifecycle.rotation.journal import read_journal
from lifecycle.rotation.journal_errors import (
    JournalExistsError,
    JournalHeldError,
    JournalLeaseLostError,
    JournalMissingError,
    JournalWriteError,
)
from lifecycle.rotation.journal_file import JournalFile
from lifecycle.rotation.journal_writer import JournalWriter
from lifecycle.rotation.model import Action, ActionKind

KILLS = 30
ROOT = Path(__file__).parents[3]
ACTIONS = (Action(ActionKind.CORDON, ("gpu-0000",), "must not start"),)


def new_run(path: Path) -> None:
    JournalWriter.start(JournalFile.create(path), OwnLease(), run_start()).close()


def test_a_writer_killed_at_random_points_loses_no_confirmed_step_and_the_next_one_continues(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    new_run(path)
    samples = Path(__file__).with_name("journal_samples.py")
    generator = random.Random(7)  # noqa: S311 (it chooses moments)
    confirmed = 0
    for _ in range(KILLS):
        with subprocess.Popen(
            (sys.executable, samples, path), stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            time.sleep(generator.uniform(0, 0.1))
            writer.send_signal(signal.SIGKILL)
            numbers = [int(line) for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        store = JournalFile.open(path)
        journal = read_journal(store)
        store.close()
        assert numbers == list(range(confirmed, confirmed + len(numbers))), "the writer continued after the last record"
        # At most one record may be durable whose confirmation was not reported.
        assert 0 <= len(journal.transitions) - (confirmed + len(numbers)) <= 1
        assert journal.transitions == [walk(number) for number in range(len(journal.transitions))]
        confirmed = len(journal.transitions)
    assert confirmed > KILLS


def test_a_second_process_cannot_write_and_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    new_run(path)
    program = (
        "import sys, time, pathlib; from lifecycle.rotation.journal_file import JournalFile; "
        "held = JournalFile.open(pathlib.Path(sys.argv[1])); print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen((sys.executable, "-c", program, path), stdout=subprocess.PIPE, text=True, cwd=ROOT) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(JournalHeldError, match="another process writes this journal"):
            JournalFile.open(path)
        holder.kill()
    JournalFile.open(path).close()


def test_a_program_that_the_writer_starts_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    store = JournalFile.create(path)
    with subprocess.Popen(("sleep", "600")) as child:
        store.close()
        JournalFile.open(path).close()
        child.kill()


def test_a_journal_is_never_overwritten_and_never_created_by_opening(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "run.jsonl"
    with pytest.raises(JournalMissingError, match="start a new run"):
        JournalFile.open(path)
    new_run(path)
    before = path.read_bytes()
    with pytest.raises(JournalExistsError, match="never overwritten"):
        JournalFile.create(path)
    assert path.read_bytes() == before


def test_a_journal_that_another_program_removed_replaced_or_changed_is_lost_before_the_next_action(tmp_path: Path) -> None:
    for number, change in enumerate(("removed", "replaced", "changed")):
        path = tmp_path / f"{number}.jsonl"
        writer = JournalWriter.start(JournalFile.create(path), OwnLease(), run_start())
        data = path.read_bytes()
        if change == "changed":
            path.write_bytes(data + b"\n")
        else:
            path.unlink()
        if change == "replaced":
            path.write_bytes(data)
        with pytest.raises(JournalLeaseLostError, match="it stops before its next action"):
            writer.carry_out(step(actions=ACTIONS), STARTED, _never)
        writer.close()


def _never(action: Action) -> None:
    raise AssertionError(action)


def test_a_full_disk_stops_the_run_before_the_action_and_the_next_process_continues(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    writer = JournalWriter.start(JournalFile.create(path), OwnLease(), run_start())
    writer.carry_out(step(walk(0)), STARTED, _never)
    whole = path.read_bytes()
    # A file size limit makes write() accept the first bytes of a record and refuse the rest, as a full disk does.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 40, hard))
        with pytest.raises(JournalWriteError, match="its actions were not started"):
            writer.carry_out(step(walk(1), actions=ACTIONS), STARTED, _never)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(path.read_bytes()) == len(whole) + 40, "the record is incomplete on the disk"
    with pytest.raises(JournalWriteError, match="new process"):
        writer.stop(STARTED, "ada", "later")
    writer.close()
    continued = JournalWriter.proceed(JournalFile.open(path), OwnLease(), "dev-0")
    assert continued.journal.dropped == 40
    continued.carry_out(step(walk(1)), STARTED, _never)
    continued.close()
    assert path.read_bytes().startswith(whole)
    assert read_journal(JournalFile.open(path)).transitions == [walk(0), walk(1)]
