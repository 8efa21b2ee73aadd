"""Reaper of a run: it kills every process with the run's marker and removes the run's folder, once the run's process has ended.

It runs as a script with only the standard library, in its own session, until the pipe of the run's process is closed.
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
"""Environment variable of every process of a run; its value is unique and cannot be guessed."""
PATIENCE_SECONDS = 60.0
"""Time to wait for killed processes; if one does not end, its folder remains for the next sweep."""
UNCLEAR_SECONDS = 0.001
PF_KTHREAD = 0x0020_0000
IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT)


def marked_processes(marker: str) -> tuple[list[int], bool]:
    """Return descriptors (pidfd) of the other living processes with a run's marker, which the caller closes, and if the scan is complete.

    A scan is incomplete if a process was in the middle of exec, when it shows no environment.
    A descriptor is opened before the environment is read, so that a reused process id cannot match.
    """
    variable = f"{MARKER}={marker}".encode()
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
        if variable in environment.split(b"\0"):
            found.append(descriptor)
        else:
            os.close(descriptor)
    return found, clear


def _in_exec(process: Path) -> bool:
    """Return True if a process without an environment is this user's and in the middle of exec; raise OSError if it has ended.

    proc_pid_stat(5): state, flags (PF_KTHREAD: kernel thread) and env_start are fields 3, 9 and 50; the first two fields are cut off.
    """
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return process.stat().st_uid == os.getuid() and fields[0] not in "ZX" and not int(fields[6]) & PF_KTHREAD and fields[47] == "0"


def kill_marked_processes(marker: str, patience: float = PATIENCE_SECONDS) -> bool:
    """Kill every process of a run and wait for their end; return True if all have ended within patience seconds.

    One empty scan is not enough: a process may have forked to a lower id that the scan had passed.
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
    """Wait for a process's end until the deadline."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll(max(0.0, deadline - time.monotonic()) * 1000)


def remove(folder: Path, lock: Path) -> None:
    """Remove a run's folder, then its lock file, and the parent folder if this was the last run."""
    if folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        lock.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            lock.parent.rmdir()


def clean(marker: str, folder: Path, lock: Path) -> bool:
    """Kill a run's processes and remove its folder; return True if nothing remains."""
    if kill_marked_processes(marker):
        remove(folder, lock)
    return not folder.exists()


def main() -> None:
    """Run `reaper.py FOLDER LOCK`: wait for the end of standard input, then clean; the lock file contains the marker."""
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
