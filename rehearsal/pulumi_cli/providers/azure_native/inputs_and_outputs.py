"""Decides which outputs a preview knows: those that the inputs give; what Azure computes is not known yet."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rehearsal.azure.azure_native import variant
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Plain, Shape
from rehearsal.program.graph import Secret, reveal
from rehearsal.pulumi_cli.providers.azure_native.resource_types import ResourceType, flat_properties, is_name_set, writable_properties
from rehearsal.pulumi_cli.providers.pulumi_values import UNKNOWN, Json

NOT_OUTPUTS = frozenset({"id"})
STAYING = ("name", "location")
"""Outputs that an update leaves as they are, so that what depends on them need not wait for it."""


def preview_outputs(kind: ResourceType, inputs: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Json:
    """The outputs that making a resource would have, or changing one that had the outputs before."""
    outputs = _preview_object(kind.shape, {key: value for key, value in inputs.items() if key not in kind.apart})
    if before is not None:
        outputs |= {key: before[key] for key in STAYING if key in before}
    return {**{key: value for key, value in outputs.items() if key not in NOT_OUTPUTS}, "azureApiVersion": kind.api_version}


def _preview_object(shape: ObjectOf, value: Mapping[str, Any]) -> Json:
    return {name: _preview_value(held.shape, value[name]) if name in value else UNKNOWN for name, held in flat_properties(shape).items()}


def _preview_value(shape: Shape, value: Any) -> Any:
    match shape, value:
        case _, Secret():
            return Secret(_preview_value(shape, value.value))
        case ListOf(item), list():
            return [_preview_value(item, one) for one in value]
        case MapOf(item), list() if is_name_set(shape):
            return UNKNOWN
        case MapOf(item), dict():
            return {key: _preview_value(item, one) for key, one in value.items()}
        case OneOf(), dict():
            return _preview_object(variant(shape, value), value)
        case ObjectOf(), dict():
            return _preview_object(shape, value)
        case Plain.ANYTHING, _:
            return value
        case _, dict() | list():
            return UNKNOWN
        case _:
            return value


GONE = object()
WRITTEN_BY_OTHERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "network:PublicIPAddress": ("linkedPublicIPAddress", "natGateway", "servicePublicIPAddress"),
        "network:PublicIPPrefix": ("natGateway",),
        "network:VirtualNetworkPeering": ("peeringState", "peeringSyncLevel", "remoteAddressSpace", "remoteVirtualNetworkAddressSpace"),
    }
)
"""Properties that Azure lets a caller write and writes itself when another resource comes to refer to this one."""


def imported_inputs(kind: ResourceType, known: Mapping[str, Any], outputs: Mapping[str, Any]) -> Json:
    """The inputs of a resource of which nothing is known but what its id tells, and Azure."""
    others = WRITTEN_BY_OTHERS.get(kind.token, ())
    told = {key: value for key, value in _settable(kind, outputs).items() if value not in (None, [], {}) and key not in others}
    return {**told, **known}


def refreshed_inputs(kind: ResourceType, inputs: Json, before: Mapping[str, Any], now: Mapping[str, Any]) -> Json:
    """The inputs with what differs between the outputs before and now; what other resources write stays theirs.

    Without outputs before, as of a resource that was made and could not be read, nothing tells what Azure only added.
    """
    if not before:
        return inputs
    others = [name for name in (*kind.maintained, *WRITTEN_BY_OTHERS.get(kind.token, ())) if name not in inputs]
    old, new = _settable(kind, reveal(before)), _settable(kind, now)
    for name in others:
        old.pop(name, None)
        new.pop(name, None)
    merged = _merged(inputs, old, new)
    return dict(merged)


def _settable(kind: ResourceType, outputs: Mapping[str, Any]) -> Json:
    return {key: value for key, value in _settable_object(kind.shape, outputs).items() if key not in kind.apart}


def _settable_object(shape: ObjectOf, value: Mapping[str, Any]) -> Json:
    known = writable_properties(shape)
    return {key: _settable_value(known[key].shape, item) for key, item in value.items() if key in known and item is not None}


def _settable_value(shape: Shape, value: Any) -> Any:
    match shape, value:
        case ListOf(item), list():
            return [_settable_value(item, one) for one in value]
        case MapOf(), Mapping() if is_name_set(shape):
            return sorted(value, key=str.lower)
        case MapOf(item), Mapping():
            return {key: _settable_value(item, one) for key, one in value.items()}
        case OneOf(), Mapping():
            return _settable_object(variant(shape, value), value)
        case ObjectOf(), Mapping():
            return _settable_object(shape, value)
        case _:
            return value


def _merged(inputs: Any, old: Any, new: Any) -> Any:
    """A value of the inputs after what became of it between two looks at the outputs; GONE where it is no more."""
    if old == new:
        return inputs
    if new is GONE:
        return GONE
    match inputs, old, new:
        case Secret(), _, _:
            return Secret(_merged(inputs.value, old, new))
        case Mapping(), Mapping(), Mapping():
            kept = dict(inputs)
            for key in {*old, *new}:
                one = _merged(kept.get(key, GONE), old.get(key, GONE), new.get(key, GONE))
                if one is GONE:
                    kept.pop(key, None)
                else:
                    kept[key] = one
            return kept
        case list(), list(), list():
            return [
                _merged(inputs[number], old[number], item) if number < min(len(inputs), len(old)) else item
                for number, item in enumerate(new)
            ]
        case _:
            return new
