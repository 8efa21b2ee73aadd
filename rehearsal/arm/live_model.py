"""Model that is served: it advances the clock, and stores every change before the response."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from rehearsal.arm.time_source import TimeSource
from rehearsal.azure import change_log
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.persistence import save
from rehearsal.azure.resource import Json, Request, Response
from rehearsal.azure.resource_type import READS
from rehearsal.azure.state_directory import StateDirectory


@dataclass
class LiveModel:
    """A model, its clock, and its state directory; None stores nothing.

    No method waits: between catch_up and settle no other request is served.
    """

    cloud: Cloud
    clock: TimeSource
    directory: StateDirectory | None = None
    _unwritten: bool = False
    """True if an event has occurred that is not in the journal yet."""

    def catch_up(self) -> None:
        """Run the events that are due; raise AzureError 503 while earlier changes cannot be written."""
        self.settle()
        now = self.clock.now()
        while self.cloud.step(now):
            self._unwritten = True

    def ask(self, request: Request) -> Response:
        """Send a request to the model, and journal an accepted change; raise AzureError."""
        answer = change_log.ask(self.cloud, request)
        if request.method not in READS:
            self._note(change_log.change_of_request(request))
        return answer

    def make(self, what: Json) -> Any:
        """Make a change outside Azure Resource Manager, and journal it; raise AzureError."""
        change = {**what, "at": self.cloud.now}
        made = change_log.apply_change(self.cloud, change)
        self._note(what)
        return made

    def wait(self, until: float) -> None:
        """Run all events up to a time."""
        while self.cloud.step(until):
            pass
        self._unwritten = True

    def settle(self) -> None:
        """Write all changes; raise AzureError 503 where the disk cannot be written: the changes are then not acknowledged."""
        if self.directory is None:
            return
        if self._unwritten:
            self._note({"do": change_log.TIME})
        try:
            self.directory.flush()
        except OSError as error:
            reason = f"{self.directory.folder} cannot be written ({error.strerror}): nothing is acknowledged until it can."
            raise AzureError(503, "ServerBusy", reason, headers={"Retry-After": "10"}) from None
        if self.directory.full:
            self.snapshot()

    def snapshot(self) -> bool:
        """Write one snapshot; print an error and return False where the disk cannot be written: the journal continues."""
        if self.directory is None:
            return True
        try:
            save(self.directory, self.cloud)
        except OSError as error:
            sys.stderr.write(f"{self.directory.folder}: no snapshot could be written ({error.strerror}); the journal holds everything\n")
            return False
        return True

    def _note(self, what: Json) -> None:
        self._unwritten = False
        if self.directory is not None:
            self.directory.append({**what, "at": self.cloud.now})
