"""A client that lists objects and watches them from there, as every controller does, and begins anew where the server tells it to."""

from __future__ import annotations

import http.client
import json
import sys
import threading
from pathlib import Path

from rehearsal.cluster.objects import kubeconfig

sys.path.insert(0, str(Path(__file__).parents[1] / "rehearsal/faults"))
from calling import Client

SILENT_SECONDS = 15.0
GONE = 410


class Follower(threading.Thread):
    """names are the objects that it knows; lists counts how often it began anew because the server no longer knew its revision."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(name="follower", daemon=True)
        self.path, self.what, self.over = path, what, threading.Event()
        self.names: set[str] = set()
        self.anew = 0

    def __enter__(self) -> Follower:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()

    def run(self) -> None:
        version = ""
        while not self.over.wait(0.2):
            try:
                version = self._watched(version) if version else self._listed()
            except (OSError, http.client.HTTPException):
                continue

    def _listed(self) -> str:
        reply = Client(self.path).ask("GET", self.what)
        if reply.status != 200:
            return ""
        self.names = {item["metadata"]["name"] for item in reply.body["items"]}
        return str(reply.body["metadata"]["resourceVersion"])

    def _watched(self, version: str) -> str:
        """Revision from which the next watch goes on; empty where there is none, and all is listed anew."""
        access = kubeconfig.read(self.path)
        connection = http.client.HTTPSConnection(access.host, access.port, timeout=SILENT_SECONDS, context=access.tls)
        try:
            connection.request("GET", f"{self.what}?watch=1&timeoutSeconds=10&resourceVersion={version}")
            answer = connection.getresponse()
            if answer.status != 200:
                return self._begun_anew() if answer.status == GONE else version
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return self._begun_anew() if event["object"]["code"] == GONE else version
                metadata = event["object"]["metadata"]
                version = metadata["resourceVersion"]
                (self.names.discard if event["type"] == "DELETED" else self.names.add)(metadata["name"])
        except OSError:
            return version
        finally:
            connection.close()
        return version

    def _begun_anew(self) -> str:
        self.anew += 1
        return ""
