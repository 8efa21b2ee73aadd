"""A command with a closed, full or narrow output ends with one line and never with a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("gpufleet"))


def run(command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, env={**os.environ, **environment}, check=False)


def test_a_closed_output_is_no_failure() -> None:
    result = run(f"{COMMAND} check dev >&-")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_told_in_one_line() -> None:
    result = run(f"{COMMAND} check dev >/dev/full")
    assert (result.returncode, result.stderr) == (2, "output cannot be written: No space left on device\n")


def test_a_reader_that_has_gone_is_no_failure() -> None:
    result = run(f"{COMMAND} check southcentralus --all | head -1")
    assert (result.returncode, result.stderr) == (0, "")


def test_an_encoding_without_the_signs_gets_others() -> None:
    result = run(f"{COMMAND} check dev", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "Traceback" not in result.stderr
    assert "none broken" in result.stdout


@pytest.mark.parametrize("seconds", [0.4, 1.0])
def test_an_interrupt_at_any_moment_ends_with_one_word(seconds: float, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [COMMAND, "rehearse", "southcentralus", "--out", str(tmp_path)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=60)
    assert (process.returncode, output.strip()) == (130, b"interrupted")
