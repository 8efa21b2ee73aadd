"""Answers what systemctl is asked on one machine, truly and in systemctl's words, so that Ansible's systemd_service works unchanged.

Exit statuses as https://www.freedesktop.org/software/systemd/man/latest/systemctl.html, "Exit status": 3 not active, 4 no such unit; and 5
for a unit that cannot be started because there is none.
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
LONGEST_REQUEST = 64 * 2**10


class SystemctlError(Exception):
    """What systemctl says on standard error, and its exit status."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class _Asked:
    """A command line of systemctl."""

    verb: str
    units: list[str]
    properties: list[str]
    values_only: bool = False
    block: bool = True
    now: bool = False
    signal: signal.Signals = signal.SIGTERM


class UnitControl:
    """A machine's systemctl: the program of that name in `folder`, which goes in front of PATH, and who answers it."""

    folder: Path

    def __init__(
        self, run: RunDirectory, folder: Path, services: Mapping[str, Service], enabled: Collection[str], unit_files: Mapping[str, Path]
    ) -> None:
        """Write the program and listen. Services and files go by unit name; `enabled` names the units that start with the machine."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.enabled = folder, set(enabled)
        self._services, self._files = services, unit_files
        # A machine's folder may lie too deep for a socket's path.
        where = run.path / "control" / secrets.token_hex(4)
        where.parent.mkdir(mode=0o700, exist_ok=True)
        script = folder / "systemctl"
        client = shlex.join([sys.executable, "-I", "-S", systemctl.__file__, str(where)])
        script.write_text(f'#!/bin/sh\nexec {client} "$@"\n')
        script.chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(where))
        self._listener.listen()
        threading.Thread(target=self._listen, name=f"systemctl of {folder}", daemon=True).start()

    def _listen(self) -> None:
        while True:
            asking, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(asking,), name="systemctl", daemon=True).start()

    def _answer(self, asking: socket.socket) -> None:
        """Read a command line, do it and tell the outcome; a client that has gone does not matter, nor one that sends no command line."""
        with asking, asking.makefile("rb") as request:
            try:
                status, out, err = self.run(json.loads(request.read(LONGEST_REQUEST)))
                asking.sendall(json.dumps({"status": status, "out": out, "err": err}).encode())
            except (OSError, ValueError):
                return

    def run(self, argv: list[str]) -> tuple[int, str, str]:
        """Exit status, standard output and standard error of `systemctl ARGV`."""
        try:
            asked = _parse(argv)
            status, out = self._do(asked)
        except SystemctlError as error:
            return error.status, "", f"{error}\n"
        return status, out, ""

    def _do(self, asked: _Asked) -> tuple[int, str]:
        if asked.verb == "daemon-reload":
            return 0, ""
        if asked.verb == "show":
            return 0, "\n".join(self._show(name, asked) for name in asked.units)
        if asked.verb in ("is-active", "is-failed", "is-enabled"):
            return self._tell_states(asked)
        if asked.verb == "list-unit-files":
            return self._list(asked.units)
        if asked.verb == "cat":
            return 0, "\n".join(f"# {self._file(name)}\n{self._file(name).read_text()}" for name in asked.units)
        return 0, "".join(self._change(asked, name) for name in asked.units)

    def _change(self, asked: _Asked, name: str) -> str:
        """Do to one unit what changes it; Refused."""
        enable = asked.verb == "enable"
        if enable or asked.verb == "disable":
            self._file(name)
            (self.enabled.add if enable else self.enabled.discard)(name)
            if asked.now:
                self._set(self._service(name, asked.verb), "start" if enable else "stop", asked)
        else:
            self._set(self._service(name, asked.verb), asked.verb, asked)
        return ""

    def _set(self, service: Service, verb: str, asked: _Asked) -> None:
        """Start, stop, restart or signal a service, and unless told otherwise wait for the outcome; Refused where a start fails."""
        if verb == "kill":
            service.kill(asked.signal)
            return
        if not asked.block:
            threading.Thread(target=getattr(service, verb), name=f"systemctl {verb}", daemon=True).start()
            return
        {"start": service.start, "stop": service.stop, "restart": service.restart}[verb]()
        if verb != "stop" and STATES[service.outcome()] != "ready":
            unit = service.program.unit
            raise SystemctlError(f"Job for {unit} failed; its log is {service.program.log}, and 'systemctl show {unit}' tells more.")

    def _tell_states(self, asked: _Asked) -> tuple[int, str]:
        """The states asked for, one a line, with systemctl's exit status: 0 when one is so (is-enabled: when any is)."""
        if asked.verb == "is-enabled":
            states = [self._file_state(name) for name in asked.units]
            missing = all(state == "not-found" for state in states)
            return 0 if "enabled" in states else NOT_THERE if missing else 1, _lines(states)
        wanted = "active" if asked.verb == "is-active" else "failed"
        found = [self._services.get(name) for name in asked.units]
        states = [ACTIVE[service.state] if service else "inactive" for service in found]
        none = NOT_THERE if not any(found) else NOT_ACTIVE if wanted == "active" else 1
        return 0 if wanted in states else none, _lines(states)

    def _list(self, names: list[str]) -> tuple[int, str]:
        known = [name for name in sorted({*self._services, *self._files}) if not names or name in names]
        return (0 if known else 1), _lines([f"{name} {self._file_state(name)}" for name in known])

    def _file_state(self, name: str) -> str:
        if name not in self._services and name not in self._files:
            return "not-found"
        return "enabled" if name in self.enabled else "disabled"

    def _show(self, name: str, asked: _Asked) -> str:
        """Properties of a unit, NAME=VALUE a line; of one that is not there, that it is not."""
        service, file_state = self._services.get(name), self._file_state(name)
        found = {"Id": name, "Names": name, "LoadState": "loaded" if file_state != "not-found" else "not-found"}
        found |= {"ActiveState": "inactive", "SubState": "dead", "UnitFileState": file_state if file_state != "not-found" else ""}
        if name in self._files:
            found["FragmentPath"] = str(self._files[name])
        if service:
            found |= _running(service)
        shown = {key: found.get(key, "") for key in asked.properties} if asked.properties else found
        return _lines([value if asked.values_only else f"{key}={value}" for key, value in shown.items()])

    def _service(self, name: str, verb: str) -> Service:
        """A service by unit name; Refused."""
        if name not in self._services:
            raise SystemctlError(f"Failed to {verb} {name}: Unit {name} not found.", CANNOT_START)
        return self._services[name]

    def _file(self, name: str) -> Path:
        """A unit's file; Refused."""
        if name not in self._files:
            raise SystemctlError(f"No files found for {name}.")
        return self._files[name]


