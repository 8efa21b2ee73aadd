"""However a run's process ends, nothing of it is left; and nobody else's process is touched."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from processes import ended, ignores
from waiting import DEADLINE_SECONDS, until

from rehearsal.local_cluster import reaper
from rehearsal.local_cluster.run_directory import RunDirectory

REPOSITORY = Path(__file__).parents[3]
RUN = """
import json, signal, sys, time
# As from a terminal, also where the tests were started with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
from pathlib import Path
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import ServiceDefinition, Supervisor

with RunDirectory(Path(sys.argv[1]) if len(sys.argv) > 1 else None) as run:
    supervisor = Supervisor(run)
    environment = {"PATH": "/usr/bin:/bin"}
    for name, script, pause in (
        ("steady", "trap '' TERM; sleep 1000 & wait", None),
        ("restarting", "exit 1", 0.01),
        ("apart", "setsid sleep 1001 & exec sleep 1002", None),
    ):
        paths = (run.path / f"{name}.log", run.path / name)
        service = supervisor.add(ServiceDefinition(name, ("sh", "-c", script), environment, *paths, restart_seconds=pause))
        service.start()
        if pause is None:
            service.wait_ready(30)
    print(json.dumps({"path": str(run.path), "marker": run.marker, "reaper": run.reaper_pid}), flush=True)
    # A signal that comes when Python has just decided to sleep is seen only once it has slept.
    while True:
        time.sleep(0.1)
"""


@dataclass
class Running:
    """A process that holds a run with services, one of which restarts all the time."""

    process: subprocess.Popen[str]
    path: Path
    marker: str
    reaper: int

    def alive(self) -> int:
        found, _ = reaper.marked_processes(self.marker)
        for descriptor in found:
            os.close(descriptor)
        return len(found)


@pytest.fixture
def started() -> Iterator[Callable[..., Running]]:
    processes: list[subprocess.Popen[str]] = []
    yield lambda base=None: start(processes, base)
    for process in processes:
        process.kill()
        process.wait()


def start(processes: list[subprocess.Popen[str]], base: Path | None) -> Running:
    argv = [sys.executable, "-c", RUN, *([str(base)] if base else [])]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=REPOSITORY)
    processes.append(process)
    assert process.stdout is not None
    with process.stdout as said:
        line = json.loads(said.readline())
    running = Running(process, Path(line["path"]), line["marker"], line["reaper"])
    until(lambda: running.alive() >= 3, "its services run")
    return running


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGABRT])
def test_a_run_whose_process_is_killed_leaves_neither_process_nor_folder(number: signal.Signals, started: Callable[..., Running]) -> None:
    running = started()
    running.process.send_signal(number)
    running.process.wait(DEADLINE_SECONDS)
    until(lambda: not running.path.exists() and ended(running.reaper), "the run's folder is gone")
    assert running.alive() == 0


def test_a_reaper_ignores_what_ends_the_run_from_a_terminal() -> None:
    with RunDirectory() as run:
        until(lambda: b"reaper.py" in Path(f"/proc/{run.reaper_pid}/cmdline").read_bytes(), "the reaper runs")
        until(lambda: ignores(run.reaper_pid, signal.SIGTERM), "it ignores signals")
        assert os.getsid(run.reaper_pid) == run.reaper_pid
        for number in reaper.IGNORED:
            assert ignores(run.reaper_pid, number)


def test_a_reaper_that_is_killed_is_replaced_and_the_run_still_ends_clean(started: Callable[..., Running]) -> None:
    with RunDirectory() as run:
        first = run.reaper_pid
        os.kill(first, signal.SIGKILL)
        until(lambda: run.reaper_pid != first, "another reaper")
    assert not run.path.exists()

    running = started()
    os.kill(running.reaper, signal.SIGKILL)
    until(lambda: ended(running.reaper), "the reaper has ended")
    until(lambda: bool(_reapers(running.path)), "another reaper")
    (second,) = _reapers(running.path)
    running.process.kill()
    running.process.wait(DEADLINE_SECONDS)
    until(lambda: not running.path.exists() and ended(second), "the run's folder is gone")
    assert running.alive() == 0


def _reapers(path: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and not ended(int(entry.name)):
            try:
                argv = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(path).encode() in argv and any(word.endswith(b"reaper.py") for word in argv):
                found.append(int(entry.name))
    return found


def test_what_a_run_and_its_reaper_left_when_both_were_killed_is_swept_by_the_next_one(started: Callable[..., Running]) -> None:
    base = Path(f"/tmp/gf-{secrets.token_hex(3)}")  # noqa: S108 - made here, and short
    base.mkdir(mode=0o700)
    try:
        running = started(base)
        # Stopped, it cannot start another reaper in between.
        running.process.send_signal(signal.SIGSTOP)
        os.kill(running.reaper, signal.SIGKILL)
        running.process.kill()
        running.process.wait(DEADLINE_SECONDS)
        # A killed process ends some time after the signal, and until then it holds the lock, as does a service between fork and exec.
        until(lambda: ended(running.reaper), "the reaper has ended")
        until(lambda: _unlocked(running.path.with_suffix(".lock")), "no process holds the run's lock")
        assert running.path.exists()
        assert running.alive() >= 3
        with RunDirectory(base) as run:
            assert not running.path.exists()
            assert running.alive() == 0
            assert run.path.exists()
    finally:
        until(lambda: not list(base.iterdir()), "nothing is left below the base folder")
        base.rmdir()


def _unlocked(lock_file: Path) -> bool:
    with lock_file.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_a_run_that_lives_is_not_swept_by_the_next_one() -> None:
    with RunDirectory() as one, RunDirectory() as other:
        assert one.path.parent == other.path.parent
        assert one.path.exists()


def test_only_carriers_of_the_marker_are_killed() -> None:
    ours, theirs = secrets.token_hex(16), secrets.token_hex(16)
    with (
        subprocess.Popen(["sleep", "1000"], env={reaper.MARKER: ours, "PATH": "/usr/bin:/bin"}) as doomed,
        subprocess.Popen(["sleep", "1000"], env={reaper.MARKER: theirs, "PATH": "/usr/bin:/bin"}) as spared,
    ):
        assert reaper.kill_marked_processes(ours)
        assert doomed.wait(DEADLINE_SECONDS) == -signal.SIGKILL
        assert spared.poll() is None
        assert reaper.kill_marked_processes(theirs)
