"""Pages of a long list, each with a link to the next page."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import quote

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import invalid
from rehearsal.azure.resource import Json, Resource

Item = TypeVar("Item")

PAGE = 100
"""Items of a page; Azure's own pages differ by type and are not published."""
MOST = 10**9
"""Number of an item that no list has."""


def page_body(
    items: Iterable[Resource], query: Mapping[str, str], url: str, cloud: Cloud, view: Callable[[Resource], Json] | None = None
) -> Json:
    """Return one page of resources, after the last one that the query's $skiptoken names.

    view is the body of an item, without it the one of its type. Raises AzureError for an invalid token.
    """
    shown, link = page_of(items, query, url, lambda item: item.key)
    shape = view or (lambda item: cloud.resource_type_of(item.id).view(cloud, item, query))
    body: Json = {"value": [shape(item) for item in shown]}
    return {**body, "nextLink": link} if link else body


def page_of(items: Iterable[Item], query: Mapping[str, str], url: str, key: Callable[[Item], str]) -> tuple[list[Item], str]:
    """Return the items of one page, and the URL of the next page, empty after the last one; raise AzureError for an invalid token."""
    position, last = _position(query.get("$skiptoken", ""))
    rest, size = iter(items), page_size(query)
    found = list(islice(rest, position + size + 1))
    if last and not (position <= len(found) and key(found[position - 1]) == last):
        # Resources were added or removed since: continue after the last one shown, or at its number if it was removed.
        found += rest
        position = next((number + 1 for number, item in enumerate(found) if key(item) == last), position)
    shown = found[position : position + size]
    if position + size >= len(found):
        return shown, ""
    return shown, f"{url}{'&' if '?' in url else '?'}{_rest(query)}$skiptoken={_token(position + size, key(shown[-1]))}"


def page_size(query: Mapping[str, str]) -> int:
    """Return the items of a page: those of $top or $maxpagesize, at most PAGE. Raises AzureError."""
    text = query.get("$top") or query.get("$maxpagesize") or str(PAGE)
    if not (text.isascii() and text.isdecimal()) or len(text) > len(str(MOST)) or int(text) < 1:
        raise invalid(
            f"The value '{text[:40]}' of $top is not valid; give a whole number of at least 1.", "$top", "InvalidTopInQueryString"
        )
    return min(int(text), PAGE)


def _rest(query: Mapping[str, str]) -> str:
    parameters = {key: value for key, value in query.items() if key != "$skiptoken"}
    return "".join(f"{quote(key, safe='$')}={quote(value, safe='')}&" for key, value in parameters.items())


def _token(position: int, last: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([position, last]).encode()).decode()


def _position(token: str) -> tuple[int, str]:
    if not token:
        return 0, ""
    try:
        decoded: Any = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (ValueError, binascii.Error):
        decoded = None
    match decoded:
        case [int() as position, str() as last] if 0 < position <= MOST:
            return position, last
        case _:
            raise invalid("The $skiptoken is none that this service gave.", "$skiptoken", "InvalidSkipToken")
