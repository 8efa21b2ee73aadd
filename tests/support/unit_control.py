"""Server of a machine's `systemctl`: it controls the local services and prints systemctl's texts, so that Ansible works unchanged.

Exit statuses: 3 not active, 4 no such unit, and 5 for starting a unit that does not exist.
https://www.freedesktop.org/software/systemd/man/latest/systemctl.html, "Exit status"
"""

from __future__ import annotations

import json
import secrets
import shlex
import signal
import socket
import sys
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.service import Service
from rehearsal.local_cluster.systemd.service_definition import STATES
from tests.support import systemctl

ACTIVE = {"starting": "activating", "ready": "active", "stopping": "deactivating", "stopped": "inactive", "failed": "failed"}
"""ActiveState of each state."""
NOT_ACTIVE, NOT_THERE, CANNOT_START = 3, 4, 5
EXITED, KILLED = 1, 2
"""ExecMainCode: CLD_EXITED and CLD_KILLED of waitid(2)."""
IGNORED = frozenset({"-l", "--full", "-q", "--quiet", "--no-pager", "--system", "--no-ask-password", "--no-reload"})
MAX_REQUEST_BYTES = 64 * 2**10


class SystemctlError(Exception):
    """An error of systemctl: its text on standard error, and its exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class _CommandLine:
    """A command line of systemctl."""

    verb: str
    units: list[str]
    properties: list[str]
    values_only: bool = False
    block: bool = True
    now: bool = False
    signal: signal.Signals = signal.SIGTERM


class UnitControl:
    """A machine's systemctl: the program in `folder`, which must come first in PATH, and the server of its requests."""

    folder: Path

    def __init__(
        self, run: RunDirectory, folder: Path, services: Mapping[str, Service], enabled: Collection[str], unit_files: Mapping[str, Path]
    ) -> None:
        """Write the program and listen. services and unit_files are by unit name; enabled are the units that start at boot."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.enabled = folder, set(enabled)
        self._services, self._files = services, unit_files
        # The path of a machine's folder may be too long for a socket.
        socket_path = run.path / "control" / secrets.token_hex(4)
        socket_path.parent.mkdir(mode=0o700, exist_ok=True)
        script = folder / "systemctl"
        client = shlex.join([sys.executable, "-I", "-S", systemctl.__file__, str(socket_path)])
        script.write_text(f'#!/bin/sh\nexec {client} "$@"\n')
        script.chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(socket_path))
        self._listener.listen()
        threading.Thread(target=self._listen, name=f"systemctl of {folder}", daemon=True).start()

    def _listen(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(connection,), name="systemctl", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """Read a command line, run it and send the result; ignore a client that has ended or sends no command line."""
        with connection, connection.makefile("rb") as request:
            try:
                status, out, err = self.run(json.loads(request.read(MAX_REQUEST_BYTES)))
                connection.sendall(json.dumps({"status": status, "out": out, "err": err}).encode())
            except (OSError, ValueError):
                return

    def run(self, argv: list[str]) -> tuple[int, str, str]:
        """Return exit status, standard output and standard error of `systemctl ARGV`."""
        try:
            command = _parse(argv)
            status, out = self._do(command)
        except SystemctlError as error:
            return error.status, "", f"{error}\n"
        return status, out, ""

    def _do(self, command: _CommandLine) -> tuple[int, str]:
        if command.verb == "daemon-reload":
            return 0, ""
        if command.verb == "show":
            return 0, "\n".join(self._show(name, command) for name in command.units)
        if command.verb in ("is-active", "is-failed", "is-enabled"):
            return self._states(command)
        if command.verb == "list-unit-files":
            return self._list(command.units)
        if command.verb == "cat":
            return 0, "\n".join(f"# {self._file(name)}\n{self._file(name).read_text()}" for name in command.units)
        return 0, "".join(self._change(command, name) for name in command.units)

    def _change(self, command: _CommandLine, name: str) -> str:
        """Run a changing verb on one unit; raise SystemctlError."""
        enable = command.verb == "enable"
        if enable or command.verb == "disable":
            self._file(name)
            (self.enabled.add if enable else self.enabled.discard)(name)
            if command.now:
                self._set(self._service(name, command.verb), "start" if enable else "stop", command)
        else:
            self._set(self._service(name, command.verb), command.verb, command)
        return ""

    def _set(self, service: Service, verb: str, command: _CommandLine) -> None:
        """Start, stop, restart or signal a service, and wait unless --no-block is given; raise SystemctlError if a start fails."""
        if verb == "kill":
            service.kill(command.signal)
            return
        if not command.block:
            threading.Thread(target=getattr(service, verb), name=f"systemctl {verb}", daemon=True).start()
            return
        {"start": service.start, "stop": service.stop, "restart": service.restart}[verb]()
        if verb != "stop" and STATES[service.outcome()] != "ready":
            unit = service.program.unit
            raise SystemctlError(f"Job for {unit} failed; its log is {service.program.log}, and 'systemctl show {unit}' prints its state.")

    def _states(self, command: _CommandLine) -> tuple[int, str]:
        """Return the exit status, 0 if any unit has the state, and one state per line."""
        if command.verb == "is-enabled":
            states = [self._file_state(name) for name in command.units]
            missing = all(state == "not-found" for state in states)
            return 0 if "enabled" in states else NOT_THERE if missing else 1, _lines(states)
        expected = "active" if command.verb == "is-active" else "failed"
        found = [self._services.get(name) for name in command.units]
        states = [ACTIVE[service.state] if service else "inactive" for service in found]
        none = NOT_THERE if not any(found) else NOT_ACTIVE if expected == "active" else 1
        return 0 if expected in states else none, _lines(states)

    def _list(self, names: list[str]) -> tuple[int, str]:
        known = [name for name in sorted({*self._services, *self._files}) if not names or name in names]
        return (0 if known else 1), _lines([f"{name} {self._file_state(name)}" for name in known])

    def _file_state(self, name: str) -> str:
        if name not in self._services and name not in self._files:
            return "not-found"
        return "enabled" if name in self.enabled else "disabled"

    def _show(self, name: str, command: _CommandLine) -> str:
        """Return the properties of a unit, one NAME=VALUE per line; a missing unit has LoadState=not-found."""
        service, file_state = self._services.get(name), self._file_state(name)
        found = {"Id": name, "Names": name, "LoadState": "loaded" if file_state != "not-found" else "not-found"}
        found |= {"ActiveState": "inactive", "SubState": "dead", "UnitFileState": file_state if file_state != "not-found" else ""}
        if name in self._files:
            found["FragmentPath"] = str(self._files[name])
        if service:
            found |= _running(service)
        shown = {key: found.get(key, "") for key in command.properties} if command.properties else found
        return _lines([value if command.values_only else f"{key}={value}" for key, value in shown.items()])

    def _service(self, name: str, verb: str) -> Service:
        """Return a service by unit name; raise SystemctlError."""
        if name not in self._services:
            raise SystemctlError(f"Failed to {verb} {name}: Unit {name} not found.", CANNOT_START)
        return self._services[name]

    def _file(self, name: str) -> Path:
        """Return a unit's file; raise SystemctlError."""
        if name not in self._files:
            raise SystemctlError(f"No files found for {name}.")
        return self._files[name]


