"""Decides which outputs a preview knows: those that the inputs give; what Azure computes is not known yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.azure_native import variant
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Plain, Shape
from rehearsal.program.graph import Secret
from rehearsal.pulumi_cli.providers.azure_native.flattening import flat, is_set_of_names
from rehearsal.pulumi_cli.providers.azure_native.resource_types import Kind
from rehearsal.pulumi_cli.providers.pulumi_values import UNKNOWN, Json

NOT_OUTPUTS = frozenset({"id"})
STAYING = ("name", "location")
"""Outputs that an update leaves as they are, so that what depends on them need not wait for it."""


def previewed(kind: Kind, inputs: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Json:
    """The outputs that making a resource would have, or changing one that had the outputs before."""
    outputs = _object(kind.shape, {key: value for key, value in inputs.items() if key not in kind.apart})
    if before is not None:
        outputs |= {key: before[key] for key in STAYING if key in before}
    return {**{key: value for key, value in outputs.items() if key not in NOT_OUTPUTS}, "azureApiVersion": kind.api_version}


def _object(shape: ObjectOf, value: Mapping[str, Any]) -> Json:
    return {name: _value(held.shape, value[name]) if name in value else UNKNOWN for name, held in flat(shape).items()}


def _value(shape: Shape, value: Any) -> Any:
    match shape, value:
        case _, Secret():
            return Secret(_value(shape, value.value))
        case ListOf(item), list():
            return [_value(item, one) for one in value]
        case MapOf(item), list() if is_set_of_names(shape):
            return UNKNOWN
        case MapOf(item), dict():
            return {key: _value(item, one) for key, one in value.items()}
        case OneOf(), dict():
            return _object(variant(shape, value), value)
        case ObjectOf(), dict():
            return _object(shape, value)
        case Plain.ANYTHING, _:
            return value
        case _, dict() | list():
            return UNKNOWN
        case _:
            return value
