"""Azure Resource Graph over HTTPS: a query over subscriptions, in pages.

https://learn.microsoft.com/rest/api/azureresourcegraph/resourcegraph/resources/resources
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from rehearsal.arm.http_request import HttpRequest
from rehearsal.azure.api_versions import check_api_version
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Json
from rehearsal.azure.resource_graph.query import parse_query
from rehearsal.azure.resource_graph.tables import table_rows

PATH = ("providers", "microsoft.resourcegraph", "resources")
PAGE = 1_000
"""Rows of a page, by default and at most: https://learn.microsoft.com/azure/governance/resource-graph/concepts/work-with-data"""


def graph_response(call: HttpRequest, cloud: Cloud) -> Json:
    """Return one page of a query's result. Raises AzureError."""
    check_api_version("Microsoft.ResourceGraph/resources", call.query.get("api-version", ""))
    if call.method != "POST":
        raise AzureError(405, "MethodNotAllowed", f"The HTTP method '{call.method}' is not supported at this location.")
    body = call.json() or {}
    if not isinstance(body.get("query"), str):
        raise invalid("The property 'query' is missing or no text.", "query", "BadRequest")
    for name in ("managementGroups", "facets"):
        if body.get(name):
            raise invalid(f"The embedded Azure does not model '{name}' of a query.", name, "NotModelled")
    query = parse_query(body["query"])
    rows = query.rows(table_rows(cloud, query.table, _subscriptions(cloud, body.get("subscriptions"))))
    return _page(rows, body.get("options") or {}, whole=query.limited)


def _subscriptions(cloud: Cloud, given: Any) -> list[str]:
    """Return the subscriptions of a query: the given ones that exist, or all."""
    if given is None:
        return sorted(cloud.subscriptions)
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise invalid("The property 'subscriptions' is no list of texts.", "subscriptions", "BadRequest")
    return [one for one in dict.fromkeys(text.lower() for text in given) if one in cloud.subscriptions]


def _page(rows: list[Json], options: Any, *, whole: bool) -> Json:
    """Return a page; rows without an id have no next page, as in Azure."""
    if not isinstance(options, dict):
        raise invalid("The property 'options' is no object.", "options", "BadRequest")
    top, skip = _bounded(options, "$top", PAGE, 1, PAGE), _bounded(options, "$skip", 0, 0, 10**9)
    start = _position(options["$skipToken"]) if options.get("$skipToken") else skip
    shown = rows[start : start + top]
    more = start + top < len(rows)
    result: Json = {"totalRecords": len(rows), "count": len(shown), "data": shown, "facets": [], "resultTruncated": "false"}
    if more and shown and "id" in shown[0] and not whole:
        result["$skipToken"] = base64.urlsafe_b64encode(json.dumps([start + top]).encode()).decode()
    elif more:
        result["resultTruncated"] = "true"
    if options.get("resultFormat", "objectArray") == "table":
        names = list(shown[0]) if shown else []
        columns = [{"name": name, "type": _type(shown[0][name])} for name in names]
        result["data"] = {"columns": columns, "rows": [[row.get(name) for name in names] for row in shown]}
    return result


def _type(value: Any) -> str:
    kinds = ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")


def _bounded(options: Json, name: str, default: int, least: int, most: int) -> int:
    value = options.get(name)
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise invalid(f"The option '{name}' is {value!r}; it must be a whole number from {least} to {most}.", name, "BadRequest")
    return value


def _position(token: Any) -> int:
    try:
        decoded: Any = json.loads(base64.urlsafe_b64decode(str(token).encode()))
    except (ValueError, binascii.Error):
        decoded = None
    match decoded:
        case [int() as position] if 0 < position <= 10**9:
            return position
        case _:
            raise invalid("The $skipToken is none that this service gave.", "$skipToken", "BadRequest")
