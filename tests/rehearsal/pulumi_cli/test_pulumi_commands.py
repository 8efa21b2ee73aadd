"""Commands of the CLI are run, stopped and followed; the tests use programs that every machine has."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.pulumi_cli.cli_process import PulumiCli, follow_file
from rehearsal.pulumi_cli.engine_choice import PulumiPrograms

STUBBORN = """
import os, signal, sys, time
told = []
def interrupted(*_):
    told.append(1)
    os.write(1, b"interrupt %d\\n" % len(told))
    len(told) > 1 and sys.exit(9)
signal.signal(signal.SIGINT, interrupted)
os.write(1, b"at work\\n")
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PulumiCli]:
    """A CLI that answers with its version alone; what else is run are other programs."""
    path = tmp_path / "pulumi"
    path.write_text("#!/bin/sh\necho v3.260.0\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    read, write = os.pipe()
    yield PulumiCli(PulumiPrograms(path, "v3.260.0", (tmp_path,)), (), {"PATH": os.environ["PATH"], "GIVEN": "yes"}, write)
    os.close(read)
    os.close(write)


def test_a_command_has_the_environment_that_it_is_given_and_no_other(cli: PulumiCli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "theirs")
    output = cli.run_in_hub([sys.executable, "-c", "import os; print(*sorted(os.environ))"], {"MORE": "1"}).stdout.split()
    assert {"GIVEN", "MORE", "PATH", "PULUMI_AUTOMATION_API"} <= set(output)
    assert "PULUMI_ACCESS_TOKEN" not in output


def test_both_streams_and_the_status_are_told(cli: PulumiCli) -> None:
    lines: list[str] = []
    result = cli.run_in_hub(["sh", "-c", "echo out; echo err >&2; exit 3"], {}, on_error=lines.append)
    assert (result.stdout, result.stderr, result.code, lines) == ("out", "err", 3, ["err"])


def test_ctrl_c_once_asks_and_twice_insists_and_the_command_is_waited_for(cli: PulumiCli) -> None:
    lines: list[str] = []

    def interrupt(line: str) -> None:
        lines.append(line)
        if line != "interrupt 2":
            os.kill(os.getpid(), signal.SIGINT)

    with cli.forward_interrupts():
        result = cli.run_in_hub([sys.executable, "-c", STUBBORN], {}, on_output=interrupt)
    assert lines == ["at work", "interrupt 1", "interrupt 2"]
    assert (result.code, cli.interrupts) == (9, 2)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_between_two_commands_is_remembered(cli: PulumiCli) -> None:
    with cli.forward_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
    assert cli.interrupts == 1


def test_a_command_is_in_a_process_group_of_its_own(cli: PulumiCli) -> None:
    result = cli.run_in_hub([sys.executable, "-c", "import os; print(os.getpgid(0))"], {})
    assert int(result.stdout) != os.getpgid(0)


def test_lines_are_told_while_they_are_written_and_the_file_is_gone_at_the_end(tmp_path: Path) -> None:
    path, lines, first = tmp_path / "events.jsonl", list[str](), threading.Event()

    def tell(line: str) -> None:
        lines.append(line)
        first.set()

    with follow_file(path, tell):
        assert path.stat().st_mode & 0o077 == 0
        with path.open("a") as stream:
            stream.write("one\ntw")
            stream.flush()
            assert first.wait(10), "it is told before the next is whole"
            stream.write("o\nthree\nhalf")
    assert lines == ["one", "two", "three"]
    assert not path.exists()


def test_what_was_written_last_is_told_too(tmp_path: Path) -> None:
    lines: list[str] = []
    with follow_file(tmp_path / "events.jsonl", lines.append):
        time.sleep(0.15)
        (tmp_path / "events.jsonl").write_text("last\n")
    assert lines == ["last"]
