"""systemctl of a rehearsed machine answers scripts and Ansible as systemd's does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.service_definition import STATES
from rehearsal.local_cluster.systemd.supervisor import Service, ServiceDefinition, Supervisor
from tests.support.unit_control import ACTIVE, UnitControl

UNIT = "[Service]\nExecStart=/bin/sleep 1000\n"


@dataclass
class Controlled:
    """A machine with a steady, a failing and a oneshot service, and its systemctl."""

    folder: Path
    services: dict[str, Service]

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        done = subprocess.run([self.folder / "systemctl", *argv], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def shown(self, unit: str) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self("show", unit)[1].splitlines())

    def ansible(self, **arguments: Any) -> dict[str, Any]:
        """The result of ansible.builtin.systemd_service, run on this machine as Ansible runs it, with its PATH in front."""
        done = subprocess.run(
            [sys.executable, "-m", "ansible.modules.systemd_service"],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"},
        )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


@pytest.fixture
def controlled() -> Iterator[Controlled]:
    with RunDirectory() as run:
        supervisor = Supervisor(run)
        folder = run.path / "machine"
        services, files = {}, {}
        for name, argv, more in (
            ("steady.service", ("sleep", "1000"), {"restart_seconds": 0.01}),
            ("failing.service", ("false",), {"notify": True}),
            ("once.service", ("true",), {"oneshot": True}),
        ):
            program = ServiceDefinition(
                f"machine/{name}", argv, {"PATH": os.environ["PATH"]}, folder / f"{name}.log", folder / name, **more
            )
            services[name] = supervisor.add(program)
            files[name] = folder / "units" / name
            files[name].parent.mkdir(parents=True, exist_ok=True)
            files[name].write_text(UNIT)
        yield Controlled(UnitControl(run, folder / "sbin", services, {"steady.service"}, files).folder, services)


def test_a_unit_is_started_shown_restarted_and_stopped(controlled: Controlled) -> None:
    steady = controlled.services["steady.service"]
    assert controlled("is-active", "steady") == (3, "inactive\n", "")
    assert controlled("start", "steady") == (0, "", "")
    assert controlled("is-active", "steady.service") == (0, "active\n", "")
    shown = controlled.shown("steady")
    assert shown["MainPID"] == str(steady.pid)
    assert {"ActiveState": "active", "SubState": "running", "LoadState": "loaded", "UnitFileState": "enabled"}.items() <= shown.items()
    steady.kill()
    until(lambda: controlled.shown("steady")["NRestarts"] == "1", "it was restarted")
    until(lambda: steady.state == "ready", "it runs again")
    before = steady.pid
    assert controlled("restart", "steady")[0] == 0
    assert steady.pid not in (None, before)
    assert controlled("show", "-p", "NRestarts,Result", "--value", "steady") == (0, "0\nsuccess\n", "")
    assert controlled("stop", "steady")[0] == 0
    assert controlled.shown("steady")["ActiveState"] == "inactive"
    assert steady.pid is None


def test_a_start_that_fails_says_so_and_leaves_the_status_to_be_shown(controlled: Controlled) -> None:
    status, _, said = controlled("start", "failing")
    assert status == 1
    assert said.startswith("Job for failing.service failed; its log is ")
    expected = {"ActiveState": "failed", "Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "1", "MainPID": "0"}
    assert expected.items() <= controlled.shown("failing").items()
    assert controlled("is-failed", "failing") == (0, "failed\n", "")
    assert controlled("start", "once")[0] == 0
    assert controlled.shown("once")["SubState"] == "exited"


def test_units_are_enabled_and_disabled_and_their_files_shown(controlled: Controlled) -> None:
    assert controlled("is-enabled", "steady", "once") == (0, "enabled\ndisabled\n", "")
    assert controlled("is-enabled", "once") == (1, "disabled\n", "")
    assert controlled("enable", "--now", "once")[0] == 0
    assert controlled("is-enabled", "once")[0] == 0
    assert controlled.services["once.service"].state == "ready"
    assert controlled("disable", "once")[0] == 0
    assert controlled("is-enabled", "once")[0] == 1
    assert UNIT in controlled("cat", "steady")[1]
    assert controlled("list-unit-files", "steady.service") == (0, "steady.service enabled\n", "")
    assert controlled("daemon-reload") == (0, "", "")


def test_a_signal_reaches_the_unit(controlled: Controlled) -> None:
    controlled("start", "steady")
    assert controlled("kill", "-s", "KILL", "steady")[0] == 0
    until(lambda: controlled.shown("steady")["NRestarts"] == "1", "it was restarted")
    assert controlled.shown("steady")["Result"] == "signal"


def test_units_that_are_not_there_and_commands_that_are_not_known_are_refused_as_systemd_does(controlled: Controlled) -> None:
    assert controlled("start", "nothing") == (5, "", "Failed to start nothing.service: Unit nothing.service not found.\n")
    assert controlled.shown("nothing")["LoadState"] == "not-found"
    assert controlled("is-active", "nothing")[0] == 4
    assert controlled("is-enabled", "nothing")[0] == 4
    assert controlled("list-unit-files", "nothing.service")[0] == 1
    assert controlled("isolate", "rescue.target")[0] == 1
    assert controlled("--user", "start", "steady")[2].startswith("systemctl: unrecognized option '--user'")
    assert controlled("start") == (1, "", "Too few arguments.\n")


def test_without_the_run_systemctl_says_that_the_machine_does_not_run() -> None:
    with RunDirectory() as run:
        script = (UnitControl(run, run.path / "sbin", {}, (), {}).folder / "systemctl").read_text()
    done = subprocess.run(["sh", "-c", script, "systemctl", "show", "x"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Failed to connect to bus: the machine does not run\n")


def test_ansibles_module_works_unchanged(controlled: Controlled) -> None:
    steady = controlled.services["steady.service"]
    started = controlled.ansible(name="steady.service", state="started", daemon_reload=True)
    assert (started["changed"], started["state"], steady.state) == (True, "started", "ready")
    assert controlled.ansible(name="steady", state="started", enabled=True)["changed"] is False
    before = steady.pid
    assert controlled.ansible(name="steady", state="restarted")["changed"] is True
    assert steady.pid not in (None, before)
    assert controlled.ansible(name="steady", state="stopped", enabled=False)["changed"] is True
    assert (steady.state, controlled("is-enabled", "steady")[1]) == ("stopped", "disabled\n")
    assert "Could not find the requested service nothing" in controlled.ansible(name="nothing", state="started")["msg"]
    assert controlled.ansible(name="failing", state="started")["msg"].startswith("Unable to start service failing: Job for failing.service")


def test_every_state_has_systemds_word() -> None:
    assert set(STATES.values()) == set(ACTIVE)
