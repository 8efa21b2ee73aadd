"""Lock on a directory, with a note of the process that holds it."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from components.errors import GpufleetError

LOCK = "lock"
START_FIELD = 19
"""Position of a process's start time in /proc/PID/stat, after the name in parentheses. https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html"""


class DirectoryInUseError(GpufleetError):
    """Another process uses the directory; the text names it if it is known."""


@dataclass(frozen=True)
class LockHolder:
    """The process that locked a directory: its command line, the time of the lock in UTC, and its start as Linux counts it."""

    pid: int
    command: str
    since: str
    start: str

    @property
    def alive(self) -> bool:
        """Return whether this process exists, and no other one has got its number since."""
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            pass
        except (OSError, OverflowError):
            return False
        return _start_of(self.pid) == self.start

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command}, since {self.since} UTC)"


class DirectoryLock:
    """An exclusive lock on a directory that exists. It ends with the process, or with the last one that inherited its descriptor."""

    def __init__(self, folder: Path) -> None:
        """Lock a directory. Raises DirectoryInUseError, or OSError if it cannot be written."""
        self.descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(self.descriptor)
            os.close(self.descriptor)
            raise DirectoryInUseError(f"{folder} {_used_by(holder)}") from None
        except OSError:
            os.close(self.descriptor)
            raise
        # The note only helps people: a full disk must not stop a command that frees space.
        with suppress(OSError):
            os.truncate(self.descriptor, 0)
            os.pwrite(self.descriptor, json.dumps(asdict(_this_process())).encode(), 0)

    def release(self) -> None:
        """End the lock, also in child processes that inherited it."""
        with suppress(OSError):
            os.truncate(self.descriptor, 0)
        fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        os.close(self.descriptor)


def _this_process() -> LockHolder:
    """Return the note of this process. The command line has no line breaks."""
    name, *arguments = sys.argv or ["python"]
    command = " ".join(shlex.join([Path(name).name, *arguments]).split())
    return LockHolder(os.getpid(), command, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}", _start_of(os.getpid()))


def _start_of(pid: int) -> str:
    """Return the start time of a process in clock ticks since boot; empty where /proc does not exist."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[START_FIELD]
    except (OSError, IndexError):
        return ""


def _holder(descriptor: int) -> LockHolder | None:
    """Return the note in a lock file; None if it is empty, or another version wrote it."""
    try:
        return LockHolder(**json.loads(os.pread(descriptor, 2**16, 0)))
    except (OSError, ValueError, TypeError):
        return None


def _used_by(holder: LockHolder | None) -> str:
    """Return the end of a sentence about a directory: the process that uses it, and the remedy."""
    if holder is None:
        return "is in use by another process; wait until it ends, or give another directory with --state"
    if holder.alive:
        return f"is in use by {holder}; wait until it ends, stop it (kill {holder.pid}), or give another directory with --state"
    return (
        f"is in use by another process; the last one that locked it, {holder}, has ended, but a program that it started may run on; "
        "wait until that ends, or give another directory with --state"
    )
