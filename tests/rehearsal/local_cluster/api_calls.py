"""How tests call an API server while it fails: nothing is tried twice, and every kind of failure is an OSError."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from urllib3 import HTTPHeaderDict

from rehearsal.local_cluster.objects import kubeconfig

PATIENCE_SECONDS = 75.0
"""Longer than an API server works on a request."""


@dataclass(frozen=True)
class Reply:
    """Status, headers by name in any capitals, and body of an answer."""

    status: int
    headers: HTTPHeaderDict
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        """What the server says of a refusal."""
        try:
            return str(self.body.get("message", ""))
        except ValueError:
            return self.text[:300]


def reply_on(
    connection: http.client.HTTPConnection, method: str, path: str, text: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """One request and its whole answer on a connection that stays with whoever made it."""
    connection.request(method, path, text, headers or {})
    answer = connection.getresponse()
    return Reply(answer.status, HTTPHeaderDict(answer.getheaders()), answer.read().decode(errors="replace"))


class Client:
    """One client with a kubeconfig's certificate, and other headers beside it (impersonation); not for several threads.

    Each request goes by a connection of its own, or, kept, by one that whoever made the client closes.
    """

    def __init__(
        self, path: Path, seconds: float = PATIENCE_SECONDS, headers: Mapping[str, str] | None = None, *, kept: bool = False
    ) -> None:
        self._connection = _connection(path, seconds)
        self._kept = kept
        self._headers = {"Content-Type": "application/json", **(headers or {})}

    def ask(self, method: str, path: str, item: object = None) -> Reply:
        """One request; OSError where no whole answer came, after which the next goes by a new connection."""
        try:
            return reply_on(self._connection, method, path, None if item is None else json.dumps(item), self._headers)
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(f"{type(error).__name__} {error}") from error
        except OSError:
            self._connection.close()
            raise
        finally:
            if not self._kept:
                self._connection.close()

    def get(self, path: str) -> Any:
        """Body of an answer that must be good."""
        reply = self.ask("GET", path)
        assert reply.status == 200, reply.message
        return reply.body

    def make(self, path: str, item: object) -> None:
        """Create an object, or leave the one that is there."""
        reply = self.ask("POST", path, item)
        assert reply.status in (201, 409), reply.message

    def close(self) -> None:
        self._connection.close()


def _connection(path: Path, seconds: float) -> http.client.HTTPSConnection:
    """A connection with a kubeconfig's certificate, none of whose steps takes longer than so many seconds."""
    access = kubeconfig.read(path)
    return http.client.HTTPSConnection(access.host, access.port, timeout=seconds, context=access.tls)


def watched(path: Path, what: str, query: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Events of a watch as they come, until the server ends it; OSError where it breaks or is silent for so long.

    A watch that is refused at once is an ERROR, as one is that the server gives up later.
    """
    connection = _connection(path, seconds)
    try:
        connection.request("GET", f"{what}?watch=1&{query}")
        answer = connection.getresponse()
        if answer.status != 200:
            yield {"type": "ERROR", "object": {"code": answer.status, "message": answer.read().decode(errors="replace")}}
            return
        while line := answer.readline():
            yield json.loads(line)
    except http.client.HTTPException as error:
        raise ConnectionError(type(error).__name__) from error
    finally:
        connection.close()


@dataclass
class Watch:
    """A watch that is held open by hand: names of the objects that were told of, in order."""

    path: Path
    what: str
    names: list[str] = field(default_factory=list)
    version: str = ""

    def events(self, seconds: float) -> Iterator[str]:
        """Names as they come, on from where it was, until the server ends the watch; OSError where it breaks or is silent for so long."""
        for event in watched(self.path, self.what, f"allowWatchBookmarks=true&resourceVersion={self.version}", seconds):
            assert event["type"] != "ERROR", event
            self.version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] == "ADDED":
                self.names.append(event["object"]["metadata"]["name"])
                yield self.names[-1]
