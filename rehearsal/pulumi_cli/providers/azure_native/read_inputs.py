"""Decides which inputs a resource has that was read: what really changed in Azure, and nothing that Azure only adds.

https://github.com/pulumi/pulumi-azure-native/blob/006a62afe453b416e5d5c98d2d91c4c7281f52f9/provider/pkg/provider/provider.go
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rehearsal.azure.azure_native import variant
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Shape
from rehearsal.program.graph import Secret, reveal
from rehearsal.pulumi_cli.providers.azure_native.flattening import is_set_of_names, writable
from rehearsal.pulumi_cli.providers.azure_native.resource_types import Kind
from rehearsal.pulumi_cli.providers.pulumi_values import Json

GONE = object()
WRITTEN_BY_OTHERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "network:PublicIPAddress": ("linkedPublicIPAddress", "natGateway", "servicePublicIPAddress"),
        "network:PublicIPPrefix": ("natGateway",),
        "network:VirtualNetworkPeering": ("peeringState", "peeringSyncLevel", "remoteAddressSpace", "remoteVirtualNetworkAddressSpace"),
    }
)
"""Properties that Azure lets a caller write and writes itself when another resource comes to refer to this one."""


def imported(kind: Kind, known: Mapping[str, Any], outputs: Mapping[str, Any]) -> Json:
    """The inputs of a resource of which nothing is known but what its id tells, and Azure."""
    others = WRITTEN_BY_OTHERS.get(kind.token, ())
    told = {key: value for key, value in _settable(kind, outputs).items() if value not in (None, [], {}) and key not in others}
    return {**told, **known}


def refreshed(kind: Kind, inputs: Json, before: Mapping[str, Any], now: Mapping[str, Any]) -> Json:
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


def _settable(kind: Kind, outputs: Mapping[str, Any]) -> Json:
    return {key: value for key, value in _object(kind.shape, outputs).items() if key not in kind.apart}


def _object(shape: ObjectOf, value: Mapping[str, Any]) -> Json:
    known = writable(shape)
    return {key: _value(known[key].shape, item) for key, item in value.items() if key in known and item is not None}


def _value(shape: Shape, value: Any) -> Any:
    match shape, value:
        case ListOf(item), list():
            return [_value(item, one) for one in value]
        case MapOf(), Mapping() if is_set_of_names(shape):
            return sorted(value, key=str.lower)
        case MapOf(item), Mapping():
            return {key: _value(item, one) for key, one in value.items()}
        case OneOf(), Mapping():
            return _object(variant(shape, value), value)
        case ObjectOf(), Mapping():
            return _object(shape, value)
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
