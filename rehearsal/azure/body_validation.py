"""Validation of PUT bodies against the official SDK's models, with Azure's error messages.

Each shape is compiled to a function once, so that a large body costs little. The messages are those of Json.NET, with which Azure reads
bodies: https://github.com/Azure/azure-sdk-for-net/issues/3487 shows one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from math import isfinite
from typing import Any, NoReturn

from components.errors import GpufleetError
from rehearsal.azure.errors import AzureError, invalid, location_required, not_modelled
from rehearsal.azure.resource import Json, Request
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.sdk_shapes import UnknownShapeError, shape_of
from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, OneOf, Plain, Shape

DEPTH = 64
"""Nesting levels of a body: https://www.newtonsoft.com/json/help/html/P_Newtonsoft_Json_JsonSerializerSettings_MaxDepth.htm"""
INTEGERS = range(-(2**63), 2**63)

Check = Callable[[Any, int], Any]
"""Function from a value and the number of nesting levels left to the stored value. Raises BodyMismatchError."""

_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}


class BodyMismatchError(GpufleetError):
    """A value that does not match its shape: Azure's code, the message, and the path, which each enclosing level extends."""

    def __init__(self, code: str, sentence: str, *path: str | int) -> None:
        self.code, self.sentence = code, sentence
        self.path: list[str | int] = list(path)
        super().__init__(sentence)

    def under(self, step: str | int) -> BodyMismatchError:
        """Return the error with one more enclosing level in its path."""
        self.path.insert(0, step)
        return self


def unreadable_body(sentence: str, *path: str | int) -> BodyMismatchError:
    """Return the error for a body that cannot be deserialized. The path follows the sentence."""
    return BodyMismatchError("InvalidRequestContent", sentence, *path)


def _wrong(value: Any, expected: str) -> NoReturn:
    # The value itself stays out of the sentence: it may be a password.
    found = "null" if value is None else _KINDS.get(type(value), type(value).__name__)
    raise unreadable_body(f"Error converting {found} to type '{expected}'.")


def _too_deep() -> NoReturn:
    raise unreadable_body(f"The reader's MaxDepth of {DEPTH} has been exceeded.")


