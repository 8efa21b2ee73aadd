"""Locks keep two programs apart and end with their holder; a program of the system that fails says what it said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cni.node import commands
from cni.node.commands import CommandError, run
from cni.node.errors import NodeNetworkError
from cni.node.files import locked

HOLD = """
import sys
from pathlib import Path
from cni.node.files import locked

with locked(Path(sys.argv[1]), 1):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_refused_while_another_process_holds_it_and_free_once_that_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(NodeNetworkError, match="another process holds this lock"), locked(path, 0.1):
            pass
        holder.kill()
    with locked(path, 0.0):
        pass


def test_a_program_gets_what_it_is_given_and_its_output_comes_back() -> None:
    assert run("cat", given="one\ntwo\n") == "one\ntwo\n"
    assert run("cat") == ""


def test_a_program_that_fails_hangs_or_is_missing_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CommandError) as failed:
        run("sh", "-c", "echo no luck >&2; exit 3")
    assert (failed.value.status, "status 3, where 0 is success: no luck" in str(failed.value)) == (3, True)
    with pytest.raises(CommandError, match="install no-such-program"):
        run("no-such-program")
    monkeypatch.setattr(commands, "COMMAND_SECONDS", 0.1)
    with pytest.raises(CommandError, match="did not run to its end"):
        run("sleep", "5")
