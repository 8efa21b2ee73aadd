"""Services of a run: addition, limits of their logs, and their common end."""

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
"""Time from SIGTERM to SIGKILL when everything ends; no client would notice an API server's longer orderly shutdown."""
LOG_SECONDS = 5.0


class Supervisor:
    """The services of one run, which end when the run is closed."""

    def __init__(self, run: RunDirectory, say: Callable[[str], None] = lambda _: None) -> None:
        """Manage services in a run; `say` gets a sentence for each restart, from other threads."""
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
        """Return all services in the order of their addition."""
        return tuple(self._services.values())

    def add(self, program: ServiceDefinition) -> Service:
        """Add a service without starting it; raise ValueError if the name exists or everything has ended."""
        with self._mutex:
            if self._closed.is_set():
                raise ValueError(f"{program.name}: its run has ended; start another run")
            if program.name in self._services:
                raise ValueError(f"{program.name}: a service of this name exists; use a unique name")
            service = Service(program, self._run.marker, self._sockets / str(len(self._services)), self._say)
            self._services[program.name] = service
            return service

    def close(self) -> None:
        """End all services: SIGTERM, the latest first, then SIGKILL after PATIENCE_SECONDS; a second call does nothing."""
        with self._mutex:
            self._closed.set()
            ending = tuple(reversed(self._services.values()))
        for service in ending:
            service.end_for_good(PATIENCE_SECONDS)
        for service in ending:
            service.join()
        self._logs.join()

    def _bound_logs(self) -> None:
        """Limit the logs' sizes periodically, because their writers have no limit."""
        while not self._closed.wait(LOG_SECONDS):
            for service in self.services:
                service_log.limit_size(service.program.log)
