"""Decides what is wrong with the inputs of a resource: what it does not have, what is missing, what is of another type."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from rehearsal.azure.azure_native import NOT_IN_BODY, variant
from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, OneOf, Plain, Shape
from rehearsal.program.graph import Secret
from rehearsal.pulumi_cli.providers.azure_native.resource_types import ResourceType, flat_properties, is_name_set
from rehearsal.pulumi_cli.providers.provider_interface import CheckFailure, CheckRequest
from rehearsal.pulumi_cli.providers.pulumi_values import UNKNOWN

CREATE_FIRST = "__createBeforeDelete"
"""Input that azure-native keeps beside a random name: the replacement, having another name, can be made first."""
RANDOM_DIGITS = 8


def name_inputs(kind: ResourceType, asked: CheckRequest) -> dict[str, object]:
    """The inputs that name a resource which the program left nameless: none where the engine's configuration forbids it."""
    key = kind.names[-1]
    old = asked.old or {}
    if key in old:
        return {key: old[key], **({CREATE_FIRST: True} if old.get(CREATE_FIRST) is True else {})}
    proposed = asked.naming
    if proposed is not None and proposed.mode == "DISABLE":
        return {}
    if proposed is not None and (proposed.mode == "ENFORCE" or kind.auto_name != "uuid"):
        return {key: proposed.proposed, CREATE_FIRST: True}
    if kind.auto_name == "copy":
        return {key: asked.name}
    if kind.auto_name == "uuid":
        return {key: str(uuid.UUID(_digits(asked.seed, "", 32))), CREATE_FIRST: True}
    return {key: asked.name + _digits(asked.seed, asked.name, RANDOM_DIGITS), CREATE_FIRST: True}


def _digits(seed: bytes, text: str, count: int) -> str:
    """Hexadecimal digits, the same for the same seed and text."""
    if not seed:
        return secrets.token_hex(count)[:count]
    return hashlib.sha512(text.encode() + seed).hexdigest()[:count]


OWN = frozenset({CREATE_FIRST, "azureApiVersion"})
"""Inputs that are azure-native's own."""
LOCATION_HINT = ". Either set it explicitly or configure it with 'pulumi config set azure-native:location <value>'."
_PLAIN: Mapping[Plain, tuple[tuple[type, ...], str]] = {
    Plain.STRING: ((str,), "string"),
    Plain.MOMENT: ((str,), "string"),
    Plain.BOOLEAN: ((bool,), "boolean"),
    Plain.INTEGER: ((int,), "integer"),
    Plain.NUMBER: ((int, float), "number"),
}
_WORDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}


def input_failures(kind: ResourceType, inputs: Mapping[str, Any]) -> list[CheckFailure]:
    """Everything that is wrong with inputs, each with its path; unknown values are taken as they will be, secrets as what they hold."""
    body = {key: value for key, value in inputs.items() if key not in kind.apart and key not in OWN}
    sentences = [*_names(kind, inputs), *_object(kind.shape, body, "", kind.token, kind.apart)]
    # The engine prints the value of a property that is named apart, which may be a secret or a page long.
    return [CheckFailure("", sentence) for sentence in sentences]


def _names(kind: ResourceType, inputs: Mapping[str, Any]) -> Iterator[str]:
    for name in kind.names:
        value = _revealed(inputs.get(name))
        if value is None:
            yield f"missing required property '{name}'"
        elif not isinstance(value, str):
            yield f"'{name}' should be of type 'string' but got {_word(value)}"
        elif not value:
            yield f"'{name}' is empty, and a name in Azure's ids is not"
    query = NOT_IN_BODY.get(kind.token)
    if query is not None and not isinstance(_revealed(inputs.get(query, "")), str):
        yield f"'{query}' should be of type 'string' but got {_word(_revealed(inputs[query]))}"


def _value(shape: Shape, value: Any, path: str) -> Iterator[str]:
    value = _revealed(value)
    if value == UNKNOWN or shape is Plain.ANYTHING or value is None:
        return
    match shape:
        case Plain():
            types, wanted = _PLAIN[shape]
            yield from _typed(value, types, wanted, path)
        case Choice():
            yield from _typed(value, (str,), "string", path)
        case ListOf(item):
            if not isinstance(value, list):
                yield _wrong(path, "array", value)
                return
            for number, one in enumerate(value):
                yield from _value(item, one, f"{path}[{number}]")
        case MapOf(item):
            yield from _map(shape, item, value, path)
        case ObjectOf() | OneOf():
            if not isinstance(value, dict):
                yield _wrong(path, "object", value)
                return
            one = variant(shape, value) if isinstance(shape, OneOf) else shape
            yield from _object(one, value, path, path)


def _map(shape: MapOf, item: Shape, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list) and is_name_set(shape):
        for number, one in enumerate(value):
            yield from _value(Plain.STRING, one, f"{path}[{number}]")
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _value(item, one, f"{path}.{key}")
    else:
        yield _wrong(path, "object", value)


def _object(shape: ObjectOf, value: Mapping[str, Any], path: str, where: str, apart: frozenset[str] = frozenset()) -> Iterator[str]:
    known = flat_properties(shape)
    before = f"{path}." if path else ""
    for name, held in known.items():
        if held.required and not held.read_only and name not in value and name not in apart:
            yield f"missing required property '{before}{name}'{LOCATION_HINT if before + name == 'location' else ''}"
    for key, item in value.items():
        found = known.get(key)
        if found is None:
            yield f"'{before}{key}' is no property of {where}{_nearest(key, [*known, *apart])}"
        elif found.read_only:
            yield f"'{before}{key}' is Azure's to set; leave it out"
        else:
            yield from _value(found.shape, item, f"{before}{key}")


def _typed(value: Any, types: tuple[type, ...], wanted: str, path: str) -> Iterator[str]:
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        yield _wrong(path, wanted, value)


def _wrong(path: str, wanted: str, value: Any) -> str:
    return f"'{path}' should be of type '{wanted}' but got {_word(value)}"


def _word(value: Any) -> str:
    return _WORDS.get(type(value), type(value).__name__)


def _revealed(value: Any) -> Any:
    return _revealed(value.value) if isinstance(value, Secret) else value


def _nearest(key: str, known: list[str]) -> str:
    near = get_close_matches(key, known, n=1, cutoff=0.6) or [name for name in known if name.lower() == key.lower()][:1]
    return f"; did you mean '{near[0]}'?" if near else f"; it has {', '.join(sorted(known)[:40])}"
