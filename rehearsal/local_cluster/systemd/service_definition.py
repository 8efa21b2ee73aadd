"""Describes a service as its unit file does, and tells in words why one is not ready."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from components.errors import GpufleetError

State = Literal["stopped", "starting", "ready", "stopping", "failed"]
STATES: dict[str, State] = {
    "dead": "stopped",
    "start-pre": "starting",
    "start": "starting",
    "start-post": "starting",
    "auto-restart": "starting",
    "running": "ready",
    "exited": "ready",
    "stop-sigterm": "stopping",
    "stop-sigkill": "stopping",
    "failed": "failed",
}
"""What each of systemd's sub-states (SubState of `systemctl show`) means for a waiting caller."""
CLEAN_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE})
"""Signals by which a service ends well: SuccessExitStatus= of
https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html"""


@dataclass(frozen=True)
class ServiceDefinition:
    """A service as its unit file says; a path in argv is one of this machine."""

    name: str
    """Unique: machine and unit, as `dev-etcd-0/etcd.service`."""
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    """The whole environment, to which the run's marker, TMPDIR and, where it notifies, NOTIFY_SOCKET come."""
    log: Path
    directory: Path
    """Working directory; TMPDIR is the folder `tmp` in it."""
    before: tuple[tuple[str, ...], ...] = ()
    """ExecStartPre=, one after the other at every start; one that fails is a start that failed."""
    after: tuple[tuple[str, ...], ...] = ()
    """ExecStartPost=, once the program is ready."""
    notify: bool = False
    """Type=notify: ready once it has said READY=1; otherwise as soon as it runs."""
    oneshot: bool = False
    """Type=oneshot: ready once it has ended with 0."""
    again: bool = False
    """A oneshot without RemainAfterExit: a start after it has ended runs it once more."""
    restart_seconds: float | None = None
    """RestartSec= of Restart=always (a oneshot: on-failure); None: not restarted."""
    environment_files: tuple[Path, ...] = ()
    """EnvironmentFile=-: read before every start of anything, over the environment; absent ones are ignored."""
    stop_seconds: float = 10.0
    """TimeoutStopSec=: from SIGTERM to SIGKILL."""

    @property
    def unit(self) -> str:
        """Its name without the machine: `etcd.service`."""
        return self.name.rpartition("/")[2]


class ServiceNotReadyError(GpufleetError):
    """A service that is not ready in time, or will never be."""

    def __init__(self, name: str, state: State, sub_state: str, status: int | None, lines: list[str], log: Path) -> None:
        ended = "" if status is None else f", last ended with {status_text(status)}"
        tail = "".join(f"\n    {line}" for line in lines) or " it is empty"
        super().__init__(f"{name} is {state} ({sub_state}){ended}; the end of its log {log}:{tail}")
        self.name, self.state, self.status, self.lines = name, state, status, lines


def status_text(status: int) -> str:
    """An exit status in words."""
    return f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"


def read_environment(files: tuple[Path, ...]) -> dict[str, str]:
    """Assignments of EnvironmentFile=-, later ones over earlier ones; lines that are comments or nothing are skipped."""
    found: dict[str, str] = {}
    for file in files:
        for line in file.read_text().splitlines() if file.is_file() else ():
            name, equals, value = line.strip().partition("=")
            if equals and name[0] not in "#;":
                found[name] = shlex.split(value)[0] if value[:1] in ("'", '"') else value
    return found


def result_of(status: int) -> str:
    """An exit status in systemd's words."""
    if status < 0:
        return "success" if signal.Signals(-status) in CLEAN_SIGNALS else "signal"
    return "exit-code" if status else "success"
