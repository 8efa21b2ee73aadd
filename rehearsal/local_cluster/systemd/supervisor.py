"""Keeps the services of a run: adds them, bounds their logs, and ends them all together."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rehearsal.local_cluster.run_directory import RunDirectory
from rehearsal.local_cluster.systemd import service_log
from rehearsal.local_cluster.systemd.process import ProcessUsage
from rehearsal.local_cluster.systemd.service import Service
from rehearsal.local_cluster.systemd.service_definition import ServiceDefinition

__all__ = ["ProcessUsage", "Service", "ServiceDefinition", "Supervisor"]

PATIENCE_SECONDS = 2.0
"""From SIGTERM to SIGKILL when everything ends: an API server's orderly end, longer than its shutdown delay, would be seen by nobody."""
LOG_SECONDS = 5.0


class Supervisor:
    """The services of one run; it ends them when the run is closed, and needs no call for that."""

    def __init__(self, run: RunDirectory, say: Callable[[str], None] = lambda _: None) -> None:
        """Keep services in a run; `say` is told of restarts in sentences, from threads of their own."""
        self._run, self._say = run, say
        self._services: dict[str, Service] = {}
        self._mutex = threading.Lock()
        self._closed = threading.Event()
        self._sockets = run.path / "notify"
        self._sockets.mkdir(mode=0o700, exist_ok=True)
        self._logs = threading.Thread(target=self._bound_logs, name="log bounds", daemon=True)
        self._logs.start()
        run.before_end(self.close)

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def services(self) -> tuple[Service, ...]:
        """All services, in the order in which they were added."""
        return tuple(self._services.values())

    def add(self, program: ServiceDefinition) -> Service:
        """A service of that program, not started yet; ValueError where there is one of that name or everything has ended."""
        with self._mutex:
            if self._closed.is_set():
                raise ValueError(f"{program.name}: its run has ended; begin another")
            if program.name in self._services:
                raise ValueError(f"{program.name}: there is a service of that name; give each machine's unit a name of its own")
            service = Service(program, self._run.marker, self._sockets / str(len(self._services)), self._say)
            self._services[program.name] = service
            return service

    def close(self) -> None:
        """End everything: SIGTERM to the latest first, SIGKILL to all that run PATIENCE_SECONDS later; a second call does nothing."""
        with self._mutex:
            self._closed.set()
            ending = tuple(reversed(self._services.values()))
        for service in ending:
            service.end_for_good(PATIENCE_SECONDS)
        for service in ending:
            service.join()
        self._logs.join()

    def _bound_logs(self) -> None:
        """Look at the logs' sizes now and then, since their writers know no bound."""
        while not self._closed.wait(LOG_SECONDS):
            for service in self.services:
                service_log.limit_size(service.program.log)
