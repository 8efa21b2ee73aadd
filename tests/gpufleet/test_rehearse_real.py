"""gpufleet rehearse --real keeps a cluster until Ctrl-C and leaves nothing of it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from rehearsal.binaries.find import find_binaries

SECONDS = 600.0
MAIN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from gpufleet.entry import main; main()"
"""As from a terminal, also where the tests were started with the signal ignored."""


@contextmanager
def rehearsing(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A rehearsal of dev on few machines, in a process of its own."""
    find_binaries()
    argv = [sys.executable, "-c", MAIN, "rehearse", "dev", "--real", "--nodes=3", "--api-servers=1", f"--out={folder}", *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """The first line that matches; AssertionError with everything that was said where none does."""
    said = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        if found := re.search(pattern, line):
            return found
    raise AssertionError("".join(said))


def gone(folder: Path) -> bool:
    """Return whether a run's folder is removed before the deadline."""
    deadline = time.monotonic() + SECONDS
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return not folder.exists()


def test_a_kept_cluster_answers_kubectl_and_is_gone_after_ctrl_c(tmp_path: Path) -> None:
    with rehearsing(tmp_path, "--keep") as process:
        command = until(process, r"^    (\S+) --kubeconfig=(\S+) get nodes$")
        listed = subprocess.run(command[0].split(), capture_output=True, text=True, check=True).stdout
        assert listed.count(" Ready ") == 3
        until(process, r"removed at the end")
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        rest = process.stdout.read()
        assert process.wait(SECONDS) == 130
    assert "all processes have ended, and their files are removed" in rest
    assert "Traceback" not in rest
    assert not Path(command[2]).parents[1].exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_rehearsal_that_is_ended_in_the_middle_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with rehearsing(tmp_path) as process:
        until(process, "real cluster: control plane")
        folders = _folders_of(process.pid)
        process.send_signal(number)
        assert process.stdout is not None
        rest = process.stdout.read()
        assert process.wait(SECONDS) == (130 if number is signal.SIGINT else -signal.SIGKILL)
    assert "Traceback" not in rest
    assert all(gone(folder) for folder in folders)


def _folders_of(pid: int) -> list[Path]:
    """Folders of a process's runs, by the reapers that it has started; at least one."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = []
        for child in Path(f"/proc/{pid}/task").glob("*/children"):
            for each in child.read_text().split():
                words = Path(f"/proc/{each}/cmdline").read_text().split("\0")
                found += [Path(after) for before, after in pairwise(words) if before.endswith("reaper.py")]
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("no reaper")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--nodes", "5"), "add --real"),
        (("--keep",), "add --real"),
        (("--real", "--nodes", "99"), "--nodes 99: dev has 12 nodes; give a number from 1 to 12"),
        (("--real", "--cluster", "nowhere"), "--cluster nowhere: dev has no such cluster; give one of dev"),
    ],
)
def test_options_that_cannot_be_are_refused_before_anything_is_done(options: tuple[str, ...], message: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", MAIN, "rehearse", "dev", f"--out={tmp_path / 'out'}", *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()
