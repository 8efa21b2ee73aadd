"""Shapes of the official SDK's older models, which name properties in an `_attribute_map` and inner ones as `properties.x`.

https://github.com/Azure/msrest-for-python#readme and each package's `_serialization.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any, get_type_hints

from rehearsal.azure.rest_fields import package_of, shape_of_hint
from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, Plain, Property, Shape

PLAIN: Mapping[str, Plain] = {
    "bool": Plain.BOOLEAN,
    "int": Plain.INTEGER,
    "long": Plain.INTEGER,
    "float": Plain.NUMBER,
    "iso-8601": Plain.MOMENT,
    "object": Plain.ANYTHING,
    "str": Plain.STRING,
}


@cache
def model(kind: Any) -> ObjectOf:
    """Return the shape of a model class."""
    keys = [entry["key"] for entry in kind._attribute_map.values()]
    return ObjectOf(kind.__name__, partial(_properties, kind), any(key.startswith("properties.") for key in keys), package_of(kind))


def _properties(kind: Any) -> Mapping[str, Property]:
    outer: dict[str, Property] = {}
    inner: dict[str, Property] = {}
    for name, entry in kind._attribute_map.items():
        rules = kind._validation.get(name, {})
        held = Property(_shape(kind, name, entry["type"]), bool(rules.get("readonly")), bool(rules.get("required")))
        within, _, key = entry["key"].rpartition(".")
        (inner if within else outer)[key] = held
    if inner:
        required = any(held.required for held in inner.values())
        outer["properties"] = Property(ObjectOf(f"{kind.__name__}Properties", lambda: inner), required=required)
    return outer


def _shape(kind: Any, name: str, type_name: str) -> Shape:
    if type_name.startswith("["):
        return ListOf(_shape(kind, name, type_name[1:-1]))
    if type_name.startswith("{"):
        return MapOf(_shape(kind, name, type_name[1:-1]))
    if type_name == "str":
        return _enumeration(kind, name)
    if type_name in PLAIN:
        return PLAIN[type_name]
    return model(getattr(import_module(kind.__module__.rpartition(".")[0]), type_name))


def _enumeration(kind: Any, name: str) -> Shape:
    """Return a string or an enumeration: the map does not distinguish them, but the constructor's annotation does."""
    package = import_module(kind.__module__.rpartition(".")[0])
    hint = inspect.signature(kind.__init__).parameters.get(name)
    if hint is None or "_models." not in str(hint.annotation):
        return Plain.STRING
    hints = get_type_hints(kind.__init__, {**vars(import_module(kind.__module__)), "_models": package})
    shape = shape_of_hint(hints[name])
    return shape if isinstance(shape, Choice) else Plain.STRING
