"""Check of a resource's inputs: generated names, unknown and missing properties, wrong types.

The names follow azure-native:
https://github.com/pulumi/pulumi-azure-native/blob/006a62afe453b416e5d5c98d2d91c4c7281f52f9/provider/pkg/provider/provider.go
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from rehearsal.azure.azure_native_bodies import NOT_IN_BODY, variant_shape
from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, OneOf, Plain, Shape
from rehearsal.program.graph import Secret
from rehearsal.program.pulumi_values import UNKNOWN
from rehearsal.pulumi_cli.providers.azure_native.resource_types import ResourceType, flat_properties, is_name_set
from rehearsal.pulumi_cli.providers.provider_interface import CheckFailure, CheckRequest

CREATE_FIRST = "__createBeforeDelete"
"""Input that azure-native stores beside a random name: the replacement has another name and can be created first."""
RANDOM_DIGITS = 8


def name_inputs(resource_type: ResourceType, request: CheckRequest) -> dict[str, object]:
    """Return the inputs that name a resource without a name; none where the engine's configuration forbids it."""
    key = resource_type.names[-1]
    old = request.old or {}
    if key in old:
        return {key: old[key], **({CREATE_FIRST: True} if old.get(CREATE_FIRST) is True else {})}
    proposed = request.naming
    if proposed is not None and proposed.mode == "DISABLE":
        return {}
    if proposed is not None and (proposed.mode == "ENFORCE" or resource_type.name_form != "uuid"):
        return {key: proposed.proposed, CREATE_FIRST: True}
    if resource_type.name_form == "copy":
        return {key: request.name}
    if resource_type.name_form == "uuid":
        return {key: str(uuid.UUID(_digits(request.seed, "", 32))), CREATE_FIRST: True}
    return {key: request.name + _digits(request.seed, request.name, RANDOM_DIGITS), CREATE_FIRST: True}


def _digits(seed: bytes, text: str, count: int) -> str:
    """Return hexadecimal digits, equal for equal seeds and texts."""
    if not seed:
        return secrets.token_hex(count)[:count]
    return hashlib.sha512(text.encode() + seed).hexdigest()[:count]


PROVIDER_INPUTS = frozenset({CREATE_FIRST, "azureApiVersion"})
"""Inputs of azure-native itself."""
LOCATION_HINT = ". Either set it explicitly or configure it with 'pulumi config set azure-native:location <value>'."
_PLAIN: Mapping[Plain, tuple[tuple[type, ...], str]] = {
    Plain.STRING: ((str,), "string"),
    Plain.MOMENT: ((str,), "string"),
    Plain.BOOLEAN: ((bool,), "boolean"),
    Plain.INTEGER: ((int,), "integer"),
    Plain.NUMBER: ((int, float), "number"),
}
_TYPE_NAMES = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}


def input_failures(resource_type: ResourceType, inputs: Mapping[str, Any]) -> list[CheckFailure]:
    """Return all errors in inputs with their paths; unknown values count as correct, secrets as their contents."""
    body = {key: value for key, value in inputs.items() if key not in resource_type.outside_body and key not in PROVIDER_INPUTS}
    sentences = [*_names(resource_type, inputs), *_object(resource_type.shape, body, "", resource_type.token, resource_type.outside_body)]
    # For a failure with a property, the engine prints its value, which may be a secret or a page long.
    return [CheckFailure("", sentence) for sentence in sentences]


def _names(resource_type: ResourceType, inputs: Mapping[str, Any]) -> Iterator[str]:
    for name in resource_type.names:
        value = _revealed(inputs.get(name))
        if value is None:
            yield f"missing required property '{name}'"
        elif not isinstance(value, str):
            yield f"'{name}' should be of type 'string' but got {_type_name(value)}"
        elif not value:
            yield f"'{name}' is empty; a name in an Azure id is not"
    query = NOT_IN_BODY.get(resource_type.token)
    if query is not None and not isinstance(_revealed(inputs.get(query, "")), str):
        yield f"'{query}' should be of type 'string' but got {_type_name(_revealed(inputs[query]))}"


def _value(shape: Shape, value: Any, path: str) -> Iterator[str]:
    value = _revealed(value)
    if value == UNKNOWN or shape is Plain.ANYTHING or value is None:
        return
    match shape:
        case Plain():
            types, expected = _PLAIN[shape]
            yield from _check_type(value, types, expected, path)
        case Choice():
            yield from _check_type(value, (str,), "string", path)
        case ListOf(item):
            if not isinstance(value, list):
                yield _type_error(path, "array", value)
                return
            for number, one in enumerate(value):
                yield from _value(item, one, f"{path}[{number}]")
        case MapOf(item):
            yield from _map(shape, item, value, path)
        case ObjectOf() | OneOf():
            if not isinstance(value, dict):
                yield _type_error(path, "object", value)
                return
            one = variant_shape(shape, value) if isinstance(shape, OneOf) else shape
            yield from _object(one, value, path, path)


def _map(shape: MapOf, item: Shape, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list) and is_name_set(shape):
        for number, one in enumerate(value):
            yield from _value(Plain.STRING, one, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _value(item, one, f"{path}.{key}")
    else:
        yield _type_error(path, "object", value)


def _object(shape: ObjectOf, value: Mapping[str, Any], path: str, where: str, outside_body: frozenset[str] = frozenset()) -> Iterator[str]:
    known = flat_properties(shape)
    before = f"{path}." if path else ""
    for name, property_ in known.items():
        if property_.required and not property_.read_only and name not in value and name not in outside_body:
            yield f"missing required property '{before}{name}'{LOCATION_HINT if before + name == 'location' else ''}"
    for key, item in value.items():
        found = known.get(key)
        if found is None:
            yield f"'{before}{key}' is not a property of {where}{_suggestion(key, [*known, *outside_body])}"
        elif found.read_only:
            yield f"'{before}{key}' is set by Azure; leave it out"
        else:
            yield from _value(found.shape, item, f"{before}{key}")


def _check_type(value: Any, types: tuple[type, ...], expected: str, path: str) -> Iterator[str]:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        yield _type_error(path, expected, value)


def _type_error(path: str, expected: str, value: Any) -> str:
    return f"'{path}' should be of type '{expected}' but got {_type_name(value)}"


def _type_name(value: Any) -> str:
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def _revealed(value: Any) -> Any:
    return _revealed(value.value) if isinstance(value, Secret) else value


def _suggestion(key: str, known: list[str]) -> str:
    near = get_close_matches(key, known, n=1, cutoff=0.6) or [name for name in known if name.lower() == key.lower()][:1]
    return f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(sorted(known)[:40])}"
