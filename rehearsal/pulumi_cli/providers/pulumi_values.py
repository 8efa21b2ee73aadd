"""Translates between the values of Pulumi's provider protocol and Python's: secrets as `Secret`, what is not known yet as UNKNOWN.

This module does not import Pulumi's SDK, because a provider process runs without it; rehearsal.program.pulumi_values does. That one keeps
nulls and spellings of UNKNOWN as received, because the registered inputs are compared with them.
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
"""What stands for a value that only an update will tell."""
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
"""Every spelling that the engine has of it: text, truth value, number, list, asset, archive, object."""
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 a marker of the protocol
ASSET = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
REFERENCE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


class ValueFormatError(GpufleetError):
    """A value of the protocol that a provider cannot take; path says where it stands."""

    def __init__(self, path: str, why: str) -> None:
        self.path, self.why = path, why
        super().__init__(f"{path or 'the properties'}: {why}")


def decode(struct: struct_pb2.Struct) -> Json:
    """The properties of a request, nulls left out of objects; whole numbers are ints. NotUnderstood."""
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
            number = value.number_value
            if not -1.8e308 < number < 1.8e308:
                raise ValueFormatError(path, f"{number} is no number that JSON has")
            return int(number) if number.is_integer() else number
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


def encode(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """The properties of a response, from JSON-like values and `Secret`s; TypeError for anything else."""
    struct = struct_pb2.Struct()
    fields = struct.fields
    for key, value in properties.items():
        _write(fields[key], value)
    return struct


def _write(place: struct_pb2.Value, value: Any) -> None:
    match value:
        case str():
            place.string_value = value
        case bool():
            place.bool_value = value
        case None:
            place.null_value = struct_pb2.NULL_VALUE
        case int() | float():
            place.number_value = value
        case Secret():
            fields = place.struct_value.fields
            fields[SIGNATURE].string_value = SECRET
            _write(fields["value"], value.value)
        case Mapping():
            # An empty object is one only once something of it was touched.
            place.struct_value.SetInParent()
            for key, item in value.items():
                _write(place.struct_value.fields[key], item)
        case list() | tuple():
            place.list_value.SetInParent()
            for item in value:
                _write(place.list_value.values.add(), item)
        case _:
            raise TypeError(f"a value of type {type(value).__name__} is none of the protocol's")


def is_unknown(value: Any) -> bool:
    """Whether a value itself is not known yet."""
    return value == UNKNOWN if isinstance(value, str) else isinstance(value, Secret) and is_unknown(value.value)


def has_unknown(value: Any) -> bool:
    """Whether a value, or one in it, is not known yet."""
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
    """The outputs with a `Secret` wherever the inputs of the same path have one."""
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
            # Which one became which nobody can tell, so that all are kept.
            return Secret(outputs) if any(map(has_secret, inputs)) else outputs
        case _:
            return outputs


def has_secret(value: Any) -> bool:
    """Whether a value is secret, or one in it."""
    match value:
        case Secret():
            return True
        case Mapping():
            return any(map(has_secret, value.values()))
        case list() | tuple():
            return any(map(has_secret, value))
        case _:
            return False
