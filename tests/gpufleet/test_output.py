"""A command with a closed, full or narrow output ends with one line and never with a traceback."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
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
    said = "output cannot be written: No space left on device: free space there or give another output\n"
    assert (result.returncode, result.stderr) == (2, said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_server_with_a_full_disk_blames_the_output_and_not_the_address() -> None:
    result = run(f"{COMMAND} azure dev >/dev/full")
    reason = "No space left on device; the server has ended: free space there or give another output"
    assert (result.returncode, result.stderr) == (2, f"output cannot be written: {reason}\n")


@pytest.mark.parametrize("words", ["check dev", "check dev --json", "--help", "binaries --where stages", "azure dev"])
def test_a_reader_that_ended_first_gives_the_status_of_a_broken_pipe(words: str) -> None:
    """The pipe has no reader from the beginning, whatever the order in which the shell starts both programs."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        result = subprocess.run([COMMAND, *words.split()], stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (result.returncode, result.stderr) == (141, "")


def test_an_up_without_any_reader_still_stores_the_region(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        result = subprocess.run([COMMAND, "up", "dev", "--state", tmp_path / "state"], stdout=closed, stderr=closed, check=False)
    assert result.returncode == 141
    again = run(f"{COMMAND} preview dev --state {tmp_path}/state")
    assert (again.returncode, again.stderr) == (0, "preview: dev-base\npreview: dev\n")
    assert again.stdout.startswith("dev: nothing to change: ")


def test_a_terminal_without_columns_gets_a_table_of_80() -> None:
    primary, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": "0", "TERM": "xterm", "NO_COLOR": "1"}
    with subprocess.Popen([COMMAND, "check", "dev"], stdout=terminal, stderr=terminal, env=environment) as process:
        os.close(terminal)
        read = b""
        # At the end of a terminal, Linux reports an I/O error.
        with suppress(OSError):
            while part := os.read(primary, 65_536):
                read += part
    os.close(primary)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", read.decode()).splitlines()
    table = lines[: lines.index("")]
    assert process.returncode == 0
    assert 60 < max(map(len, table)) <= 80
    assert lines[0].split() == ["limit", "where", "use", "bound", "unit", "headroom"]


def test_an_encoding_without_the_signs_gets_others() -> None:
    result = run(f"{COMMAND} check dev", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "Traceback" not in result.stderr
    assert "none broken" in result.stdout


@pytest.mark.parametrize(("number", "word", "status"), [(signal.SIGINT, "interrupted", 130), (signal.SIGTERM, "terminated", 143)])
@pytest.mark.parametrize("seconds", [0.4, 1.0, 3.0])
def test_a_signal_at_any_moment_ends_with_one_line(seconds: float, number: signal.Signals, word: str, status: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [COMMAND, "rehearse", "southcentralus", "--out", str(tmp_path)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    time.sleep(seconds)
    process.send_signal(number)
    _, output = process.communicate(timeout=60)
    lines = [line for line in output.decode().splitlines() if line and not line.startswith("rehearsal: ")]
    assert (process.returncode, len(lines)) == (status, 1)
    complete = f"{word}; the report in {tmp_path} is not complete, and nothing else was written: run the same command again"
    assert lines[0] in (word, complete)


def catches(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has a handler of a signal: https://man7.org/linux/man-pages/man5/proc_pid_status.5.html"""
    caught = re.search(r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(caught and int(caught[1], 16) >> (number - 1) & 1)


def test_a_server_that_is_terminated_before_it_serves_says_so() -> None:
    process = subprocess.Popen([COMMAND, "azure", "southcentralus"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    # Its handler is installed at the start; the server serves later, after the region was planned.
    deadline = time.monotonic() + 60
    while not catches(process.pid, signal.SIGTERM):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, output = process.communicate(timeout=60)
    assert process.returncode == 143
    assert output.strip() in ("terminated", "terminated before the Azure was served; run the same command again")


def test_sigterm_reaches_the_present_handler_of_ctrl_c_such_as_that_of_a_running_pulumi_command() -> None:
    program = (
        "import os, signal; from gpufleet.interruption import handle_termination, interrupted_status; handle_termination();"
        "signal.signal(signal.SIGINT, lambda number, _: print('forwarded', number)); print(interrupted_status());"
        "os.kill(os.getpid(), signal.SIGTERM); print(interrupted_status())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["130", f"forwarded {int(signal.SIGINT)}", "143"]
