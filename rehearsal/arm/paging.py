"""Pages of a long list, each with a link to the next page."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any
from urllib.parse import quote

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import invalid
from rehearsal.azure.resource import Json, Resource

PAGE = 100
"""Items of a page; Azure's own pages differ by type and are not published."""
MOST = 10**9
"""Number of an item that no list has."""
FILTER = re.compile(r"\s*(resourceType|tagName|tagValue|name)\s+eq\s+'([^']*)'\s*", re.IGNORECASE)


def page_body(items: Iterable[Resource], query: Mapping[str, str], url: str, cloud: Cloud) -> Json:
    """Return one page of resources, after the last one that the query's $skiptoken names; raise AzureError for an invalid token."""
    position, last = _position(query.get("$skiptoken", ""))
    rest = iter(items)
    found = list(islice(rest, position + PAGE + 1))
    if last and not (position <= len(found) and found[position - 1].key == last):
        # Resources were added or removed since: continue after the last one shown, or at its number if it was removed.
        found += rest
        position = next((number + 1 for number, item in enumerate(found) if item.key == last), position)
    shown = found[position : position + PAGE]
    body: Json = {"value": [cloud.resource_type_of(item.id).view(cloud, item, query) for item in shown]}
    if position + PAGE < len(found):
        body["nextLink"] = f"{url}{'&' if '?' in url else '?'}{_rest(query)}$skiptoken={_token(position + PAGE, shown[-1].key)}"
    return body


def filtered(items: Iterable[Resource], text: str) -> Iterator[Resource]:
    """Yield the resources that match a $filter of `property eq 'value'` parts joined by `and`; raise AzureError for another filter."""
    conditions: dict[str, str] = {}
    for part in re.split(r"\band\b", text) if text.strip() else ():
        match = FILTER.fullmatch(part)
        if not match:
            raise invalid(
                f"The filter '{text}' is not understood; use resourceType, name, tagName, tagValue with eq.", "$filter", "InvalidFilter"
            )
        conditions[match[1].lower()] = match[2].lower()
    return (item for item in items if _fits(item, conditions))


def _fits(item: Resource, conditions: Mapping[str, str]) -> bool:
    tags = {str(key).lower(): str(value).lower() for key, value in (item.body.get("tags") or {}).items()}
    tag = conditions.get("tagname")
    return (
        conditions.get("resourcetype", item.id.type.lower()) == item.id.type.lower()
        and conditions.get("name", item.id.name.lower()) == item.id.name.lower()
        and (tag is None or (tag in tags and conditions.get("tagvalue", tags[tag]) == tags[tag]))
    )


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
