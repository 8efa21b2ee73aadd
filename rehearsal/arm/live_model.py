"""Holds the model while it is served: lets time go on, and keeps whatever happens before anybody hears of it."""

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
from rehearsal.azure.state_directory import StateDirectory

READS = ("GET", "HEAD")


@dataclass
class LiveModel:
    """A model, its clock, and the directory in which it is kept; None keeps nothing.

    Nothing here waits for anything: between catch_up and settle no other request is served.
    """

    cloud: Cloud
    clock: TimeSource
    directory: StateDirectory | None = None
    _untold: bool = False
    """Whether time has brought something about that the journal does not know."""

    def catch_up(self) -> None:
        """Let happen what is due by now; AzureError 503 while what has happened before cannot be written."""
        self.settle()
        now = self.clock.now()
        while self.cloud.step(now):
            self._untold = True

    def ask(self, request: Request) -> Response:
        """Ask the model, and note what it accepted; AzureError."""
        answer = self.cloud.handle(request)
        if request.method not in READS:
            self._note(change_log.change_of_request(request))
        return answer

    def make(self, what: Json) -> Any:
        """Make a change that is no request of Azure Resource Manager's, now, and note it; AzureError."""
        change = {**what, "at": self.cloud.now}
        made = change_log.apply_change(self.cloud, change)
        self._note(what)
        return made

    def wait(self, until: float) -> None:
        """Let time go on to a moment."""
        while self.cloud.step(until):
            pass
        self._untold = True

    def settle(self) -> None:
        """Write what has happened; AzureError 503 where the disk takes nothing, and then nothing may be told of it."""
        if self.directory is None:
            return
        if self._untold:
            self._note({"do": change_log.TIME})
        try:
            self.directory.flush()
        except OSError as error:
            reason = f"{self.directory.folder} cannot be written ({error.strerror}): nothing is acknowledged until it can."
            raise AzureError(503, "ServerBusy", reason, headers={"Retry-After": "10"}) from None
        if self.directory.full:
            self.snapshot()

    def snapshot(self) -> bool:
        """Write everything as one snapshot; False, told on stderr, where the disk takes no more: the journal goes on then."""
        if self.directory is None:
            return True
        try:
            save(self.directory, self.cloud)
        except OSError as error:
            sys.stderr.write(f"{self.directory.folder}: no snapshot could be written ({error.strerror}); the journal holds everything\n")
            return False
        return True

    def _note(self, what: Json) -> None:
        self._untold = False
        if self.directory is not None:
            self.directory.append({**what, "at": self.cloud.now})
