"""Decides whether a body fits a shape and what of it is kept: each shape is made a function once, so that a large body costs little.

The sentences are those of Json.NET, with which Azure reads bodies: https://github.com/Azure/azure-sdk-for-net/issues/3487 shows one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from math import isfinite
from typing import Any, NoReturn

from components.errors import GpufleetError
from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, OneOf, Plain, Shape

DEPTH = 64
"""Levels that a body may nest: https://www.newtonsoft.com/json/help/html/P_Newtonsoft_Json_JsonSerializerSettings_MaxDepth.htm"""
INTEGERS = range(-(2**63), 2**63)

Check = Callable[[Any, int], Any]
"""Takes a value and how many levels may be left below it; gives what is kept of it, or raises Misfit."""

_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array", dict: "an object"}


class BodyMismatchError(GpufleetError):
    """A value that does not fit: Azure's code, what is wrong, and the way to it, which each level that it passes adds to."""

    def __init__(self, code: str, sentence: str, *path: str | int) -> None:
        self.code, self.sentence = code, sentence
        self.path: list[str | int] = list(path)
        super().__init__(sentence)

    def under(self, step: str | int) -> BodyMismatchError:
        """The same, seen from one level further out."""
        self.path.insert(0, step)
        return self


def unreadable(sentence: str, *path: str | int) -> BodyMismatchError:
    """A body that cannot be deserialized; the sentence ends where the path follows."""
    return BodyMismatchError("InvalidRequestContent", sentence, *path)


def _wrong(value: Any, wanted: str) -> NoReturn:
    # The value itself stays out of the sentence: it may be a password.
    found = "null" if value is None else _KINDS.get(type(value), type(value).__name__)
    raise unreadable(f"Error converting {found} to type '{wanted}'.")


def _too_deep() -> NoReturn:
    raise unreadable(f"The reader's MaxDepth of {DEPTH} has been exceeded.")


def text(value: Any, _room: int = 0) -> str:
    """A string that can be written as UTF-8; half of a surrogate pair cannot."""
    if not isinstance(value, str):
        _wrong(value, Plain.STRING.value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise unreadable("Invalid UTF-16: the string holds half of a surrogate pair.") from None
    return value


def _boolean(value: Any, _room: int) -> bool:
    return value if isinstance(value, bool) else _wrong(value, Plain.BOOLEAN.value)


def _integer(value: Any, _room: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        _wrong(value, Plain.INTEGER.value)
    if value not in INTEGERS:
        raise unreadable("The JSON integer is too large or small for an Int64.")
    return value


def _number(value: Any, room: int) -> float:
    if isinstance(value, float):
        if not isfinite(value):
            raise unreadable("The number is not finite, which JSON cannot hold.")
        return value
    return _integer(value, room) if isinstance(value, int) else _wrong(value, Plain.NUMBER.value)


def _moment(value: Any, _room: int) -> str:
    told = text(value)
    try:
        datetime.fromisoformat(told)
    except ValueError:
        raise unreadable("Could not convert string to DateTime; write it as ISO 8601, 2026-01-31T12:00:00Z.") from None
    return told


def _anything(value: Any, room: int) -> Any:
    if value is None:
        return None
    if isinstance(value, dict):
        return _entries(value, _anything, room, nulls=True)
    if isinstance(value, list):
        return _items(value, _anything, room)
    if isinstance(value, str):
        return text(value)
    return value if isinstance(value, bool) else _number(value, room)


def _entries(value: Any, check: Check, room: int, *, nulls: bool = False) -> dict[str, Any]:
    if room <= 0:
        _too_deep()
    kept = {}
    for key, item in value.items():
        try:
            text(key)
            if item is not None or nulls:
                kept[key] = check(item, room - 1)
        except BodyMismatchError as misfit:
            raise misfit.under(key if isinstance(key, str) and key.isprintable() else "?") from None
    return kept


def _items(value: Any, check: Check, room: int) -> list[Any]:
    if room <= 0:
        _too_deep()
    kept: list[Any] = []
    try:
        kept.extend(check(item, room - 1) for item in value)
    except BodyMismatchError as misfit:
        raise misfit.under(len(kept)) from None
    return kept


_PLAIN: Mapping[Plain, Check] = {
    Plain.STRING: text,
    Plain.BOOLEAN: _boolean,
    Plain.INTEGER: _integer,
    Plain.NUMBER: _number,
    Plain.MOMENT: _moment,
    Plain.ANYTHING: _anything,
}


@cache
def compiled(shape: Shape) -> Check:
    """The check of a shape; the objects in it are compiled when a body first has them."""
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
        told = text(value)
        if told in exact:
            return told
        published = values.get(told.lower())
        if published is None and shape.closed:
            raise BodyMismatchError("InvalidParameter", f"{told[:100]!r} is none of {', '.join(shape.values)}.")
        return told if published is None else published

    return check


def _list(item: Shape) -> Check:
    each = compiled(item)

    def check(value: Any, room: int) -> list[Any]:
        if not isinstance(value, list):
            _wrong(value, "Array")
        return _items(value, each, room)

    return check


def _map(item: Shape) -> Check:
    each = compiled(item)

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
        told = next((item for key, item in value.items() if isinstance(key, str) and key.lower() == shape.discriminator.lower()), None)
        if told is None:
            raise BodyMismatchError("InvalidParameter", "", shape.discriminator)
        variant = variants.get(told.lower()) if isinstance(told, str) else None
        if variant is None:
            raise BodyMismatchError("InvalidParameter", f"It is none of {', '.join(shape.variants)}.", shape.discriminator)
        return compiled(variant)(value, room)

    return check


class _Entries(dict[str, tuple[str, type | None, Check | None]]):
    """What an object's check needs of each property, by name in any capitals: published name, type that needs no check, check.

    A read-only property has no check. Other capitals are looked up once and kept, as long as they are few.
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
            raise unreadable(f"Could not find member '{shown}' on object of type '{self._shape.name}'.", shown)
        held = self._shape.properties[name]
        simple = {Plain.STRING: str, Plain.BOOLEAN: bool}.get(held.shape) if isinstance(held.shape, Plain) else None
        entry = (name, None, None) if held.read_only else (name, simple, compiled(held.shape))
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
        kept: dict[str, Any] = {}
        for key, item in value.items():
            name, simple, compare = entries[key]
            if item is None:
                continue
            kind = type(item)
            if kind is simple and (kind is bool or item.isascii()):
                kept[name] = item
            elif compare is not None:
                try:
                    kept[name] = compare(item, room - 1)
                except BodyMismatchError as misfit:
                    raise misfit.under(name) from None
        for name in entries.required:
            if name not in kept:
                raise BodyMismatchError("InvalidParameter", "", name)
        return kept

    return check
