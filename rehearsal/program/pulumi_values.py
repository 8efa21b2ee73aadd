"""Translates between the protobuf values of Pulumi's monitor protocol and Python values, secrets kept as `Secret`."""

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime import rpc

from rehearsal.program.graph import Secret

SIGNATURE_KEY = rpc._special_sig_key
SECRET_SIGNATURE = rpc._special_secret_sig


def from_struct(struct: struct_pb2.Struct) -> dict[str, Any]:
    """The properties of a request. Numbers without a fraction become ints: the wire knows only doubles."""
    return {key: _from_value(value) for key, value in struct.fields.items()}


def _from_value(value: struct_pb2.Value) -> Any:
    match value.WhichOneof("kind"):
        case "string_value":
            return value.string_value
        case "struct_value":
            fields = value.struct_value.fields
            if SIGNATURE_KEY in fields and fields[SIGNATURE_KEY].string_value == SECRET_SIGNATURE:
                return Secret(_from_value(fields["value"]))
            return {key: _from_value(item) for key, item in fields.items()}
        case "list_value":
            return [_from_value(item) for item in value.list_value.values]
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() else number
        case "bool_value":
            return value.bool_value
        case _:
            return None


def to_struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """The properties of a response, from JSON-like values and `Secret`s; TypeError for anything else."""
    struct = struct_pb2.Struct()
    struct.update({key: encode_json(value) for key, value in properties.items()})
    return struct


def encode_json(value: Any) -> Any:
    """A value as JSON, with each `Secret` as the wire has it; TypeError for what is not JSON-like."""
    match value:
        case Secret():
            return {SIGNATURE_KEY: SECRET_SIGNATURE, "value": encode_json(value.value)}
        case Mapping():
            return {key: encode_json(item) for key, item in value.items()}
        case list() | tuple():
            return [encode_json(item) for item in value]
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise TypeError(f"an output of type {type(value).__name__} was answered; outputs are JSON-like values")


def decode_json(value: Any) -> Any:
    """The value that to_plain was given."""
    match value:
        case Mapping():
            if value.get(SIGNATURE_KEY) == SECRET_SIGNATURE:
                return Secret(decode_json(value["value"]))
            return {key: decode_json(item) for key, item in value.items()}
        case list():
            return [decode_json(item) for item in value]
        case _:
            return value


def has_unknown(value: Any) -> bool:
    """Whether a value, or one in it, is what the SDK sends for what never came to be."""
    match value:
        case Secret():
            return has_unknown(value.value)
        case Mapping():
            return any(map(has_unknown, value.values()))
        case list() | tuple():
            return any(map(has_unknown, value))
        case _:
            return bool(value == rpc.UNKNOWN)
