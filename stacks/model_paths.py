"""Locations of pydantic's errors in a document, and the fields of the model there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from stacks.file_problems import Path


@dataclass(frozen=True)
class UnionChoice:
    """A union member in an error's location: path of the union, members chosen before, and the member."""

    union: Path
    before: tuple[str, ...]
    arm: str


@dataclass(frozen=True)
class ErrorLocation:
    """Location of an error.

    `path` contains keys and indices of the document, without the names of union members that pydantic adds. `field` is the nearest field at
    or above the path, `model` the model whose key the path ends with. `tags` are the discriminator values of a union at the path, `tag_key`
    is their key. `choices` has a member for each union on the path.
    `beside` contains all keys of the mapping in which the path ends.
    """

    path: Path
    field: FieldInfo | None
    model: type[BaseModel] | None
    tags: tuple[str, ...]
    tag_key: str
    choices: tuple[UnionChoice, ...]
    beside: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _FieldType:
    """A type without metadata and None: the members of a union or one type, and the members by tag of a discriminated union."""

    arms: tuple[Any, ...]
    tagged: dict[str, Any]
    tag_key: str = ""


def locate(model: type[BaseModel], location: Sequence[str | int], data: object) -> ErrorLocation:
    """Return the location of an error, found by following pydantic's `loc` through the model and the document."""
    path: Path = ()
    field: FieldInfo | None = None
    owner: type[BaseModel] | None = None
    choices: list[UnionChoice] = []
    beside: frozenset[str] = frozenset()
    kind = _kind(model)
    for element in location:
        if _is_arm(kind, element, data):
            choices.append(UnionChoice(path, tuple(choice.arm for choice in choices), str(element)))
            kind = _kind(_arm(kind, str(element)))
            continue
        models = [arm for arm in kind.arms if _is_model(arm)]
        owner = next((arm for arm in models if element in known_keys(arm)), models[0] if models else None)
        found = known_keys(owner).get(str(element)) if owner else None
        inside, below = _below(data, element)
        beside = frozenset(map(str, data)) if isinstance(data, dict) else frozenset()
        if not found and not inside:
            continue
        path, data = (*path, element), below
        kind = _kind(found.annotation, found.discriminator) if found else _kind(_entry(kind, element))
        field = found or field
    return ErrorLocation(path, field, owner, tuple(kind.tagged), kind.tag_key, tuple(choices), beside=beside)


def known_keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by their key in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _kind(annotation: Any, discriminator: object = None) -> _FieldType:
    """Return a type without its metadata."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        named = (entry.discriminator for entry in metadata if isinstance(entry, FieldInfo) and entry.discriminator)
        return _kind(inner, next(named, discriminator))
    if origin is not Union and origin is not UnionType:
        return _FieldType((annotation,), {})
    arms = tuple(arm for arm in get_args(annotation) if arm is not type(None))
    if len(arms) == 1:
        return _kind(arms[0], discriminator)
    tagged = {}
    for arm in filter(_is_model, arms) if isinstance(discriminator, str) else ():
        for value in get_args(arm.model_fields[discriminator].annotation):
            tagged[str(getattr(value, "value", value))] = arm
    return _FieldType(arms, tagged, discriminator if isinstance(discriminator, str) else "")


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_arm(kind: _FieldType, element: str | int, data: object) -> bool:
    """Return True if an element of a location names a union member; pydantic adds it for unions with several members."""
    if len(kind.arms) == 1 or isinstance(element, int):
        return False
    if kind.tagged:
        return element in kind.tagged
    return _arm(kind, element) is not None or not _below(data, element)[0]


def _arm(kind: _FieldType, label: str) -> Any:
    """Return the union member of a label; None if pydantic named it after a function or a constraint."""
    names = {getattr(arm, "__name__", str(arm)): arm for arm in kind.arms} | {str(arm): arm for arm in kind.arms}
    return kind.tagged.get(label, names.get(label))


def _entry(kind: _FieldType, element: str | int) -> Any:
    """Return the type of a list's entry or a mapping's value; None if unknown."""
    for arm in kind.arms:
        origin, arguments = get_origin(arm), get_args(arm)
        if isinstance(element, str) and origin is dict:
            return arguments[1]
        if isinstance(element, int) and origin in (list, set, frozenset):
            return arguments[0]
        if isinstance(element, int) and origin is tuple:
            return arguments[0] if arguments[-1] is Ellipsis else arguments[element]
    return None


def _below(data: object, element: str | int) -> tuple[bool, object]:
    """Return whether the document has an element, and its value."""
    if isinstance(data, dict) and element in data:
        return True, data[element]
    if isinstance(data, list) and isinstance(element, int) and 0 <= element < len(data):
        return True, data[element]
    return False, None
