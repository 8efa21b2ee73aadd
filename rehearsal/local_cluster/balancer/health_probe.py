"""Decides which backends of a load balancer are up, by probing them as Azure's health probes do.

An HTTP(S) probe marks a backend down at once when it answers anything but 200 or resets the connection, and after the failure count when it
does not answer within the interval; the certificate is not verified:
https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

NEW_SECONDS = 0.5
"""From one probe to the next of a backend that was never up; Azure's goes on with its interval, for which no rehearsal waits."""


@dataclass(frozen=True)
class Backend:
    """A member of the backend pool."""

    name: str
    host: str
    port: int


@dataclass(frozen=True)
class ProbeSettings:
    """The probe: seconds from one to the next, which bound an answer too, and how many unanswered ones mark a backend down."""

    interval_seconds: float
    failures: int
    path: str = "/readyz"


class Probe:
    """Probes one backend from now on, in a thread; down until the first answer of 200."""

    def __init__(self, backend: Backend, settings: ProbeSettings, changed: Callable[[], None]) -> None:
        """Begin; `changed` is called, from the thread, after every change between up and down."""
        self.backend, self.up, self.last = backend, False, "not probed yet"
        self._settings, self._changed = settings, changed
        self._unanswered = 0
        self._was_up = False
        self._stopped = threading.Event()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._thread = threading.Thread(target=self._run, name=f"probe of {backend.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Probe no more; the one under way has no effect."""
        self._stopped.set()

    def state(self) -> dict[str, Any]:
        """The backend and what the latest probe found."""
        backend = self.backend
        return {"name": backend.name, "address": f"{backend.host}:{backend.port}", "up": self.up, "last": self.last}

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopped.wait(max(0.0, due - time.monotonic())):
            began = time.monotonic()
            self._probe()
            interval = self._settings.interval_seconds
            due = began + (interval if self._was_up else min(NEW_SECONDS, interval))

    def _probe(self) -> None:
        """Probe once, and draw the consequence."""
        try:
            status = self._ask()
        except (ConnectionError, ssl.SSLError, http.client.HTTPException) as error:
            up, self.last = False, f"{type(error).__name__}: {error}"
        except OSError as error:
            self._unanswered += 1
            up, self.last = self.up and self._unanswered < self._settings.failures, f"no answer ({self._unanswered}): {error}"
        else:
            self._unanswered = 0
            up, self.last = status == HTTPStatus.OK, str(status)
        if up != self.up and not self._stopped.is_set():
            self.up = up
            self._was_up = True
            self._changed()

    def _ask(self) -> int:
        """The status of one GET on a connection of its own."""
        backend, settings = self.backend, self._settings
        connection = http.client.HTTPSConnection(backend.host, backend.port, timeout=settings.interval_seconds, context=self._context)
        try:
            connection.request("GET", settings.path, headers={"User-Agent": "Load Balancer Agent"})
            return connection.getresponse().status
        finally:
            connection.close()
