"""A client that lists objects and watches them from there, as every controller does, and begins anew where the server tells it to."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "rehearsal/local_cluster"))
from api_calls import Client, watched

SILENT_SECONDS = 15.0
GONE = 410


class Follower(threading.Thread):
    """names are the objects that it knows; anew counts how often it began anew because the server no longer knew its revision."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(name="follower", daemon=True)
        self.path, self.what, self.over = path, what, threading.Event()
        self.names: set[str] = set()
        self.anew = 0
        self._version = ""

    def __enter__(self) -> Follower:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()

    def run(self) -> None:
        while not self.over.wait(0.2):
            with suppress(OSError):
                if self._version:
                    self._watch()
                else:
                    self._list()

    def _list(self) -> None:
        reply = Client(self.path).request("GET", self.what)
        if reply.status == 200:
            self.names = {item["metadata"]["name"] for item in reply.body["items"]}
            self._version = str(reply.body["metadata"]["resourceVersion"])

    def _watch(self) -> None:
        """Follow from the revision that it knows; without one where the server no longer has it, so that all is listed anew."""
        for event in watched(self.path, self.what, f"timeoutSeconds=10&resourceVersion={self._version}", SILENT_SECONDS):
            if event["type"] == "ERROR":
                if event["object"]["code"] == GONE:
                    self._version = ""
                    self.anew += 1
                return
            metadata = event["object"]["metadata"]
            self._version = metadata["resourceVersion"]
            (self.names.discard if event["type"] == "DELETED" else self.names.add)(metadata["name"])
