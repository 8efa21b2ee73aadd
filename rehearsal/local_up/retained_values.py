"""Properties that keep an old value in Azure although the program declares another, because of `ignore_changes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class RetainedValue:
    """A property at a path of ignore_changes: its value in Azure and the declared one; None for an absent value."""

    path: str
    actual: Any
    declared: Any


def retained_values(declared: Mapping[str, Any], sent: Mapping[str, Any], paths: Iterable[str]) -> tuple[RetainedValue, ...]:
    """Return the properties at these paths whose declared value differs from the one that an update sends."""
    found = (RetainedValue(path, _value_at(sent, path), _value_at(declared, path)) for path in paths)
    return tuple(one for one in found if one.actual != one.declared)


def _value_at(values: Any, path: str) -> Any:
    """Return the value at a path of names with dots between them; None where it is absent."""
    for name in path.split("."):
        if not isinstance(values, Mapping):
            return None
        values = values.get(name)
    return values
