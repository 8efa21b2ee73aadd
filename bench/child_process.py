"""Measured child processes: one at a time, ended with the benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MOST_SECONDS = 600.0
"""Time limit of a process."""


@dataclass(frozen=True)
class Child:
    """Result of a process: wall and CPU seconds of its whole life, peak resident memory in MB, and its output."""

    wall: float
    cpu: float
    peak_mb: float
    text: str


class ChildError(Exception):
    """A measured process failed; its own output above contains the reason."""

    def __init__(self, command: list[str], status: int) -> None:
        ended = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        super().__init__(f"{' '.join(command)} {ended}; what it said stands above")


def measured(*arguments: str) -> tuple[Child, dict[str, Any]]:
    """Run a piece of bench/measured_process.py in a fresh process; raise ChildError if it fails."""
    child = run([sys.executable, "-m", "bench.measured_process", *arguments])
    return child, json.loads(child.text)


def run(command: list[str]) -> Child:
    """Run a command to its end; raise ChildError if it fails.

    Its peak memory is at least this process's own, because it is a copy of this process until exec. Therefore the bench imports little.
    """
    began = time.monotonic()
    # In its own session, so that an interrupt reaches the bench only, which then ends the process.
    with tempfile.TemporaryFile() as output, subprocess.Popen(command, cwd=ROOT, stdout=output, start_new_session=True) as process:
        watch = threading.Timer(MOST_SECONDS, process.kill)
        watch.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            watch.cancel()
            if process.returncode is None:
                process.kill()
        wall = time.monotonic() - began
        output.seek(0)
        text = output.read().decode()
    if process.returncode != 0:
        raise ChildError(command, process.returncode)
    return Child(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)
