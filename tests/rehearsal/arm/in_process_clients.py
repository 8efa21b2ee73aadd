"""The official clients, unpatched, with a transport that calls the embedded Azure in this process instead of a server."""

from __future__ import annotations

import inspect
import io
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import requests
from azure.core.paging import ItemPaged
from azure.core.pipeline.transport import RequestsTransport
from multidict import CIMultiDict
from one_of_each import SUBSCRIPTION, TENANT
from requests.adapters import BaseAdapter
from urllib3 import HTTPResponse

from rehearsal.arm.http_request import HttpRequest, target
from rehearsal.arm.live_model import LiveModel
from rehearsal.arm.resource_manager import ResourceManager
from rehearsal.arm.responses import error_response
from rehearsal.arm.time_source import TimeSource
from rehearsal.azure.client_operations import operation_key
from rehearsal.azure.errors import AzureError
from rehearsal.azure.registry import new_cloud
from tests.support.client_sources import SourceOperation
from tests.support.sdk_clients import sdk_client

BASE = "https://embedded"


class InProcess(BaseAdapter):
    """Stands where requests leave the process. answered holds each request's key with status and headers of its response."""

    def __init__(self) -> None:
        super().__init__()
        cloud = new_cloud([SUBSCRIPTION], TENANT)
        self.live = LiveModel(cloud, TimeSource(0.0, cloud.now))
        self.manager = ResourceManager(self.live, BASE)
        self.answered: list[tuple[str, int, Mapping[str, str]]] = []

    def close(self) -> None: ...

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        found = urlsplit(str(request.url))
        body = request.body.read() if hasattr(request.body, "read") else request.body or b""
        status, content, headers = self.ask(
            str(request.method), f"{found.path}?{found.query}", body if isinstance(body, bytes) else body.encode(), request.headers
        )
        raw = HTTPResponse(io.BytesIO(content), headers=dict(headers), status=status, preload_content=False)
        return requests.adapters.HTTPAdapter().build_response(request, raw)

    def ask(
        self, method: str, where: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Return status, body and headers of the response."""
        self.live.catch_up()
        parts, path, query = target(where)
        call = HttpRequest(method, parts, path, query, CIMultiDict(headers or {}), body)
        try:
            answer = self.manager.answer(call, "tester")
        except AzureError as error:
            answer = error_response(error, self.live.clock)
        self.answered.append((operation_key(method, path), answer.status, answer.headers))
        return answer.status, bytes(answer.body or b""), answer.headers  # type: ignore[arg-type]


class Transport(RequestsTransport):
    """A client's own transport, whose waits move the model's clock."""

    def __init__(self, adapter: InProcess) -> None:
        session = requests.Session()
        session.mount(BASE, adapter)
        super().__init__(session=session, session_owner=False)
        self.adapter = adapter

    def sleep(self, duration: float) -> None:  # noqa: ARG002 the model's clock moves by a minute, whatever the duration
        self.adapter.live.clock.move(60.0)


class OfficialClients:
    """The official clients of one Azure in this process."""

    def __init__(self) -> None:
        self.adapter = InProcess()
        self._clients: dict[str, Any] = {}

    def client(self, package: str) -> Any:
        """Return the client of a package."""
        if package not in self._clients:
            options = {"base_url": BASE, "credential_scopes": [f"{BASE}/.default"], "transport": Transport(self.adapter)}
            self._clients[package] = sdk_client(package, SUBSCRIPTION, **options)
        return self._clients[package]

    def call(self, operation: SourceOperation, text: str, body: Any = None, **more: Any) -> Any:
        """Call an operation at a path that it matches, and wait for the result of a poller or read all of a list."""
        values = arguments(operation.path, text)
        assert values is not None
        method = getattr(getattr(self.client(operation.package.partition(".")[0]), operation.group), operation.name)
        names = inspect.signature(method).parameters
        given = {operation.parameters[key]: value for key, value in values.items()}
        sent = {name: value for name, value in given.items() if name in names}
        for name, one in names.items():
            if body is not None and name not in sent and one.kind is one.POSITIONAL_OR_KEYWORD and not name.startswith("_"):
                sent[name] = io.BytesIO(json.dumps(body).encode())
                break
        result = method(**sent, **more)
        if operation.polled:
            return result.result()
        return list(result) if isinstance(result, ItemPaged) else result


@cache
def _pattern(template: str) -> re.Pattern[str]:
    text = re.sub(r"\\\{(\w+)\\\}", lambda found: f"(?P<{found[1]}>{'.+' if found[1] == 'scope' else '[^/]+'})", re.escape(template))
    return re.compile(text, re.IGNORECASE)


def arguments(template: str, text: str) -> dict[str, str] | None:
    """Return the values of a path by the template's names; None if it does not match."""
    found = _pattern(template).fullmatch(text)
    if found is None:
        return None
    return {name: value.strip("/") if name == "scope" else value for name, value in found.groupdict().items()}


def by_key(operations: Iterable[SourceOperation]) -> dict[str, list[SourceOperation]]:
    """Return operations by key."""
    found: dict[str, list[SourceOperation]] = {}
    for one in operations:
        found.setdefault(one.key, []).append(one)
    return found


def matching(operations: Mapping[str, list[SourceOperation]], method: str, text: str) -> list[SourceOperation]:
    """Return the operations of a method at a path; those for records of any type only where there is no other."""
    key = operation_key(method, text)
    general = re.sub(r"(privatednszones/\*)/\w+", r"\1/*", key)
    found = operations.get(key) or operations.get(general, [])
    return [one for one in found if arguments(one.path, text) is not None]
