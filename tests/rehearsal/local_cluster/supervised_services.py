"""Services of a separate run, with short programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from waiting import DEADLINE_SECONDS

from rehearsal.local_cluster import reaper
from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd.supervisor import Service, ServiceDefinition, Supervisor

SEND = "import os, socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto({!r}, os.environ['NOTIFY_SOCKET'])"


class SupervisedServices:
    """A supervisor in a run, with short programs."""

    def __init__(self, run: RunDirectory) -> None:
        self.run, self.said = run, list[str]()
        self.supervisor = Supervisor(run, self.said.append)

    def add(self, *argv: str, name: str = "machine/thing.service", **more: Any) -> Service:
        folder = self.run.path / "machine"
        return self.supervisor.add(
            ServiceDefinition(name, argv, {"PATH": os.environ["PATH"]}, folder / f"{Path(name).name}.log", folder, **more)
        )

    def shell(self, script: str, **more: Any) -> Service:
        return self.add("sh", "-c", script, **more)

    def file(self, name: str) -> Path:
        return self.run.path / name


def ready(service: Service) -> Service:
    service.start()
    service.wait_ready(DEADLINE_SECONDS)
    return service


def notifying(*messages: bytes, then: str = "exec sleep 1000") -> str:
    """Return a shell script that sends messages by sd_notify."""
    python = "\n".join(SEND.format(message) for message in messages)
    return f'"{sys.executable}" -c "{python}" && {then}'


def count_marked(run: RunDirectory) -> int:
    found, _ = reaper.marked_processes(run.marker)
    for descriptor in found:
        os.close(descriptor)
    return len(found)
