"""Decides what `ignore_changes` leaves alone: the properties that its paths name keep the values that they had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from components.errors import GpufleetError


class IgnoreChangesPathError(GpufleetError):
    """A path that is more than names with dots between them."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"ignore_changes has {path!r}; an update of the embedded Azure follows names with dots between them only")


def with_old_values(inputs: Mapping[str, Any], old: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """The inputs with what lies at each path taken from the old ones, absent where it was absent; PathRefused."""
    result = dict(inputs)
    for path in paths:
        if any(sign in path for sign in "[]*\"'"):
            raise IgnoreChangesPathError(path)
        result = _with_old_value(result, old, path.split("."))
    return result


def _with_old_value(inputs: Mapping[str, Any], old: Mapping[str, Any], steps: list[str]) -> dict[str, Any]:
    result, (first, *rest) = dict(inputs), steps
    before = old.get(first)
    if rest and isinstance(before, Mapping):
        inner = inputs.get(first)
        result[first] = _with_old_value(inner if isinstance(inner, Mapping) else {}, before, rest)
    elif rest and isinstance(inputs.get(first), Mapping):
        result[first] = _with_old_value(inputs[first], {}, rest)
    elif rest:
        return result
    elif first in old:
        result[first] = before
    else:
        result.pop(first, None)
    return result
