"""Ends what a run has left: when its process is gone, kills every process that carries the run's marker and removes the run's folder.

It runs as a script on the standard library alone, in a session of its own, and lives as long as the pipe that the run's process holds.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from pathlib import Path

MARKER = "GPUFLEET_RUN"
"""Variable in the environment of every process of a run; its value is the run's and cannot be guessed."""
PATIENCE_SECONDS = 60.0
"""How long killed processes are waited for: one that the kernel does not let go keeps its folder for the next sweep."""
UNCLEAR_SECONDS = 0.001
PF_KTHREAD = 0x0020_0000
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)


def marked_processes(marker: str) -> tuple[list[int], bool]:
    """Descriptors (pidfd) of the living processes, this one excepted, that were started with a run's marker, which the caller closes.

    Also whether the look was clear: a process in the middle of exec shows no environment for a moment, and is to be looked at again.
    A descriptor is opened before the environment is read, so that no other process can come to stand in for the one that was looked at.
    """
    wanted = f"{MARKER}={marker}".encode()
    found, clear = [], True
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            descriptor = os.pidfd_open(int(entry.name))
        except OSError:
            continue
        try:
            environment = (entry / "environ").read_bytes()
            clear = clear and (environment != b"" or not _in_exec(entry))
        except OSError:
            environment = b""
        if wanted in environment.split(b"\0"):
            found.append(descriptor)
        else:
            os.close(descriptor)
    return found, clear


def _in_exec(process: Path) -> bool:
    """Whether a process without an environment is one of this user's that is getting a new one; OSError where it is gone.

    proc_pid_stat(5): state, flags (PF_KTHREAD: the kernel's own) and env_start are fields 3, 9 and 50, of which two are cut off before.
    """
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return process.stat().st_uid == os.getuid() and fields[0] not in "ZX" and not int(fields[6]) & PF_KTHREAD and fields[47] == "0"


def kill_marked_processes(marker: str, patience: float = PATIENCE_SECONDS) -> bool:
    """Kill every process of a run and wait until all are gone; whether they are, within that many seconds.

    One empty look is not enough: a process may have moved to a lower number, by a fork, behind the look.
    """
    deadline = time.monotonic() + patience
    empty = 0
    while empty < 2 and time.monotonic() < deadline:
        found, clear = marked_processes(marker)
        empty = empty + 1 if clear and not found else 0
        for descriptor in found:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        for descriptor in found:
            _wait_for_end(descriptor, deadline)
            os.close(descriptor)
        if not clear:
            time.sleep(UNCLEAR_SECONDS)
    return empty == 2


def _wait_for_end(descriptor: int, deadline: float) -> None:
    """Wait for a process's end, not beyond the deadline."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll(max(0.0, deadline - time.monotonic()) * 1000)


def remove(folder: Path, lock: Path) -> None:
    """Remove a run's folder, its lock file once the folder is gone, and the folder of all runs when this was the last."""
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        lock.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            lock.parent.rmdir()


def clean(marker: str, folder: Path, lock: Path) -> bool:
    """Kill a run's processes and remove its folder; whether nothing is left."""
    if kill_marked_processes(marker):
        remove(folder, lock)
    return not folder.exists()


def main() -> None:
    """`reaper.py FOLDER LOCK`: wait for the end of standard input, which is the run's end, then clean; the lock file holds the marker."""
    for ignored in IGNORED:
        signal.signal(ignored, signal.SIG_IGN)
    folder, lock = Path(sys.argv[1]), Path(sys.argv[2])
    marker = lock.read_text().strip()
    while os.read(0, 4096):
        pass
    if marker and not clean(marker, folder, lock):
        sys.exit(1)


if __name__ == "__main__":
    main()
