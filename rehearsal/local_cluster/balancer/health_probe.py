"""Health probes of a load balancer's backends, as Azure's probes work.

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
"""Interval of probes of a backend that was never up; Azure uses the normal interval, for which a rehearsal should not wait."""


@dataclass(frozen=True)
class Backend:
    """A member of the backend pool."""

    name: str
    host: str
    port: int


@dataclass(frozen=True)
class ProbeSettings:
    """Settings of a probe: interval, which is also its timeout, and number of unanswered probes that mark a backend down."""

    interval_seconds: float
    failures: int
    path: str = "/readyz"


class Probe:
    """Probe of one backend in a thread; the backend is down until the first status 200."""

    def __init__(self, backend: Backend, settings: ProbeSettings, changed: Callable[[], None]) -> None:
        """Start; `changed` is called from the thread after every change between up and down."""
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
        """Stop probing; a probe in progress has no effect."""
        self._stopped.set()

    def state(self) -> dict[str, Any]:
        """Return the backend and the result of the last probe."""
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
        """Probe once, and update the state."""
        try:
            status = self._request()
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

    def _request(self) -> int:
        """Return the status of one GET on a new connection."""
        backend, settings = self.backend, self._settings
        connection = http.client.HTTPSConnection(backend.host, backend.port, timeout=settings.interval_seconds, context=self._context)
        try:
            connection.request("GET", settings.path, headers={"User-Agent": "Load Balancer Agent"})
            return connection.getresponse().status
        finally:
            connection.close()
