"""Parser and evaluation of `$filter` in lists: a subset of OData.

https://learn.microsoft.com/rest/api/resources/resources/list and the other list operations in FILTERS
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from rehearsal.arm.generic_resources import generic_body, located_resources
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Json, Resource

Values = Callable[[str], Iterable[object]]
"""The values of a property of an item, by the property's path in lower case."""
Condition = Callable[[Values], bool]
MAX_FILTER = 2_048
"""Characters of a filter at most."""
_TOKEN = re.compile(r"\s*('(?:[^']|'')*'|[(),]|[^\s(),']+)")
_COMPARISONS: Mapping[str, Callable[[str, str], bool]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": str.__contains__,
}

_RESOURCE = frozenset(
    {"resourcetype", "name", "location", "resourcegroup", "tagname", "tagvalue", "identity/principalid", "plan/publisher"}
)
_BODY = frozenset({"properties/latestmodelapplied", "properties/provisioningstate", "instanceid", "instanceview/statuses/code"})
FILTERS: Mapping[str, frozenset[str]] = {
    "": _RESOURCE,
    "microsoft.resources/resourcegroups": frozenset({"tagname", "tagvalue", "name", "location"}),
    # https://learn.microsoft.com/rest/api/compute/virtual-machines/list
    "microsoft.compute/virtualmachines": frozenset({"virtualmachinescaleset/id"}),
    # https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/list
    "microsoft.compute/virtualmachinescalesets/virtualmachines": _BODY,
    # https://learn.microsoft.com/rest/api/authorization/role-assignments/list-for-scope
    "microsoft.authorization/roleassignments": frozenset({"principalid", "atscope()", "assignedto()"}),
    # https://learn.microsoft.com/rest/api/authorization/role-definitions/list
    "microsoft.authorization/roledefinitions": frozenset({"rolename", "type", "atscopeandbelow()"}),
}
"""Properties that a filter of a list can name, by the type that is listed; empty is the list of all types. A list without a row ignores a
filter, as Azure ignores unknown query parameters."""
CONTAINERS = "microsoft.storage/storageaccounts/blobservices/containers"


def filtered(cloud: Cloud, items: Iterable[Resource], resource_type: str, text: str, scope: str) -> Iterable[Resource]:
    """Return the items of a list that match a $filter. Raises AzureError InvalidFilterInQueryString."""
    kind = resource_type.lower()
    if kind == CONTAINERS:
        # A prefix of names: https://learn.microsoft.com/rest/api/storagerp/blob-containers/list
        return (one for one in items if one.id.name.startswith(text))
    if not text.strip() or kind not in FILTERS:
        return items
    condition = parse_filter(text, FILTERS[kind])
    return _matching(cloud, items, condition, scope)


def listed(cloud: Cloud, resource_type: str, scope: str, query: Mapping[str, str], items: Iterable[Resource]) -> Iterable[Resource]:
    """Return the items of a list that its query selects; an empty type is all types. Raises AzureError."""
    chosen = items if resource_type else located_resources(cloud, scope)
    suffix = query.get("$recordsetnamesuffix", "").lower()
    if suffix:
        chosen = (one for one in chosen if one.id.name.lower().endswith(suffix))
    return filtered(cloud, chosen, resource_type, query.get("$filter", ""), scope)


def item_view(cloud: Cloud, resource_type: str, query: Mapping[str, str]) -> Callable[[Resource], Json]:
    """Return the function that gives the body of an item in a list."""
    if not resource_type:
        return lambda item: generic_body(item, query)
    if query.get("statusOnly", "").lower() == "true" or query.get("$select", "").lower().startswith("instanceview"):
        query = {**query, "$expand": "instanceView"}
    return lambda item: cloud.resource_type_of(item.id).view(cloud, item, query)


def _matching(cloud: Cloud, items: Iterable[Resource], condition: Condition, scope: str) -> Iterator[Resource]:
    for item in items:
        tags = [(str(name), str(value)) for name, value in (item.body.get("tags") or {}).items()]
        body: Json | None = None

        def values(path: str, tag: tuple[str, str] | None, item: Resource = item) -> Iterable[object]:
            nonlocal body
            if path in ("tagname", "tagvalue"):
                return () if tag is None else (tag[path == "tagvalue"],)
            known = _known(item, path, scope)
            if known is not None:
                return known
            body = body or cloud.resource_type_of(item.id).view(cloud, item, {"$expand": "instanceView"})
            # Clients also name a property of `properties` without that word.
            return at(body, path) or at(body, f"properties/{path}")

        if any(condition(lambda path, tag=tag: values(path, tag)) for tag in (None, *tags)):  # type: ignore[misc]
            yield item


