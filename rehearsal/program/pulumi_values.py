"""Translation between the protobuf values of Pulumi's protocols and Python values: secrets as `Secret`, unknown values as UNKNOWN.

This module does not import Pulumi's SDK: a provider process runs without it (rehearsal.pulumi_cli.providers.start).
https://github.com/pulumi/pulumi/blob/master/sdk/go/common/resource/properties.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2  # type: ignore[import-untyped]

from components.errors import GpufleetError
from rehearsal.program.graph import Secret

Json = dict[str, Any]

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Marker of a value that only an update computes."""
UNKNOWNS = frozenset(
    {
        UNKNOWN,
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
"""The engine's markers of an unknown text, truth value, number, list, asset, archive and object."""
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 a marker of the protocol
ASSET = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
REFERENCE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


class ValueFormatError(GpufleetError):
    """A value of the protocol that a provider does not accept; path is its path in the properties."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path or 'the properties'}: {why}")


def decode(struct: struct_pb2.Struct) -> Json:
    """Return the properties of a provider request, without nulls in objects; whole numbers are ints.

    Raises ValueFormatError.
    """
    return _object(struct.fields, "")


def _object(fields: Mapping[str, struct_pb2.Value], path: str) -> Json:
    found: Json = {}
    for key, value in fields.items():
        if value.WhichOneof("kind") not in ("null_value", None):
            found[key] = _value(value, f"{path}.{key}" if path else key)
    return found


def _value(value: struct_pb2.Value, path: str) -> Any:
    match value.WhichOneof("kind"):
        case "string_value":
            text = value.string_value
            return UNKNOWN if text in UNKNOWNS else text
        case "struct_value":
            fields = value.struct_value.fields
            if SIGNATURE in fields:
                return _special(fields, path)
            return _object(fields, path)
        case "list_value":
            return [_value(item, f"{path}[{number}]") for number, item in enumerate(value.list_value.values)]
        case "number_value":
            if not -1.8e308 < value.number_value < 1.8e308:
                raise ValueFormatError(path, f"{value.number_value} is not a JSON number")
            return _number(value)
        case "bool_value":
            return value.bool_value
        case _:
            return None


def _special(fields: Mapping[str, struct_pb2.Value], path: str) -> Any:
    signature = fields[SIGNATURE].string_value
    if signature == SECRET:
        return _secret(_held(fields, path))
    if signature == OUTPUT:
        held = _held(fields, path) if "value" in fields else UNKNOWN
        return _secret(held) if "secret" in fields and fields["secret"].bool_value else held
    if signature == REFERENCE:
        if "id" not in fields:
            return fields["urn"].string_value if "urn" in fields else None
        return _value(fields["id"], path) or UNKNOWN
    if signature in (ASSET, ARCHIVE):
        raise ValueFormatError(path, "is an asset or an archive, which no resource here takes; give its text")
    raise ValueFormatError(path, f"is a value of a kind that is not known here (signature {signature[:40]!r})")


def _held(fields: Mapping[str, struct_pb2.Value], path: str) -> Any:
    if "value" not in fields:
        raise ValueFormatError(path, "is a secret without a value")
    return _value(fields["value"], path)


def _secret(value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(value)


def decode_as_sent(struct: struct_pb2.Struct) -> Json:
    """Return the properties of a monitor request with nulls and markers as the program sent them; whole numbers are ints.

    A rehearsal compares registered inputs with a plan, so that this function normalizes less than `decode` does.
    """
    return {key: _as_sent(value) for key, value in struct.fields.items()}


def _as_sent(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "struct_value":
            fields = value.struct_value.fields
            if SIGNATURE in fields and fields[SIGNATURE].string_value == SECRET:
                return Secret(_as_sent(fields["value"]))
            return {key: _as_sent(item) for key, item in fields.items()}
        case "list_value":
            return [_as_sent(item) for item in value.list_value.values]
        case "number_value":
            return _number(value)
        case "null_value" | None:
            return None
        case kind:
            return getattr(value, kind)


def _number(value: struct_pb2.Value) -> float:
    """Return a number, as an int where it is whole: the protocol has only doubles."""
    number: float = value.number_value
    return int(number) if number.is_integer() else number


def encode(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """Return the properties of a response, from JSON-like values and `Secret`s; raise TypeError for anything else."""
    struct = struct_pb2.Struct()
    fields = struct.fields
    for key, value in properties.items():
        _write(fields[key], value)
    return struct


def _write(target: struct_pb2.Value, value: Any) -> None:
    match value:
        case str():
            target.string_value = value
        case bool():
            target.bool_value = value
        case None:
            target.null_value = struct_pb2.NULL_VALUE
        case int() | float():
            target.number_value = value
        case Secret():
            fields = target.struct_value.fields
            fields[SIGNATURE].string_value = SECRET
            _write(fields["value"], value.value)
        case Mapping():
            # protobuf sets an empty object only when a field of it is touched.
            target.struct_value.SetInParent()
            for key, item in value.items():
                _write(target.struct_value.fields[key], item)
        case list() | tuple():
            target.list_value.SetInParent()
            for item in value:
                _write(target.list_value.values.add(), item)
        case _:
            raise _not_json(value)


def encode_json(value: Any) -> Any:
    """Return a JSON-like value with each `Secret` in the form of the protocol; raise TypeError for anything else."""
    match value:
        case Secret():
            return {SIGNATURE: SECRET, "value": encode_json(value.value)}
        case Mapping():
            return {key: encode_json(item) for key, item in value.items()}
        case list() | tuple():
            return [encode_json(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise _not_json(value)


def decode_json(value: Any) -> Any:
    """Return the value that encode_json was given."""
    match value:
        case Mapping():
            if value.get(SIGNATURE) == SECRET:
                return Secret(decode_json(value["value"]))
            return {key: decode_json(item) for key, item in value.items()}
        case list():
            return [decode_json(item) for item in value]
        case _:
            return value


def _not_json(value: Any) -> TypeError:
    return TypeError(f"a value of type {type(value).__name__} is not JSON-like; return JSON-like values")


def is_unknown(value: Any) -> bool:
    """Return whether a value itself is unknown."""
    return value == UNKNOWN if isinstance(value, str) else isinstance(value, Secret) and is_unknown(value.value)


def has_unknown(value: Any) -> bool:
    """Return whether a value, or a value inside it, is unknown."""
    match value:
        case str():
            return value == UNKNOWN
        case Secret():
            return has_unknown(value.value)
        case Mapping():
            return any(map(has_unknown, value.values()))
        case list() | tuple():
            return any(map(has_unknown, value))
        case _:
            return False


def secret_like(outputs: Any, inputs: Any) -> Any:
    """Return the outputs with a `Secret` wherever the inputs have one at the same path."""
    match outputs, inputs:
        case Secret(), _:
            return outputs
        case _, Secret():
            return Secret(outputs)
        case Mapping(), Mapping():
            return {key: secret_like(value, inputs.get(key)) for key, value in outputs.items()}
        case list(), list() if len(outputs) == len(inputs):
            return [secret_like(one, other) for one, other in zip(outputs, inputs, strict=True)]
        case list(), list():
            # The items cannot be matched, so all of them are secret.
            return Secret(outputs) if any(map(has_secret, inputs)) else outputs
        case _:
            return outputs


def has_secret(value: Any) -> bool:
    """Return whether a value, or a value inside it, is secret."""
    match value:
        case Secret():
            return True
        case Mapping():
            return any(map(has_secret, value.values()))
        case list() | tuple():
            return any(map(has_secret, value))
        case _:
            return False