def _running(service: Service) -> dict[str, str]:
    """Return the properties of a service from its running or last process."""
    status = service.exit_status
    main = {"MainPID": str(service.pid or 0), "NRestarts": str(service.restarts), "Result": service.result}
    ended = {"ExecMainCode": "0", "ExecMainStatus": "0"}
    if status is not None and service.pid is None:
        ended = {"ExecMainCode": str(KILLED if status < 0 else EXITED), "ExecMainStatus": str(abs(status))}
    kind = "oneshot" if service.program.oneshot else "notify" if service.program.notify else "simple"
    return {"Type": kind, "ActiveState": ACTIVE[service.state], "SubState": service.sub_state, **main, **ended}


def _lines(values: Collection[str]) -> str:
    return "".join(f"{value}\n" for value in values)


VERBS = {"show", "start", "stop", "restart", "kill", "is-active", "is-failed", "is-enabled", "enable", "disable", "daemon-reload", "cat"}
VERBS |= {"list-unit-files"}


def _parse(argv: list[str]) -> _CommandLine:
    """Parse a command line; raise SystemctlError for an unsupported one."""
    command = _CommandLine("", [], [])
    words = iter(argv)
    for word in words:
        option, equals, value = word.partition("=")
        if word in IGNORED:
            continue
        if word in ("--no-block", "--now", "--value"):
            command.block, command.now = command.block and word != "--no-block", command.now or word == "--now"
            command.values_only = command.values_only or word == "--value"
        elif option in ("-p", "--property"):
            command.properties += (value if equals else next(words, "")).split(",")
        elif option in ("-s", "--signal"):
            command.signal = _signal(value if equals else next(words, ""))
        elif word.startswith("-"):
            raise SystemctlError(f"systemctl: unrecognized option '{word}' on a machine of a rehearsal")
        elif command.verb:
            command.units.append(word if "." in word else f"{word}.service")
        else:
            command.verb = word
    if command.verb not in VERBS:
        raise SystemctlError(f"Unknown command verb '{command.verb}' on a machine of a rehearsal; it has {', '.join(sorted(VERBS))}.")
    if not command.units and command.verb not in ("daemon-reload", "list-unit-files"):
        raise SystemctlError("Too few arguments.")
    return command


def _signal(word: str) -> signal.Signals:
    """Return a signal by name, with or without SIG, or by number; raise SystemctlError."""
    try:
        return signal.Signals(int(word)) if word.isdecimal() else signal.Signals[word if word.startswith("SIG") else f"SIG{word}"]
    except (KeyError, ValueError):
        raise SystemctlError(f"Failed to parse signal string {word}.") from None
