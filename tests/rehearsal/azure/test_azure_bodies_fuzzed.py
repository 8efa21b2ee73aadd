"""Fuzzed bodies are stored or refused with 400, and a stored body is stored again unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from arm_bodies import BODIES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rehearsal.azure.azure_native_bodies import RENAMED, from_arm, to_arm
from rehearsal.azure.body_validation import validate_body
from rehearsal.azure.errors import AzureError
from rehearsal.azure.sdk_shapes import MODELS, shape_of
from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, OneOf, Plain, Shape

CODES = {"InvalidRequestContent", "InvalidParameter", "LocationRequired"}
ANY_TEXT = st.text(st.characters(), max_size=6) | st.sampled_from(["\ud800", "x" * 5_000, "", "[0]", "a.b"])
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.just(10**400)
ANY_JSON = st.recursive(SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3), max_leaves=8)
WORDS = st.characters(codec="ascii", categories=["L", "N"])


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a body, itself first."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


@st.composite
def mutated(draw: st.DrawFn, resource_type: str) -> Any:
    """A body that fits, after a few changes at random places."""
    body: Any = deepcopy(BODIES[resource_type])
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(list(places(body))))
        if not path:
            if draw(st.integers(0, 9)) == 0:
                return draw(ANY_JSON)
            continue
        holder = body
        for step in path[:-1]:
            holder = holder[step]
        match draw(st.sampled_from(["replace", "remove", "rename", "join", "wrap"])):
            case "remove":
                del holder[path[-1]]
            case "rename" if isinstance(holder, dict):
                holder[draw(ANY_TEXT | st.sampled_from([path[-1].upper(), path[-1].swapcase()]))] = holder.pop(path[-1])
            case "join" if isinstance(holder, dict):
                holder[draw(ANY_TEXT)] = draw(ANY_JSON)
            case "wrap":
                holder[path[-1]] = [holder[path[-1]]]
            case _:
                holder[path[-1]] = draw(ANY_JSON)
    return body


def kept_or_refused(resource_type: str, body: Any) -> Any:
    try:
        return validate_body(resource_type, body)
    except AzureError as refused:
        return refused


@pytest.mark.parametrize("resource_type", sorted(BODIES))
@given(data=st.data())
def test_a_mutated_body_is_kept_or_refused(resource_type: str, data: st.DataObject) -> None:
    body = data.draw(mutated(resource_type))
    before = repr(body)
    outcome = kept_or_refused(resource_type, body)
    if isinstance(outcome, AzureError):
        assert (outcome.status, outcome.code in CODES) == (400, True)
        assert json.dumps(outcome.body(), ensure_ascii=False).encode()
    else:
        assert validate_body(resource_type, outcome) == outcome
        assert json.dumps(outcome, ensure_ascii=False, allow_nan=False).encode()
    assert repr(body) == before


def fitting(shape: Shape, room: int) -> st.SearchStrategy[Any]:
    """Values of a shape, of at most so many levels where that can be."""
    match shape:
        case Plain.STRING:
            return st.text(WORDS, max_size=4)
        case Plain.MOMENT:
            return st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
        case Plain.BOOLEAN:
            return st.booleans()
        case Plain.INTEGER:
            return st.integers(-(2**63), 2**63 - 1)
        case Plain.NUMBER:
            return st.floats(allow_nan=False, allow_infinity=False)
        case Plain.ANYTHING:
            return st.booleans() | st.lists(st.integers(0, 9), max_size=2)
        case Choice():
            return st.sampled_from(shape.values)
        case ListOf():
            return st.lists(fitting(shape.item, room - 1), max_size=2 if room > 0 else 0)
        case MapOf():
            return st.dictionaries(st.text(WORDS, min_size=1, max_size=4), fitting(shape.item, room - 1), max_size=2 if room > 0 else 0)
        case OneOf():
            kinds = shape.variants.items()
            return st.one_of([fitting(kind, room).map(lambda made, name=name: {**made, shape.discriminator: name}) for name, kind in kinds])
        case ObjectOf():
            return fitting_object(shape, room)


@st.composite
def fitting_object(draw: st.DrawFn, shape: ObjectOf, room: int) -> dict[str, Any]:
    """An object with what is required and, while there is room, some of what is not."""
    required = [name for name, held in shape.properties.items() if held.required]
    others = sorted(name for name, held in shape.properties.items() if not (held.required or held.read_only))
    chosen = draw(st.lists(st.sampled_from(others), unique=True, max_size=4)) if others and room > 0 else []
    return {name: draw(fitting(shape.properties[name].shape, room - 1)) for name in (*required, *chosen)}


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_a_body_made_of_its_types_shape_is_kept_whole(data: st.DataObject) -> None:
    resource_type = data.draw(st.sampled_from(sorted(MODELS)))
    body = data.draw(fitting(shape_of(resource_type), 5))
    assert validate_body(resource_type, body) == body


FLAT = {
    "Microsoft.Compute/virtualMachineScaleSets": "compute:VirtualMachineScaleSet",
    "Microsoft.KeyVault/vaults": "keyvault:Vault",
    "Microsoft.Network/loadBalancers": "network:LoadBalancer",
    "Microsoft.Network/networkInterfaces": "network:NetworkInterface",
    "Microsoft.Network/virtualNetworks/subnets": "network:Subnet",
    "Microsoft.Storage/storageAccounts": "storage:StorageAccount",
    "Microsoft.VirtualMachineImages/imageTemplates": "virtualmachineimages:VirtualMachineImageTemplate",
}


SHOWN_OUTSIDE = {"properties", *(path.partition(".")[0] for names in RENAMED.values() for path in names.values() if "." in path)}
"""Objects whose inner properties azure-native shows as if they were their owner's."""


def without_empty_properties(value: Any) -> Any:
    """A body without the `properties` and their like that hold nothing, which flat inputs cannot tell from none."""
    if isinstance(value, list):
        return [without_empty_properties(item) for item in value]
    if isinstance(value, dict):
        cleared = {key: without_empty_properties(item) for key, item in value.items()}
        return {key: item for key, item in cleared.items() if key not in SHOWN_OUTSIDE or item != {}}
    return value


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.data())
def test_flat_inputs_made_of_any_body_become_that_body_again(data: st.DataObject) -> None:
    resource_type = data.draw(st.sampled_from(sorted(FLAT)))
    body = data.draw(fitting(shape_of(resource_type), 6))
    assert without_empty_properties(to_arm(FLAT[resource_type], from_arm(FLAT[resource_type], body))) == without_empty_properties(body)
