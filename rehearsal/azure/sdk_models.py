"""Shapes of the official SDK's models.

Most packages have `rest_field` descriptors beside type annotations:
https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/core/azure-core/azure/core/serialization.py and the `_utils/model_base.py` of
each management package. Older ones name their properties in an `_attribute_map`, inner ones as `properties.x`:
https://github.com/Azure/msrest-for-python#readme and the `_serialization.py` of each package.
"""

from __future__ import annotations

import datetime
import inspect
import types
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from importlib import import_module
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, OneOf, Plain, Property, Shape

OPEN = frozenset({"NetworkApiVersion", "PrincipalType", "VirtualMachineSizeTypes"})
"""Enumerations that Azure extends without a new API version: VM sizes, network versions of interfaces, principal types."""

PYTHON_TYPES: Mapping[Any, Plain] = {
    str: Plain.STRING,
    bool: Plain.BOOLEAN,
    int: Plain.INTEGER,
    float: Plain.NUMBER,
    Decimal: Plain.NUMBER,
    bytes: Plain.STRING,
    datetime.datetime: Plain.MOMENT,
    datetime.date: Plain.MOMENT,
    datetime.timedelta: Plain.STRING,
    datetime.time: Plain.STRING,
}


def enumeration(kind: type[Enum]) -> Shape:
    """Return the shape of an enumeration of the SDK."""
    values = tuple(member.value for member in kind)
    if not all(isinstance(value, str) for value in values):
        return Plain.INTEGER
    return Choice(kind.__name__, values, closed=kind.__name__ not in OPEN)


@cache
def model_shape(kind: type) -> ObjectOf | OneOf:
    """Return the shape of a model class, or of its variants."""
    own = ObjectOf(kind.__name__, partial(_properties, kind), _flattened(kind), package_of(kind))
    chooser = next((rest_name(name, field) for name, field in vars(kind).items() if getattr(field, "_is_discriminator", False)), None)
    if chooser is None or "__mapping__" not in vars(kind):
        return own
    return OneOf(kind.__name__, chooser, own, partial(_variants, kind))


def package_of(kind: type) -> str:
    """Return the package of a model class: azure.mgmt.storage.models._models belongs to storage."""
    return kind.__module__.split(".")[2]


def rest_name(attribute: str, field: Any) -> str:
    """Return a property's name in JSON."""
    return str(field._rest_name_input or attribute)


def _flattened(kind: type) -> bool:
    return any(f"_{base.__name__.lstrip('_')}__flattened_items" in vars(base) for base in kind.__mro__)


def _variants(kind: type) -> Mapping[str, ObjectOf]:
    mapping: Mapping[str, type] = vars(kind)["__mapping__"]
    shapes = ((value, model_shape(variant)) for value, variant in mapping.items())
    return {value: shape for value, shape in shapes if isinstance(shape, ObjectOf)}


def _fields(kind: type) -> Iterator[tuple[str, Any]]:
    for base in reversed(kind.__mro__):
        yield from ((name, field) for name, field in vars(base).items() if type(field).__name__ == "_RestField")


def _properties(kind: type) -> Mapping[str, Property]:
    package = import_module(kind.__module__.rpartition(".")[0])
    hints = get_type_hints(kind, {**vars(import_module(kind.__module__)), "_models": package})
    return {rest_name(name, field): _property(field, hints[name]) for name, field in _fields(kind)}


def _property(field: Any, hint: Any) -> Property:
    optional = type(None) in get_args(hint)
    read_only = field._visibility == ["read"]
    shape = Plain.INTEGER if field._format == "unix-timestamp" else shape_of_hint(hint)
    return Property(shape, read_only, required=not optional and not read_only)


def shape_of_hint(hint: Any) -> Shape:
    """Return the shape of an annotation, with or without None; Any is anything."""
    origin, arguments = get_origin(hint), [argument for argument in get_args(hint) if argument is not type(None)]
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in arguments if isinstance(kind, type) and issubclass(kind, Enum)]
        return enumeration(kinds[0]) if kinds else shape_of_hint(arguments[0])
    if origin is Literal:
        return Choice("Literal", tuple(str(getattr(value, "value", value)) for value in arguments))
    if origin is list:
        return ListOf(shape_of_hint(arguments[0]))
    if origin is dict:
        return MapOf(shape_of_hint(arguments[1]))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return enumeration(hint)
    if getattr(hint, "_is_model", False):
        return model_shape(hint)
    return PYTHON_TYPES.get(hint, Plain.ANYTHING)


ATTRIBUTE_TYPES: Mapping[str, Plain] = {
    "bool": Plain.BOOLEAN,
    "int": Plain.INTEGER,
    "long": Plain.INTEGER,
    "float": Plain.NUMBER,
    "iso-8601": Plain.MOMENT,
    "object": Plain.ANYTHING,
    "str": Plain.STRING,
}


@cache
def attribute_map_shape(kind: Any) -> ObjectOf:
    """Return the shape of a model class."""
    keys = [entry["key"] for entry in kind._attribute_map.values()]
    return ObjectOf(
        kind.__name__, partial(_attribute_properties, kind), any(key.startswith("properties.") for key in keys), package_of(kind)
    )


def _attribute_properties(kind: Any) -> Mapping[str, Property]:
    outer: dict[str, Property] = {}
    inner: dict[str, Property] = {}
    for name, entry in kind._attribute_map.items():
        rules = kind._validation.get(name, {})
        held = Property(_attribute_shape(kind, name, entry["type"]), bool(rules.get("readonly")), bool(rules.get("required")))
        within, _, key = entry["key"].rpartition(".")
        (inner if within else outer)[key] = held
    if inner:
        required = any(held.required for held in inner.values())
        outer["properties"] = Property(ObjectOf(f"{kind.__name__}Properties", lambda: inner), required=required)
    return outer


def _attribute_shape(kind: Any, name: str, type_name: str) -> Shape:
    if type_name.startswith("["):
        return ListOf(_attribute_shape(kind, name, type_name[1:-1]))
    if type_name.startswith("{"):
        return MapOf(_attribute_shape(kind, name, type_name[1:-1]))
    if type_name == "str":
        return _text_or_enumeration(kind, name)
    if type_name in ATTRIBUTE_TYPES:
        return ATTRIBUTE_TYPES[type_name]
    return attribute_map_shape(getattr(import_module(kind.__module__.rpartition(".")[0]), type_name))


def _text_or_enumeration(kind: Any, name: str) -> Shape:
    """Return a string or an enumeration: the map does not distinguish them, but the constructor's annotation does."""
    package = import_module(kind.__module__.rpartition(".")[0])
    hint = inspect.signature(kind.__init__).parameters.get(name)
    if hint is None or "_models." not in str(hint.annotation):
        return Plain.STRING
    hints = get_type_hints(kind.__init__, {**vars(import_module(kind.__module__)), "_models": package})
    shape = shape_of_hint(hints[name])
    return shape if isinstance(shape, Choice) else Plain.STRING
