"""Requests of tests to an API server that may fail: no request is retried, and every failure is an OSError."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from urllib3 import HTTPHeaderDict

from lifecycle.kubernetes_api import kubeconfig

PATIENCE_SECONDS = 75.0
"""Longer than an API server works on a request."""


@dataclass(frozen=True)
class Reply:
    """A response: status, case-insensitive headers, and body."""

    status: int
    headers: HTTPHeaderDict
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        """Return the server's message of a refusal."""
        try:
            return str(self.body.get("message", ""))
        except ValueError:
            return self.text[:300]


def reply_on(
    connection: http.client.HTTPConnection, method: str, path: str, text: str | None = None, headers: Mapping[str, str] | None = None
) -> Reply:
    """Send one request on a connection of the caller; return the whole response."""
    connection.request(method, path, text, headers or {})
    answer = connection.getresponse()
    return Reply(answer.status, HTTPHeaderDict(answer.getheaders()), answer.read().decode(errors="replace"))


class Client:
    """A client with a kubeconfig's certificate and additional headers (impersonation), for one thread.

    Each request uses a new connection. With keep_open all requests use one, which the caller closes.
    """

    def __init__(
        self, path: Path, seconds: float = PATIENCE_SECONDS, headers: Mapping[str, str] | None = None, *, keep_open: bool = False
    ) -> None:
        self._connection = _connection(path, seconds)
        self._keep_open = keep_open
        self._headers = {"Content-Type": "application/json", **(headers or {})}

    def request(self, method: str, path: str, item: object = None) -> Reply:
        """Send one request; raise OSError without a complete response, after which the next request uses a new connection."""
        try:
            return reply_on(self._connection, method, path, None if item is None else json.dumps(item), self._headers)
        except http.client.HTTPException as error:
            self._connection.close()
            raise ConnectionError(f"{type(error).__name__} {error}") from error
        except OSError:
            self._connection.close()
            raise
        finally:
            if not self._keep_open:
                self._connection.close()

    def get(self, path: str) -> Any:
        """Return the body of a successful response."""
        reply = self.request("GET", path)
        assert reply.status == 200, reply.message
        return reply.body

    def make(self, path: str, item: object) -> None:
        """Create an object unless it exists."""
        reply = self.request("POST", path, item)
        assert reply.status in (201, 409), reply.message

    def close(self) -> None:
        self._connection.close()


def _connection(path: Path, seconds: float) -> http.client.HTTPSConnection:
    """Return a connection with a kubeconfig's certificate and a timeout in seconds."""
    access = kubeconfig.read(path)
    return http.client.HTTPSConnection(access.host, access.port, timeout=seconds, context=access.tls)


def watched(path: Path, what: str, query: str, seconds: float) -> Iterator[dict[str, Any]]:
    """Return the events of a watch until the server ends it; raise OSError if it breaks or is silent for that many seconds.

    A watch that is refused at once yields an ERROR event, as one that the server ends later.
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
    """A watch that the test keeps open: names of the reported objects in order."""

    path: Path
    what: str
    names: list[str] = field(default_factory=list)
    version: str = ""

    def events(self, seconds: float) -> Iterator[str]:
        """Return names from the last position until the server ends the watch; raise OSError if it breaks or is silent."""
        for event in watched(self.path, self.what, f"allowWatchBookmarks=true&resourceVersion={self.version}", seconds):
            assert event["type"] != "ERROR", event
            self.version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] == "ADDED":
                self.names.append(event["object"]["metadata"]["name"])
                yield self.names[-1]
