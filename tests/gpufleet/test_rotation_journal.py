"""gpufleet rotation journal: a journal's state, read while a run holds it, and damage reported in one line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifecycle.rotation.journal import RunStart
from lifecycle.rotation.journal_file import JournalFile
from lifecycle.rotation.journal_records import Target
from lifecycle.rotation.journal_writer import JournalWriter
from lifecycle.rotation.model import NodeState, RunNode, Step, Transition
from lifecycle.rotation.policy import Policy

GPUFLEET = Path(sys.executable).with_name("gpufleet")
STARTED = 1_790_000_000.0
PATH_TO_READY = (
    NodeState.CORDONED,
    NodeState.DRAINING,
    NodeState.DRAINED,
    NodeState.REPLACING,
    NodeState.JOINING,
    NodeState.PREFLIGHT,
    NodeState.READY,
)


class OwnLease:
    """Lease that this process always holds."""

    def check_held(self) -> None:
        pass


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the real command."""
    return subprocess.run([GPUFLEET, "rotation", "journal", *words], capture_output=True, text=True, timeout=60, check=False)


def started(path: Path) -> tuple[JournalFile, JournalWriter]:
    """Start a run of six nodes of two pools."""
    nodes = tuple(RunNode(f"gpu-{number}", "gpu-0", "gpu", "older image") for number in range(5))
    nodes += (RunNode("cpu-0", "cpu-0", "cpu", "older image"),)
    targets = {"gpu": Target(image="nd-h100@2026.11.0", boot_digest="ab" * 32), "cpu": Target(image="cpu@2026.11.0", boot_digest="cd" * 32)}
    policy = Policy(machines=2, per_scale_set=2, scale_sets_at_once=1, deadlines={})
    store = JournalFile.create(path)
    return store, JournalWriter.start(store, OwnLease(), RunStart("r7", "dev", "dev", STARTED, "ada", targets, policy, nodes))


def step(*transitions: Transition, stopped: str = "") -> Step:
    return Step(transitions, (), (), None, stopped, finished=False)


@pytest.fixture
def run_in_progress(tmp_path: Path) -> Iterator[Path]:
    """Return the journal of a run that this process still holds: one node ready, one failed, two blocked, and stopped."""
    path = tmp_path / "run.jsonl"
    store, writer = started(path)
    walk = [Transition("gpu-0", state, STARTED + 60 * place, f"cause {place}") for place, state in enumerate(PATH_TO_READY)]
    failed = [Transition("gpu-1", one.to, one.at, one.cause) for one in walk[:-1]]
    failed.append(Transition("gpu-1", NodeState.FAILED, STARTED + 400, "preflight: nccl below 400 GB/s", attempt=3))
    blocked = [Transition(f"gpu-{number}", NodeState.BLOCKED, STARTED + 500, "cordoned by ada") for number in (2, 3)]
    for transitions in (walk, failed, blocked):
        writer.carry_out(step(*transitions, stopped="1 of 2 nodes failed" if transitions is blocked else ""), STARTED, lambda _: None)
    yield path
    store.close()


def test_the_state_of_a_run_that_another_process_holds_is_printed(run_in_progress: Path) -> None:
    result = run(run_in_progress, "--last", "2")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        "run r7 of cluster dev in dev: stopped",
        "  stopped: 1 of 2 nodes failed; nodes in rotation continue, and no other node starts until an operator continues the run",
        "  started 2026-09-21 14:13 UTC by ada; last transition 2026-09-21 14:21 UTC",
        "  pool gpu: image nd-h100@2026.11.0, boot files abababababab",
        "  pool cpu: image cpu@2026.11.0, boot files cdcdcdcdcdcd",
        "  6 nodes: 2 pending, 1 ready, 1 failed, 2 blocked",
        "    gpu: 1 pending, 1 ready, 1 failed, 2 blocked",
        "    cpu: 1 pending",
        "failed 1: preflight: nccl below 400 GB/s: gpu-1",
        "blocked 2: cordoned by ada: gpu-2, gpu-3",
        "last 2 of 16 transitions:",
        "  09-21 14:21:40  gpu-2  blocked: cordoned by ada",
        "  09-21 14:21:40  gpu-3  blocked: cordoned by ada",
    ]


def test_json_has_every_waiting_node_and_the_last_transitions(run_in_progress: Path) -> None:
    document = json.loads(run(run_in_progress, "--json").stdout)
    assert document["states"] == {"pending": 2, "ready": 1, "failed": 1, "blocked": 2}
    assert [row["nodes"] for row in document["waiting"]] == [["gpu-1"], ["gpu-2", "gpu-3"]]
    assert len(document["last"]) == 10
    assert (document["state"], document["stopped"], document["dropped_bytes"]) == ("stopped", "1 of 2 nodes failed", 0)


def test_an_incomplete_last_record_is_left_out_and_named(run_in_progress: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(run_in_progress.read_bytes()[:-7])
    result = run(cut)
    assert result.returncode == 0
    assert "none of its actions was started" in result.stdout
    assert result.stdout.startswith("run r7 of cluster dev in dev: not finished\n"), "the stop was the incomplete record"


def test_damage_a_missing_file_and_an_empty_one_are_one_line_with_a_remedy(run_in_progress: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl"
    shutil.copy(run_in_progress, damaged)
    damaged.write_bytes(damaged.read_bytes().replace(b"nccl", b"NCCL"))
    (tmp_path / "empty.jsonl").write_bytes(b"")
    for path, expected in (
        (damaged, "record 2 of the journal: its checksum is"),
        (tmp_path / "none.jsonl", "there is no journal: check the name of the run"),
        (tmp_path / "empty.jsonl", "contains no complete record"),
    ):
        result = run(path)
        assert (result.returncode, result.stdout) == (2, "")
        assert len(result.stderr.splitlines()) == 1
        assert expected in result.stderr
