"""Comparison of an answer with the one that an example shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.azure.sdk_shapes import UnknownShapeError, shape_of
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Shape

_KINDS = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object"}


def missing_properties(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each property that the example shows and the answer lacks, or has with another JSON type.

    List items are compared by name, or by position without names; an empty answered list lacks the items of a filled one.
    """
    if expected is None:
        return
    if _KINDS[type(expected)] != _KINDS.get(type(actual), "null"):
        yield f"{path} ({_KINDS.get(type(actual), 'null')} instead of {_KINDS[type(expected)]})"
    elif isinstance(expected, Mapping):
        found = {key.lower(): value for key, value in actual.items()}
        for key, value in expected.items():
            inner = f"{path}.{key}" if path else str(key)
            if value is not None and key.lower() not in found:
                yield inner
            else:
                yield from missing_properties(value, found.get(key.lower()), inner)
    elif isinstance(expected, list):
        yield from _missing_in_list(expected, actual, f"{path}[]")


def _missing_in_list(expected: list[Any], actual: list[Any], path: str) -> Iterator[str]:
    if expected and not actual:
        yield path
        return
    named = {str(one["name"]).lower(): one for one in actual if isinstance(one, dict) and one.get("name")}
    seen: set[str] = set()
    for number, one in enumerate(expected):
        other = named.get(str(one.get("name", "")).lower()) if isinstance(one, dict) else None
        if other is None and number < len(actual):
            other = actual[number]
        for found in missing_properties(one, other, path) if other is not None else ():
            if found not in seen:
                seen.add(found)
                yield found


def differing_values(sent: Any, shown: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield the path of each value that the request sends, the example shows, and the answer has differently."""
    if isinstance(sent, Mapping) and isinstance(shown, Mapping) and isinstance(actual, Mapping):
        found = {key.lower(): value for key, value in actual.items()}
        for key, value in sent.items():
            if key in shown and key.lower() in found:
                yield from differing_values(value, shown[key], found[key.lower()], f"{path}.{key}" if path else str(key))
    elif isinstance(sent, list) and isinstance(shown, list) and isinstance(actual, list):
        named = {str(one["name"]).lower(): one for one in actual if isinstance(one, dict) and one.get("name")}
        for number, (one, other) in enumerate(zip(sent, shown, strict=False)):
            name = str(one.get("name", "")).lower() if isinstance(one, dict) else ""
            same = named.get(name, actual[number] if number < len(actual) else None)
            yield from differing_values(one, other, same, f"{path}[]")
    elif isinstance(sent, bool | int | float | str) and _plain(sent) == _plain(shown) and _plain(sent) != _plain(actual):
        yield f"{path}: {str(sent)[:40]!r} sent, {str(actual)[:40]!r} answered"


def _plain(value: Any) -> str:
    return str(value).lower().replace(" ", "")


def is_sent(body: Any, path: str) -> bool:
    """Return whether a body has a property; of a list, only the first item counts."""
    for step in path.partition(" ")[0].replace("[]", "").split("."):
        while isinstance(body, list):
            body = body[0] if body else None
        if not isinstance(body, Mapping):
            return False
        body = {key.lower(): value for key, value in body.items()}.get(step.lower())
    return body is not None


def is_read_only(resource_type: str, path: str) -> bool:
    """Return whether a property of a body, such as `properties.ipConfigurations[].etag`, is one that only Azure sets."""
    try:
        shape: Shape | None = shape_of(resource_type)
    except UnknownShapeError:
        return False
    for step in path.partition(" ")[0].replace("[]", "").split("."):
        while isinstance(shape, ListOf | MapOf):
            shape = shape.item
        if isinstance(shape, OneOf):
            shape = shape.base
        held = shape.properties.get(step) if isinstance(shape, ObjectOf) else None
        if held is None or held.read_only:
            return True
        shape = held.shape
    return False
