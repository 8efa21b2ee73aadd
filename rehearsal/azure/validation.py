"""Checks of a body: required values, allowed values, and properties that Azure fixes at creation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.azure.errors import invalid, location_required, property_change_not_allowed
from rehearsal.azure.resource import Json, Resource, location_key


def value_at(body: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path; None if there is none."""
    value: Any = body
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def without_nulls(part: Mapping[str, Any] | None) -> Json:
    """Return a part of a body without nulls, which Azure treats as absent."""
    return {key: value for key, value in (part or {}).items() if value is not None}


def required_value(body: Json, path: str, entity: str) -> Any:
    """Return the value at a path. Raises AzureError InvalidParameter, which names it as a parameter of the type (entity.path)."""
    value = value_at(body, path)
    if value is None:
        raise invalid(f"Required parameter '{entity}.{path}' is missing (null).", f"{entity}.{path}")
    return value


def required_location(body: Json) -> str:
    """Return the location in lower case without spaces. Raises AzureError LocationRequired."""
    if not body.get("location"):
        raise location_required()
    return location_key(body["location"])


def check_one_of(value: Any, allowed: Iterable[str], path: str) -> None:
    """Raise AzureError for a value that Azure does not list; None is no value."""
    known = tuple(allowed)
    if value is not None and value not in known:
        raise invalid(f"The value '{value}' of parameter {path} is invalid. Allowed values are: {', '.join(known)}.", path)


def check_unchanged(body: Json, previous: Resource | None, paths: Iterable[str], entity: str) -> None:
    """Raise AzureError PropertyChangeNotAllowed if a given value at one of the paths differs from the current one."""
    if previous is None:
        return
    for path in paths:
        new, old = value_at(body, path), value_at(previous.body, path)
        if new is not None and new != old:
            raise property_change_not_allowed(f"{entity}.{path}", old, new)
