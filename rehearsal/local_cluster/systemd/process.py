"""Starts one process of a service in a session of its own, waits for its end without polling, and reads what it uses."""

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
    """What a process and its children use: CPU time so far, resident memory now, and the highest since their start."""

    cpu_seconds: float = 0.0
    memory_bytes: int = 0
    peak_bytes: int = 0


GROUP_SECONDS, GROUP_PAUSE_SECONDS = 2.0, 0.002
"""How long a group that was killed is waited for, and between two looks; one that waits for a disk may take longer."""


class ExecError(GpufleetError):
    """A program that cannot be executed."""


class Process:
    """A process with its group, which is reaped here alone, so that its number cannot become another's while it is used."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], directory: Path, log: Path) -> None:
        """Start it with standard output and error appended to a log; NotExecuted."""
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
        """Descriptor that is readable once the process has ended."""
        return self._descriptor

    def signal(self, number: int) -> None:
        """Send a signal to the process and all of its group, as systemd's KillMode=control-group; nothing once it is reaped."""
        with self._reaping, contextlib.suppress(ProcessLookupError):
            if self._popen.returncode is None:
                os.killpg(self.pid, number)

    def reap(self) -> int:
        """End what the process has left of its group and give its exit status (minus the signal's number); waits where it has not ended."""
        readable((self,))
        self.signal(signal.SIGKILL)
        with self._reaping:
            status = self._popen.wait()
        os.close(self._descriptor)
        self._wait_for_group()
        return status

    def _wait_for_group(self) -> None:
        """Wait until what was killed is gone: on a busy machine that comes some time after the signal."""
        until = time.monotonic() + GROUP_SECONDS
        # Its number stays that of the group as long as one of it lives.
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < until:
                os.killpg(self.pid, 0)
                time.sleep(GROUP_PAUSE_SECONDS)


class Descriptor(Protocol):
    """What has a descriptor to wait for."""

    def fileno(self) -> int: ...


def readable(sources: Iterable[Descriptor | int | None], seconds: float | None = None) -> set[int]:
    """Descriptors of those that are readable, waiting for one at most so long, without end for None."""
    poll = select.poll()
    for source in sources:
        if source is not None:
            poll.register(source, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(None if seconds is None else seconds * 1000)}


def process_usage(pid: int) -> ProcessUsage:
    """What a process and its living descendants use, from proc(5); zeros once it is gone."""
    total = ProcessUsage()
    for each in _family(pid):
        try:
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{each}/status").read_text()
        except OSError:
            continue
        memory = {line.partition(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith(("VmRSS:", "VmHWM:"))}
        # utime, stime and those of children that it has waited for: fields 14 to 17 of proc_pid_stat(5), of which two are cut off before.
        total = ProcessUsage(
            total.cpu_seconds + sum(int(ticks) for ticks in fields[11:15]) / TICKS,
            total.memory_bytes + int(memory.get("VmRSS", "0")) * KIBIBYTE,
            total.peak_bytes + int(memory.get("VmHWM", "0")) * KIBIBYTE,
        )
    return total


def _family(pid: int) -> list[int]:
    """A process and its descendants."""
    family, unseen = [], [pid]
    while unseen:
        each = unseen.pop()
        family.append(each)
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                unseen += [int(child) for child in task.read_text().split()]
    return family
