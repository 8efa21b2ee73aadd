"""Reads shapes out of the official SDK's present models, whose properties are `rest_field` descriptors beside type annotations.

https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/core/azure-core/azure/core/serialization.py and, for the descriptors, the
`_utils/model_base.py` that each management package carries.
"""

from __future__ import annotations

import datetime
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

PLAIN: Mapping[Any, Plain] = {
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
def model(kind: type) -> ObjectOf | OneOf:
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
    shapes = ((value, model(variant)) for value, variant in mapping.items())
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
        return model(hint)
    return PLAIN.get(hint, Plain.ANYTHING)
