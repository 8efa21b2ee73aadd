"""A playbook run to its end or killed on the way, and what came of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class Run:
    """status of ansible-playbook, and what it printed."""

    status: int
    output: str

    @property
    def said(self) -> str:
        """The output in one line, without the breaks and quoting that the terminal callback adds."""
        return " ".join(self.output.replace('\\"', '"').split())


def run_playbook(project: Path, playbook: str, inventory: Path, variables: dict[str, Any], stop_before: str = "") -> Run:
    """Run a playbook to its end, or kill everything that runs it when the task of a name begins."""
    with tempfile.TemporaryDirectory(prefix="play-") as private:
        given = Path(private, "variables.json")
        given.write_text(json.dumps(variables))
        programs = Path(sys.executable).parent
        command = [str(programs / "ansible-playbook"), playbook, f"--inventory={inventory}", f"--extra-vars=@{given}"]
        environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCAL_TEMP": private,
            "ANSIBLE_REMOTE_TEMP": private,
            "PYTHONUNBUFFERED": "1",
        }
        said: list[str] = []
        with subprocess.Popen(
            command, cwd=project, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as playing:
            assert playing.stdout
            for line in playing.stdout:
                said.append(line)
                if stop_before and line.startswith("TASK [") and f": {stop_before}]" in line:
                    _kill(playing.pid)
        assert not stop_before or playing.returncode < 0, f"no task {stop_before!r} came:\n{''.join(said)}"
        return Run(playing.returncode, "".join(said))


def _kill(process_id: int) -> None:
    """End a process and all that it has started, as a power cut would: each is stopped before its children are looked for, lest it start
    another meanwhile."""
    found = [psutil.Process(process_id)]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
            found += process.children()
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.kill()