def check_text(value: Any, _room: int = 0) -> str:
    """Check a string that can be encoded as UTF-8; half of a surrogate pair cannot."""
    if not isinstance(value, str):
        _wrong(value, Plain.STRING.value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise unreadable_body("Invalid UTF-16: the string holds half of a surrogate pair.") from None
    return value


def _boolean(value: Any, _room: int) -> bool:
    return value if isinstance(value, bool) else _wrong(value, Plain.BOOLEAN.value)


def _integer(value: Any, _room: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        _wrong(value, Plain.INTEGER.value)
    if value not in INTEGERS:
        raise unreadable_body("The JSON integer is too large or small for an Int64.")
    return value


def _number(value: Any, room: int) -> float:
    if isinstance(value, float):
        if not isfinite(value):
            raise unreadable_body("The number is not finite, which JSON cannot hold.")
        return value
    return _integer(value, room) if isinstance(value, int) else _wrong(value, Plain.NUMBER.value)


def _moment(value: Any, _room: int) -> str:
    text = check_text(value)
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise unreadable_body("Could not convert string to DateTime; write it as ISO 8601, 2026-01-31T12:00:00Z.") from None
    return text


def _anything(value: Any, room: int) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return _entries(value, _anything, room, nulls=True)
    if isinstance(value, list):
        return _items(value, _anything, room)
    if isinstance(value, str):
        return check_text(value)
    return value if isinstance(value, bool) else _number(value, room)


def _entries(value: Any, check: Check, room: int, *, nulls: bool = False) -> dict[str, Any]:
    if room <= 0:
        _too_deep()
    result = {}
    for key, item in value.items():
        try:
            check_text(key)
            if item is not None or nulls:
                result[key] = check(item, room - 1)
        except BodyMismatchError as mismatch:
            raise mismatch.under(key if isinstance(key, str) and key.isprintable() else "?") from None
    return result


def _items(value: Any, check: Check, room: int) -> list[Any]:
    if room <= 0:
        _too_deep()
    result: list[Any] = []
    try:
        result.extend(check(item, room - 1) for item in value)
    except BodyMismatchError as mismatch:
        raise mismatch.under(len(result)) from None
    return result


_PLAIN: Mapping[Plain, Check] = {
    Plain.STRING: check_text,
    Plain.BOOLEAN: _boolean,
    Plain.INTEGER: _integer,
    Plain.NUMBER: _number,
    Plain.MOMENT: _moment,
    Plain.ANYTHING: _anything,
}


@cache
def compile_shape(shape: Shape) -> Check:
    """Return the check of a shape. Checks of inner objects are compiled on first use."""
    match shape:
        case Plain():
            return _PLAIN[shape]
        case Choice():
            return _choice(shape)
        case ListOf(item):
            return _list(item)
        case MapOf(item):
            return _map(item)
        case OneOf():
            return _one_of(shape)
        case ObjectOf():
            return _object(shape)


def _choice(shape: Choice) -> Check:
    values = {value.lower(): value for value in shape.values}
    exact = frozenset(shape.values)

    def check(value: Any, _room: int) -> str:
        text = check_text(value)
        if text in exact:
            return text
        published = values.get(text.lower())
        if published is None and shape.closed:
            raise BodyMismatchError("InvalidParameter", f"{text[:100]!r} is none of {', '.join(shape.values)}.")
        return text if published is None else published

    return check


def _list(item: Shape) -> Check:
    each = compile_shape(item)

    def check(value: Any, room: int) -> list[Any]:
        if not isinstance(value, list):
            _wrong(value, "Array")
        return _items(value, each, room)

    return check


def _map(item: Shape) -> Check:
    each = compile_shape(item)

    def check(value: Any, room: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            _wrong(value, "Dictionary")
        return _entries(value, each, room)

    return check


def _one_of(shape: OneOf) -> Check:
    variants = {name.lower(): variant for name, variant in shape.variants.items()}

    def check(value: Any, room: int) -> Any:
        if not isinstance(value, dict):
            _wrong(value, shape.name)
        text = next((item for key, item in value.items() if isinstance(key, str) and key.lower() == shape.discriminator.lower()), None)
        if text is None:
            raise BodyMismatchError("InvalidParameter", "", shape.discriminator)
        variant = variants.get(text.lower()) if isinstance(text, str) else None
        if variant is None:
            raise BodyMismatchError("InvalidParameter", f"It is none of {', '.join(shape.variants)}.", shape.discriminator)
        return compile_shape(variant)(value, room)

    return check


class _Entries(dict[str, tuple[str, type | None, Check | None]]):
    """Lookup of an object's properties by name in any case: published name, type that needs no check, and check.

    A read-only property has no check. A limited number of spellings in other case is cached.
    """

    def __init__(self, shape: ObjectOf) -> None:
        super().__init__()
        self._shape = shape
        self._names = {name.lower(): name for name in shape.properties}
        self.required = tuple(name for name, held in shape.properties.items() if held.required)

    def __missing__(self, key: Any) -> tuple[str, type | None, Check | None]:
        name = self._names.get(key.lower()) if isinstance(key, str) else None
        if name is None:
            shown = key[:100].encode("ascii", "backslashreplace").decode() if isinstance(key, str) else "?"
            raise unreadable_body(f"Could not find member '{shown}' on object of type '{self._shape.name}'.", shown)
        held = self._shape.properties[name]
        simple = {Plain.STRING: str, Plain.BOOLEAN: bool}.get(held.shape) if isinstance(held.shape, Plain) else None
        entry = (name, None, None) if held.read_only else (name, simple, compile_shape(held.shape))
        if len(self) < 4 * len(self._names):
            self[key] = entry
        return entry


def _object(shape: ObjectOf) -> Check:
    found: list[_Entries] = []

    def check(value: Any, room: int) -> dict[str, Any]:
        if not isinstance(value, dict):
            _wrong(value, shape.name)
        if room <= 0:
            _too_deep()
        if not found:
            found.append(_Entries(shape))
        entries = found[0]
        result: dict[str, Any] = {}
        for key, item in value.items():
            name, simple, compare = entries[key]
            if item is None:
                continue
            kind = type(item)
            if kind is simple and (kind is bool or item.isascii()):
                result[name] = item
            elif compare is not None:
                try:
                    result[name] = compare(item, room - 1)
                except BodyMismatchError as mismatch:
                    raise mismatch.under(name) from None
        for name in entries.required:
            if name not in result:
                raise BodyMismatchError("InvalidParameter", "", name)
        return result

    return check


class SdkBodyReader:
    """Reader of bodies in Azure's manner: names match in any case, null means absent, read-only properties are dropped.

    Everything else is rejected. It implements `BodyReader` of rehearsal/azure/cloud.py.
    """

    def checked(self, kind: ResourceType, request: Request, /) -> Json:
        """Return a new body with property names in published case. Raises AzureError 400."""
        return validate_body(kind.type, request.body)


def validate_body(resource_type: str, body: object) -> Json:
    """Return the body of a resource type as it is stored."""
    try:
        shape = shape_of(resource_type)
    except UnknownShapeError as unknown:
        raise not_modelled(f"the resource type '{resource_type}': {unknown}", resource_type) from None
    if body is None:
        raise invalid("The request content was invalid: a PUT needs a body, and there is none.", code="InvalidRequestContent")
    try:
        result: Json = compile_shape(shape)(body, DEPTH)
    except BodyMismatchError as mismatch:
        raise _refusal(mismatch, shape.name) from None
    return result


def _refusal(mismatch: BodyMismatchError, name: str) -> AzureError:
    if mismatch.code != "InvalidParameter":
        sentence = mismatch.sentence
        if len(mismatch.path) == 1:
            # Azure Resource Manager reads the outermost level itself, whatever the type.
            sentence = sentence.replace(f"on object of type '{name}'", "on object of type 'ResourceDefinition'")
        text = f"The request content was invalid and could not be deserialized: '{sentence} Path '{_path(mismatch.path)}'.'."
        return invalid(text, code=mismatch.code)
    if mismatch.path == ["location"]:
        return location_required()
    target = _path(step for step in mismatch.path if step != "properties")
    if not mismatch.sentence:
        return invalid(f"Required parameter '{target}' is missing (null).", target)
    return invalid(f"The value of parameter {target} is invalid. {mismatch.sentence}", target)


def _path(steps: Iterable[str | int]) -> str:
    """Return a path in Json.NET's form: properties.zones[0], with special names in brackets."""
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("_", "").isalnum():
            text += f".{step}" if text else step
        else:
            text += f"['{step}']"
    return text