def _running(service: Service) -> dict[str, str]:
    """Properties of a service by what its process does, or did last."""
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


def _parse(argv: list[str]) -> _Asked:
    """A command line; Refused for what is not answered here."""
    asked = _Asked("", [], [])
    words = iter(argv)
    for word in words:
        option, equals, value = word.partition("=")
        if word in IGNORED:
            continue
        if word in ("--no-block", "--now", "--value"):
            asked.block, asked.now = asked.block and word != "--no-block", asked.now or word == "--now"
            asked.values_only = asked.values_only or word == "--value"
        elif option in ("-p", "--property"):
            asked.properties += (value if equals else next(words, "")).split(",")
        elif option in ("-s", "--signal"):
            asked.signal = _signal(value if equals else next(words, ""))
        elif word.startswith("-"):
            raise SystemctlError(f"systemctl: unrecognized option '{word}' on a machine of a rehearsal")
        elif asked.verb:
            asked.units.append(word if "." in word else f"{word}.service")
        else:
            asked.verb = word
    if asked.verb not in VERBS:
        raise SystemctlError(f"Unknown command verb '{asked.verb}' on a machine of a rehearsal; it has {', '.join(sorted(VERBS))}.")
    if not asked.units and asked.verb not in ("daemon-reload", "list-unit-files"):
        raise SystemctlError("Too few arguments.")
    return asked


def _signal(word: str) -> signal.Signals:
    """A signal by name, with or without SIG, or number; Refused."""
    try:
        return signal.Signals(int(word)) if word.isdecimal() else signal.Signals[word if word.startswith("SIG") else f"SIG{word}"]
    except (KeyError, ValueError):
        raise SystemctlError(f"Failed to parse signal string {word}.") from None
