"""Process of a service in its own session: start, end without polling, and resource usage."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from components.errors import GpufleetError

KIBIBYTE = 1024
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class ProcessUsage:
    """Resource usage of a process and its descendants: CPU time, resident memory, and peak resident memory."""

    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    peak_bytes: int = 0


GROUP_SECONDS, GROUP_PAUSE_SECONDS = 2.0, 0.002
"""Time to wait for a killed process group, and interval of checks; a process that waits for a disk may take longer."""


class ExecError(GpufleetError):
    """A program that cannot be executed."""


class Process:
    """A process and its group. Only this class reaps it, so its process id cannot be reused meanwhile."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], directory: Path, log: Path) -> None:
        """Start the process with its output appended to a log; raise ExecError."""
        self._reaping = threading.Lock()
        with log.open("ab") as out:
            try:
                self._popen = subprocess.Popen(  # noqa: S603
                    argv, env=environment, cwd=directory, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                )
            except OSError as error:
                raise ExecError(f"{argv[0]} cannot be executed in {directory}: {error.strerror}") from None
        self.pid = self._popen.pid
        self._descriptor = os.pidfd_open(self.pid)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when the process ends."""
        return self._descriptor

    def signal(self, number: int) -> None:
        """Send a signal to the process group, as systemd's KillMode=control-group; do nothing once it is reaped."""
        with self._reaping, contextlib.suppress(ProcessLookupError):
            if self._popen.returncode is None:
                os.killpg(self.pid, number)

    def reap(self) -> int:
        """Wait for the end, kill the rest of its group, and return the exit status (negative for a signal)."""
        readable((self,))
        self.signal(signal.SIGKILL)
        with self._reaping:
            status = self._popen.wait()
        os.close(self._descriptor)
        self._wait_for_group()
        return status

    def _wait_for_group(self) -> None:
        """Wait until killed processes have ended, which takes a while on a busy machine."""
        until = time.monotonic() + GROUP_SECONDS
        # The group id is not reused while a process of the group exists.
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < until:
                os.killpg(self.pid, 0)
                time.sleep(GROUP_PAUSE_SECONDS)


class Descriptor(Protocol):
    """An object with a descriptor to wait for."""

    def fileno(self) -> int: ...


def readable(sources: Iterable[Descriptor | int | None], seconds: float | None = None) -> set[int]:
    """Wait until a source is readable, at most that many seconds, and return the readable descriptors."""
    poll = select.poll()
    for source in sources:
        if source is not None:
            poll.register(source, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)}


def process_usage(pid: int) -> ProcessUsage:
    """Return the resource usage of a process and its living descendants from proc(5); zeros if it has ended."""
    total = ProcessUsage()
    for each in _family(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{each}/status").read_text()
        except OSError:
            continue
        memory = {line.partition(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith(("VmRSS:", "VmHWM:"))}
        # utime, stime, cutime and cstime: fields 14 to 17 of proc_pid_stat(5); the first two fields are cut off above.
        total = ProcessUsage(
            total.cpu_seconds + sum(int(ticks) for ticks in fields[11:15]) / TICKS,
            total.memory_bytes + int(memory.get("VmRSS", "0")) * KIBIBYTE,
            total.peak_bytes + int(memory.get("VmHWM", "0")) * KIBIBYTE,
        )
    return total


def _family(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    family, unseen = [], [pid]
    while unseen:
        each = unseen.pop()
        family.append(each)
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                unseen += [int(child) for child in task.read_text().split()]
    return family
