"""Definition of a service as in its unit file, its states, and the error of a service that is not ready."""

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
"""State for a waiting caller by systemd's sub-state (SubState of `systemctl show`)."""
CLEAN_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE})
"""Signals that are a successful end: SuccessExitStatus= of
https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html"""


@dataclass(frozen=True)
class ServiceDefinition:
    """A service as in its unit file; paths in argv are local."""

    name: str
    """Unique name of machine and unit, for example `dev-etcd-0/etcd.service`."""
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    """Whole environment; the run's marker, TMPDIR and, for Type=notify, NOTIFY_SOCKET are added."""
    log: Path
    directory: Path
    """Working directory; TMPDIR is the folder `tmp` in it."""
    before: tuple[tuple[str, ...], ...] = ()
    """ExecStartPre= commands, in order at every start; a failure fails the start."""
    after: tuple[tuple[str, ...], ...] = ()
    """ExecStartPost= commands, run once the program is ready."""
    notify: bool = False
    """Type=notify: ready after READY=1; otherwise ready as soon as it runs."""
    oneshot: bool = False
    """Type=oneshot: ready after it has exited with 0."""
    again: bool = False
    """True for a oneshot without RemainAfterExit: a start after its end runs it again."""
    restart_seconds: float | None = None
    """RestartSec= of Restart=always (oneshot: on-failure); None for no restart."""
    environment_files: tuple[Path, ...] = ()
    """EnvironmentFile=- files: read before every start; they override the environment, and missing ones are ignored."""
    stop_seconds: float = 10.0
    """TimeoutStopSec=: from SIGTERM to SIGKILL."""

    @property
    def unit(self) -> str:
        """Return the name without the machine, for example `etcd.service`."""
        return self.name.rpartition("/")[2]


class ServiceNotReadyError(GpufleetError):
    """A service that is not ready in time, or cannot become ready."""

    def __init__(self, name: str, state: State, sub_state: str, status: int | None, lines: list[str], log: Path) -> None:
        ended = "" if status is None else f", last ended with {status_text(status)}"
        tail = "".join(f"\n    {line}" for line in lines) or " it is empty"
        super().__init__(f"{name} is {state} ({sub_state}){ended}; the end of its log {log}:{tail}")
        self.name, self.state, self.status, self.lines = name, state, status, lines


def status_text(status: int) -> str:
    """Return an exit status in words."""
    return f"status {status}" if status >= 0 else f"signal {signal.Signals(-status).name}"


def read_environment(files: tuple[Path, ...]) -> dict[str, str]:
    """Return the assignments of environment files; later ones override earlier ones, and comments and empty lines are skipped."""
    found: dict[str, str] = {}
    for file in files:
        for line in file.read_text().splitlines() if file.is_file() else ():
            name, equals, value = line.strip().partition("=")
            if equals and name[0] not in "#;":
                found[name] = shlex.split(value)[0] if value[:1] in ("'", '"') else value
    return found


def result_of(status: int) -> str:
    """Return the result of an exit status in systemd's terms."""
    if status < 0:
        return "success" if signal.Signals(-status) in CLEAN_SIGNALS else "signal"
    return "exit-code" if status else "success"
