"""State of processes that tests started, read from the kernel."""

from __future__ import annotations

import signal
from pathlib import Path


def ended(pid: int) -> bool:
    """Return whether a process has ended or is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ignores(pid: int, number: signal.Signals) -> bool:
    """Return whether a process ignores a signal."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn:"))
    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