def _known(item: Resource, path: str, scope: str) -> Iterable[object] | None:
    """Return values that are not in the body; None for another path."""
    match path:
        case "resourcetype":
            return (item.id.type,)
        case "name":
            return (item.id.name,)
        case "resourcegroup":
            return (item.id.group,)
        case "type":
            return ("CustomRole",)
        case "atscope()":
            return (scope.lower().startswith(item.id.scope.lower()),)
        case "atscopeandbelow()":
            return (True,)
        case "assignedto()":
            return at(item.body, "properties/principalid")
        case _:
            return None


def at(value: object, path: str) -> list[object]:
    """Return the values at a path in a body, with names in any case, of each item of a list."""
    found = [value]
    for name in path.split("/"):
        inner = [item for one in found for item in (one if isinstance(one, list) else [one])]
        found = [held for one in inner if isinstance(one, dict) for key, held in one.items() if key.lower() == name]
    return found


@lru_cache(maxsize=256)
def parse_filter(text: str, names: frozenset[str]) -> Condition:
    """Return the condition of a filter that names only these properties. Raises AzureError InvalidFilterInQueryString."""
    tokens = [found[1] for found in _TOKEN.finditer(text)]
    if len(text) > MAX_FILTER or "".join(tokens) != re.sub(r"\s(?=(?:[^']*'[^']*')*[^']*$)", "", text):
        raise _invalid_filter(text, names)
    parser = _Parser(tokens, names)
    try:
        condition = parser.disjunction()
    except (LookupError, ValueError, RecursionError):
        raise _invalid_filter(text, names) from None
    if parser.tokens:
        raise _invalid_filter(text, names)
    return condition


def _invalid_filter(text: str, names: Iterable[str]) -> AzureError:
    message = f"Invalid $filter '{text[:200]}' specified in the query string. This list can be filtered by {', '.join(sorted(names))}."
    return invalid(message, "$filter", "InvalidFilterInQueryString")


class _Parser:
    """Parser of one filter; `and` binds tighter than `or`."""

    def __init__(self, tokens: list[str], names: frozenset[str]) -> None:
        self.tokens, self._names = tokens, names

    def disjunction(self) -> Condition:
        parts = [self._conjunction()]
        while self._next_is("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else lambda values: any(part(values) for part in parts)

    def _conjunction(self) -> Condition:
        parts = [self._term()]
        while self._next_is("and"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else lambda values: all(part(values) for part in parts)

    def _next_is(self, word: str) -> bool:
        if self.tokens and self.tokens[0].lower() == word:
            self.tokens.pop(0)
            return True
        return False

    def _take(self, *words: str) -> str:
        token = self.tokens.pop(0)
        if words and token.lower() not in words:
            raise ValueError(token)
        return token

    def _term(self) -> Condition:
        if self._next_is("("):
            inner = self.disjunction()
            self._take(")")
            return inner
        if len(self.tokens) > 1 and self.tokens[1] == "(":
            return self._compared_call(self._call())
        name, operator = self._name(self._take()), self._take("eq", "ne").lower()
        wanted = _text(self._take())
        if operator == "eq":
            return lambda values: any(_text(value) == wanted for value in values(name))
        return lambda values: all(_text(value) != wanted for value in values(name))

    def _call(self) -> Condition:
        function = self._take().lower()
        self._take("(")
        arguments: list[str] = []
        while not self._next_is(")"):
            arguments.append(self._take())
            if self.tokens[0] == ",":
                self._take()
        if f"{function}()" in self._names:
            wanted = {_text(argument) for argument in arguments} or {"true"}
            return lambda values: any(_text(value) in wanted for value in values(f"{function}()"))
        if function == "substringof":
            function, arguments = "contains", arguments[::-1]
        path, searched = arguments
        name, part, holds = self._name(path), _text(searched), _COMPARISONS[function]
        return lambda values: any(holds(_text(value), part) for value in values(name))

    def _compared_call(self, call: Condition) -> Condition:
        """Return the condition of a call, with or without `eq true` or `eq false` after it."""
        if not self._next_is("eq"):
            return call
        wanted = self._take("true", "false").lower() == "true"
        return lambda values: call(values) == wanted

    def _name(self, token: str) -> str:
        name = _text(token)
        if name not in self._names:
            raise ValueError(token)
        return name


def _text(value: object) -> str:
    """Return a value as it is compared: Azure ignores capitals. A literal may have quotes."""
    text: Any = str(value)
    return str(text[1:-1].replace("''", "'") if len(text) > 1 and text[0] == text[-1] == "'" else text).lower()
