"""Queries of Azure Resource Graph: a table and operators on its rows.

https://learn.microsoft.com/azure/governance/resource-graph/concepts/query-language; its names of results are those of
https://learn.microsoft.com/azure/data-explorer/kusto/query/summarize-operator
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.azure.resource import Json
from rehearsal.azure.resource_graph.expressions import MAX_DIGITS, Expression, Tokens, disjunction, query_error, text_of, tokens_of

TABLES = ("Resources", "ComputeResources", "ResourceContainers")

Operator = Callable[[list[Json]], list[Json]]


@dataclass(frozen=True, slots=True)
class Query:
    """A table's name, the operators on its rows in their order, and whether one of them limits the number of rows."""

    table: str
    operators: tuple[Operator, ...]
    limited: bool

    def rows(self, table: Iterable[Json]) -> list[Json]:
        """Return the query's rows."""
        found = list(table)
        for operator in self.operators:
            found = operator(found)
        return found


def parse_query(text: str) -> Query:
    """Return a parsed query. Raises AzureError for one outside the supported subset."""
    parts: list[list[str]] = [[]]
    for word in tokens_of(text):
        if word == "|":
            parts.append([])
        else:
            parts[-1].append(word)
    table = "Resources"
    if parts[0] and parts[0][0].lower() not in _OPERATORS:
        (first, *rest), *parts = parts
        known = {name.lower(): name for name in TABLES}
        if rest or first.lower() not in known:
            raise query_error(f"'{' '.join([first, *rest])}' is no known table.")
        table = known[first.lower()]
    operators = []
    for part in parts:
        read = _OPERATORS.get(part[0].lower()) if part else None
        if read is None:
            raise query_error(f"The operator '{part[0] if part else ''}' is not supported.")
        tokens = Tokens(part)
        tokens.take()
        operators.append(read(tokens))
        if tokens.next:
            raise query_error(f"'{tokens.next}' after '{part[0]}' is not understood.")
    return Query(table, tuple(operators), any(part[0].lower() in ("limit", "take", "top") for part in parts))


def _where(tokens: Tokens) -> Operator:
    test = disjunction(tokens)
    return lambda rows: [row for row in rows if test.value(row)]


def _columns(tokens: Tokens) -> list[tuple[str, Expression]]:
    """Read columns with or without a name: a, b = expression."""
    found = []
    while True:
        name = ""
        if tokens.followed_by("="):
            name = tokens.take()
            tokens.expect("=")
        expression = disjunction(tokens)
        found.append((name or expression.name, expression))
        if not tokens.accept(","):
            return found


def _extend(tokens: Tokens) -> Operator:
    columns = _columns(tokens)
    return lambda rows: [{**row, **{name: one.value(row) for name, one in columns}} for row in rows]


def _project(tokens: Tokens) -> Operator:
    columns = _columns(tokens)
    return lambda rows: [{name: one.value(row) for name, one in columns} for row in rows]


def _project_away(tokens: Tokens) -> Operator:
    names = {name.lower() for name, _ in _columns(tokens)}
    return lambda rows: [{key: value for key, value in row.items() if key.lower() not in names} for row in rows]


def _distinct(tokens: Tokens) -> Operator:
    columns = _columns(tokens)

    def distinct(rows: list[Json]) -> list[Json]:
        projected = ({name: one.value(row) for name, one in columns} for row in rows)
        return list({_key(row.values()): row for row in projected}.values())

    return distinct


def _summarize(tokens: Tokens) -> Operator:
    name = ""
    if tokens.followed_by("="):
        name = tokens.take()
        tokens.expect("=")
    counts = tokens.accept("count")
    if counts:
        tokens.expect("(")
        tokens.expect(")")
    elif name or tokens.next.lower() != "by":
        raise query_error(f"'{tokens.next}' is found after 'summarize' where count() or by is expected.")
    by = _columns(tokens) if tokens.accept("by") else []
    name = name or "count_"

    def summarize(rows: list[Json]) -> list[Json]:
        groups: dict[tuple[str, ...], Json] = {} if by else {(): {name: 0}}
        for row in rows:
            values = {column: one.value(row) for column, one in by}
            group = groups.setdefault(_key(values.values()), {**values, **({name: 0} if counts else {})})
            if counts:
                group[name] += 1
        return list(groups.values())

    return summarize


def _count(_tokens: Tokens) -> Operator:
    return lambda rows: [{"Count": len(rows)}]


def _order(tokens: Tokens) -> Operator:
    tokens.expect("by")
    keys = []
    while True:
        expression = disjunction(tokens)
        # The default of the language is descending.
        ascending = tokens.accept("asc")
        if not ascending:
            tokens.accept("desc")
        keys.append((expression, ascending))
        if not tokens.accept(","):
            break

    def order(rows: list[Json]) -> list[Json]:
        found = list(rows)
        for expression, ascending in reversed(keys):
            found.sort(key=lambda row: _rank(expression.value(row)), reverse=not ascending)
        return found

    return order


def _limit(tokens: Tokens) -> Operator:
    count = tokens.take()
    if not count.isdigit() or len(count) >= MAX_DIGITS:
        raise query_error(f"'{count}' is no number of rows.")
    return lambda rows: rows[: int(count)]


def _top(tokens: Tokens) -> Operator:
    limit = _limit(tokens)
    order = _order(tokens)
    return lambda rows: limit(order(rows))


def _rank(value: Any) -> tuple[int, Any, str]:
    """Return the key by which values are sorted: null first, then numbers, then texts."""
    if value is None:
        return (0, 0.0, "")
    return (1, value, "") if isinstance(value, int | float) else (2, 0.0, text_of(value))


def _key(values: Iterable[Any]) -> tuple[str, ...]:
    return tuple(repr(value) for value in values)


_OPERATORS: Mapping[str, Callable[[Tokens], Operator]] = {
    "count": _count,
    "distinct": _distinct,
    "extend": _extend,
    "limit": _limit,
    "order": _order,
    "project": _project,
    "project-away": _project_away,
    "sort": _order,
    "summarize": _summarize,
    "take": _limit,
    "top": _top,
    "where": _where,
}
