"""HTTP request of a client, read within bounds."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import parse_qsl, unquote

from aiohttp import web

from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Json

MAX_BODY = 4_194_304
"""Bytes of a request: https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"""
MAX_PATH = 4_096
"""Characters of a path at most; resource ids are much shorter."""
MAX_DEPTH = 64
"""Depth of objects and lists at most; bodies of Azure have much less."""
BODY_SECONDS = 60.0
"""Seconds within which a body must have arrived."""
BODILESS = frozenset({"GET", "HEAD"})
FORBIDDEN = frozenset('/\\?#<>%"\x7f\ufffd') | {chr(code) for code in range(32)}
"""Characters that no name in a path has: separators, control characters, and invalid UTF-8."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An HTTP request: method, the parts of its path decoded, its path as sent, query, headers and body."""

    method: str
    parts: tuple[str, ...]
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Json | None:
        """Return the body as a JSON object, None without a body; raise AzureError."""
        if not self.body.strip():
            return None
        try:
            value = json.loads(self.body.decode(), parse_constant=_no_number, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            raise invalid(
                f"The request content was invalid and could not be deserialized: '{error}'.", code="InvalidRequestContent"
            ) from None
        if not isinstance(value, dict):
            raise invalid("The request content must be a JSON object.", code="InvalidRequestContent")
        if self.body.count(b"{") + self.body.count(b"[") > MAX_DEPTH:
            _check_depth(value)
        if b"\\u" in self.body:
            _check_text(value)
        return value

    def form(self) -> Mapping[str, str]:
        """Return the body as an HTML form."""
        return dict(parse_qsl(self.body.decode("latin-1"), keep_blank_values=True))


async def read(request: web.BaseRequest) -> HttpRequest:
    """Return the request with its whole body; raise AzureError if it is too large or too slow, or its path is invalid."""
    parts, path, query = target(request.raw_path)
    body = b"" if request.method in BODILESS and not request.can_read_body else await _body(request)
    return HttpRequest(request.method, parts, path, query, request.headers, body)


@lru_cache(maxsize=16_384)
def target(raw: str) -> tuple[tuple[str, ...], str, Mapping[str, str]]:
    """Return the parts of the path, the path and the query of a request line's target."""
    path, _, query = raw.partition("?")
    if not path.startswith("/") or len(path) > MAX_PATH:
        raise invalid("The request URI is no absolute path, or too long.", code="InvalidRequestUri")
    parts = tuple(unquote(part) for part in path.strip("/").split("/"))
    for part in parts:
        if not FORBIDDEN.isdisjoint(part):
            raise invalid(
                f"The request URI has a segment with a character that no name has: {ascii(part)[:100]}.", code="InvalidRequestUri"
            )
    return parts, path, dict(parse_qsl(query, keep_blank_values=True))


async def _body(request: web.BaseRequest) -> bytes:
    if request.content_length is not None and request.content_length > MAX_BODY:
        raise _too_large()
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while chunk := await request.content.readany():
                content += chunk
                if len(content) > MAX_BODY:
                    raise _too_large()
    except TimeoutError:
        raise AzureError(408, "RequestTimeout", f"The request content has not arrived within {BODY_SECONDS:g} seconds.") from None
    except web.RequestPayloadError as error:
        raise invalid(f"The request content could not be read: {error}.", code="InvalidRequestContent") from None
    return bytes(content)


def _too_large() -> AzureError:
    return AzureError(413, "RequestContentTooLarge", f"The request content exceeds the maximum size of {MAX_BODY} bytes.")


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def _check_depth(body: Json) -> None:
    level: list[object] = [body]
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _parts(value)]
        if not level:
            return
    raise invalid(f"The request content has more than {MAX_DEPTH} objects and lists inside each other.", code="InvalidRequestContent")


def _parts(value: object) -> list[object]:
    """Return the objects and lists directly inside a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for one in inner if isinstance(one, dict | list)]


def _check_text(body: Json) -> None:
    """Reject half of a surrogate pair: JSON can escape it, but no text can contain it."""
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise invalid("The request content has half of a surrogate pair in a text.", code="InvalidRequestContent") from None
