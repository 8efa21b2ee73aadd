"""Conversion of recorded inputs from the provider's names to the SDK's argument names."""

from __future__ import annotations

import sys
import typing
from collections.abc import Mapping
from typing import Any

from pulumi import _types

from rehearsal.program.graph import Secret

RESOURCE_NAME = "resource_name"
"""The SDK's name for the logical name; an argument of this name gets an underscore."""


def arguments(sdk_class: type, inputs: Mapping[str, Any]) -> list[tuple[str, str, Any]]:
    """Return the inputs of an SDK's resource class: provider's name, argument's name, and the value with the SDK's names inside."""
    module = sys.modules[sdk_class.__module__]
    args_class = getattr(module, f"{sdk_class.__name__}InitArgs", None) or getattr(module, f"{sdk_class.__name__}Args")
    names, types = _names(args_class), _types.input_type_types(args_class)
    return [(key, _argument(names[key]), _written(value, types.get(key))) for key, value in inputs.items()]


def _argument(name: str) -> str:
    return f"{name}_" if name == RESOURCE_NAME else name


def _names(args_class: type) -> dict[str, str]:
    """Return the SDK's names by the provider's."""
    return {provider: sdk for sdk, provider in _types.input_type_py_to_pulumi_names(args_class).items()}


def _written(value: Any, expected: Any) -> Any:
    """Return a value with the SDK's names where its type has them; keys that a user chose (tags) stay."""
    expected = _types.unwrap_type(expected) if expected is not None else None
    match value:
        case Secret():
            return Secret(_written(value.value, expected))
        case Mapping() if expected is not None and _types.is_input_type(expected):
            names, types = _names(expected), _types.input_type_types(expected)
            return {names[key]: _written(item, types.get(key)) for key, item in value.items()}
        case Mapping():
            return {key: _written(item, _inner(expected, 1)) for key, item in value.items()}
        case list():
            return [_written(item, _inner(expected, 0)) for item in value]
        case _:
            return value


def _inner(expected: Any, position: int) -> Any:
    """Return the type of a mapping's values (1) or a list's items (0); None if the annotation has none."""
    inner = typing.get_args(expected)
    return inner[position] if len(inner) == position + 1 else None
