"""Outputs of a preview from inputs, and inputs of a read resource from its outputs.

https://github.com/pulumi/pulumi-azure-native/blob/006a62afe453b416e5d5c98d2d91c4c7281f52f9/provider/pkg/provider/provider.go
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rehearsal.azure.azure_native_bodies import variant_shape
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Plain, Shape
from rehearsal.program.graph import Secret, reveal
from rehearsal.program.pulumi_values import UNKNOWN, Json
from rehearsal.pulumi_cli.providers.azure_native.resource_types import ResourceType, flat_properties, is_name_set, writable_properties

NOT_OUTPUTS = frozenset({"id"})
UNCHANGED_OUTPUTS = ("name", "location")
"""Outputs that an update does not change, so that dependent resources need not wait for it."""


def preview_outputs(resource_type: ResourceType, inputs: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Json:
    """Return the expected outputs of a creation, or of an update of a resource with the given outputs."""
    outputs = _preview_object(resource_type.shape, {key: value for key, value in inputs.items() if key not in resource_type.outside_body})
    if before is not None:
        outputs |= {key: before[key] for key in UNCHANGED_OUTPUTS if key in before}
    return {**{key: value for key, value in outputs.items() if key not in NOT_OUTPUTS}, "azureApiVersion": resource_type.api_version}


def _preview_object(shape: ObjectOf, value: Mapping[str, Any]) -> Json:
    return {
        name: _preview_value(property_.shape, value[name]) if name in value else UNKNOWN
        for name, property_ in flat_properties(shape).items()
    }


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
            return _preview_object(variant_shape(shape, value), value)
        case ObjectOf(), dict():
            return _preview_object(shape, value)
        case Plain.ANYTHING, _:
            return value
        case _, dict() | list():
            return UNKNOWN
        case _:
            return value


ABSENT = object()
WRITTEN_BY_OTHERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "network:PublicIPAddress": ("linkedPublicIPAddress", "natGateway", "servicePublicIPAddress"),
        "network:PublicIPPrefix": ("natGateway",),
        "network:VirtualNetworkPeering": ("peeringState", "peeringSyncLevel", "remoteAddressSpace", "remoteVirtualNetworkAddressSpace"),
    }
)
"""Properties that a caller may write and that Azure writes when another resource refers to this one."""


def imported_inputs(resource_type: ResourceType, known: Mapping[str, Any], outputs: Mapping[str, Any]) -> Json:
    """Return the inputs of a resource from its id and its outputs alone."""
    foreign = WRITTEN_BY_OTHERS.get(resource_type.token, ())
    found = {key: value for key, value in _settable(resource_type, outputs).items() if value not in (None, [], {}) and key not in foreign}
    return {**found, **known}


def refreshed_inputs(resource_type: ResourceType, inputs: Json, before: Mapping[str, Any], now: Mapping[str, Any]) -> Json:
    """Return the inputs with the differences between the outputs before and now; properties of other resources are left out.

    Without earlier outputs, additions of Azure cannot be recognized, and the inputs remain.
    """
    if not before:
        return inputs
    foreign = [name for name in (*resource_type.foreign_properties, *WRITTEN_BY_OTHERS.get(resource_type.token, ())) if name not in inputs]
    old, new = _settable(resource_type, reveal(before)), _settable(resource_type, now)
    for name in foreign:
        old.pop(name, None)
        new.pop(name, None)
    merged = _merged(inputs, old, new)
    return dict(merged)


def _settable(resource_type: ResourceType, outputs: Mapping[str, Any]) -> Json:
    return {key: value for key, value in _settable_object(resource_type.shape, outputs).items() if key not in resource_type.outside_body}


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
            return _settable_object(variant_shape(shape, value), value)
        case ObjectOf(), Mapping():
            return _settable_object(shape, value)
        case _:
            return value


def _merged(inputs: Any, old: Any, new: Any) -> Any:
    """Return a value of the inputs after the change between two reads of the outputs; ABSENT where it no longer exists."""
    if old == new:
        return inputs
    if new is ABSENT:
        return ABSENT
    match inputs, old, new:
        case Secret(), _, _:
            return Secret(_merged(inputs.value, old, new))
        case Mapping(), Mapping(), Mapping():
            result = dict(inputs)
            for key in {*old, *new}:
                one = _merged(result.get(key, ABSENT), old.get(key, ABSENT), new.get(key, ABSENT))
                if one is ABSENT:
                    result.pop(key, None)
                else:
                    result[key] = one
            return result
        case list(), list(), list():
            return [
                _merged(inputs[number], old[number], item) if number < min(len(inputs), len(old)) else item
                for number, item in enumerate(new)
            ]
        case _:
            return new
