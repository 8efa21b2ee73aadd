"""The go command runs without a fork of Python, ends with its caller, and reports a clear error if it cannot start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal.binaries import go_command
from rehearsal.binaries.find import BinariesMissingError

ROOT = Path(__file__).parents[3]

RUNS = """
import os
from pathlib import Path
from rehearsal.binaries import go_command
os.register_at_fork(before=lambda: print("forked", flush=True))
print(go_command.run({command}, Path("/"), os.environ, "it", lambda: None), end="")
"""


def another_python(program: str) -> str:
    return subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True)


def test_python_is_not_forked_as_grpc_would_crash_in_its_child() -> None:
    assert another_python(RUNS.format(command=["echo", "said"])) == "said\n"


def test_the_kernel_is_asked_to_kill_it_with_its_parent() -> None:
    asks = "import ctypes; n = ctypes.c_int(); ctypes.CDLL(None).prctl(2, ctypes.byref(n)); print(n.value)"
    assert another_python(RUNS.format(command=[sys.executable, "-c", asks])) == "9\n"


def test_it_does_not_begin_where_its_parent_has_ended_already() -> None:
    program = go_command.END_WITH_PARENT
    done = subprocess.run([*program, str(os.getpid() + 1), "echo", "said"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_what_cannot_be_run_is_told_with_the_reason(tmp_path: Path) -> None:
    plain = tmp_path / "go"
    plain.write_text("")
    for command, reason in ((tmp_path / "none", "No such file or directory"), (plain, "Permission denied")):
        with pytest.raises(BinariesMissingError) as raised:
            go_command.run([str(command)], tmp_path, os.environ, "it", lambda: None)
        assert str(raised.value) == f"it: {command} cannot be run ({reason}); install Go, or repair it"


def test_a_command_that_fails_is_told_with_its_status_and_its_last_lines(tmp_path: Path) -> None:
    with pytest.raises(BinariesMissingError, match="go ended with 7") as raised:
        go_command.run(["sh", "-c", "echo why >&2; exit 7"], tmp_path, os.environ, "it", lambda: None)
    assert "why" in raised.value.why


def test_a_folder_that_is_gone_is_told_and_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(BinariesMissingError, match=f"echo cannot be run in {tmp_path}/gone .No such file or directory"):
        go_command.run(["echo"], tmp_path / "gone", os.environ, "it", lambda: None)
