"""HTTP responses: status, headers, body, and the URLs of long-running operations."""

from __future__ import annotations

import itertools
import json
import math
import re
import uuid
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from rehearsal.arm.time_source import TimeSource
from rehearsal.azure.arm_id import parse
from rehearsal.azure.clock import stamp
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Operation, Response

POLL_EVERY = 10
"""Seconds of Azure's time after which a client should request the status of an operation again."""
SHORTEST = 0.01
"""Least number of real seconds for which a client waits."""


encode = json.JSONEncoder(separators=(",", ":")).encode
"""Return the JSON text of a body, in ASCII."""
CORRELATION = "x-ms-correlation-request-id"
GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_RUN = str(uuid.uuid4())[:24]
_NUMBERS = itertools.count(1)


def reply(status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a response with the headers of every response of ARM; a body of bytes is JSON already."""
    # As unique as a random one, without a request to the system for random bytes each time.
    request_id = f"{_RUN}{next(_NUMBERS):012x}"
    all_headers = {"x-ms-request-id": request_id, "x-ms-correlation-request-id": request_id, "Cache-Control": "no-cache", **(headers or {})}
    if body is None:
        return web.Response(status=status, headers=all_headers)
    all_headers["Content-Type"] = "application/json; charset=utf-8"
    return web.Response(status=status, body=body if isinstance(body, bytes) else encode(body).encode(), headers=all_headers)


def tracing_headers(sent: Mapping[str, str]) -> dict[str, str]:
    """Return the identifiers of a request that its client wants to see in the response.

    https://github.com/cloud-and-ai-microsoft/resource-provider-contract/blob/master/v1.0/common-api-details.md
    """
    found: dict[str, str] = {}
    if sent.get("x-ms-return-client-request-id", "").lower() == "true" and "x-ms-client-request-id" in sent:
        found["x-ms-client-request-id"] = sent["x-ms-client-request-id"]
    if GUID.fullmatch(sent.get(CORRELATION, "")):
        found[CORRELATION] = sent[CORRELATION]
    return found


def error_response(error: AzureError, clock: TimeSource) -> web.Response:
    """Return an error in Azure's format; Retry-After is converted from Azure's time to real whole seconds, as the standard requires."""
    headers = dict(error.headers)
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(clock.here(error.retry_after))))
    return reply(error.status, {"error": error.body()}, headers)


def poll_headers(clock: TimeSource) -> dict[str, str]:
    """Return the headers with the time until the next status request.

    It is in milliseconds on a fast clock, which Azure's clients support:
    https://github.com/Azure/azure-sdk-for-go/blob/0f9d9f4df19f46db7ff7c6ea7d5a3034f09e737e/sdk/azcore/internal/shared/shared.go
    """
    here = clock.here(POLL_EVERY)
    return {"Retry-After": str(math.ceil(here))} if here >= 1 else {"retry-after-ms": str(math.ceil(max(here, SHORTEST) * 1_000))}


def operation_response(answer: Response, base: str, api_version: str, clock: TimeSource) -> web.Response:
    """Return the response to a change, with the URL of its operation.

    https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations
    """
    headers = dict(answer.headers)
    if answer.operation is not None:
        # Some clients follow Location after a 201 too, so every response to a begun operation has both URLs.
        headers |= {
            "Azure-AsyncOperation": operation_url(answer.operation, base, api_version),
            "Location": operation_url(answer.operation, base, api_version, result=True),
            **poll_headers(clock),
        }
    return reply(answer.status, answer.body, headers)


def operation_url(operation: Operation, base: str, api_version: str, *, result: bool = False) -> str:
    """Return the URL of an operation's status, or of its result."""
    arm_id = parse(operation.key)
    provider = arm_id.type.partition("/")[0]
    location, kind = operation.location or "global", "operationResults" if result else "operations"
    path = f"/subscriptions/{arm_id.subscription}/providers/{provider}/locations/{location}/{kind}/{operation.id}"
    return f"{base}{path}?api-version={api_version}"


def status_body(operation: Operation, path: str) -> dict[str, Any]:
    """Return an operation's status in the format of Azure-AsyncOperation; path is the request's path."""
    body: dict[str, Any] = {
        "id": path.partition("?")[0],
        "name": operation.id,
        "status": operation.status,
        "startTime": stamp(operation.started),
    }
    if operation.ended is not None:
        body["endTime"] = stamp(operation.ended)
    if operation.error is not None:
        body["error"] = operation.error
    if operation.result is not None:
        body["properties"] = {"output": operation.result}
    return body
