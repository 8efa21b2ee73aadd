"""The option `ignore_changes`: properties at its paths retain their old values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from components.errors import GpufleetError


class IgnoreChangesPathError(GpufleetError):
    """A path that is not a list of names with dots between them."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"ignore_changes has {path!r}; a local up supports only names with dots between them")


def with_old_values(inputs: Mapping[str, Any], old: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """Return the inputs with the old value at each path, absent where it was absent; raise IgnoreChangesPathError."""
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
