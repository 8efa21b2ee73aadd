"""Says which properties azure-native shows of an object of Azure's: those in `properties` as its own, and some by other names."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from rehearsal.azure.azure_native import is_inner, part, renamed
from rehearsal.azure.shapes import MapOf, ObjectOf, Property, Shape

_known: WeakKeyDictionary[ObjectOf, Mapping[str, Property]] = WeakKeyDictionary()


def flat(shape: ObjectOf) -> Mapping[str, Property]:
    """The properties of an object by azure-native's names."""
    found = _known.get(shape)
    if found is None:
        found = _known[shape] = _flat(shape)
    return found


def writable(shape: ObjectOf) -> Mapping[str, Property]:
    """Those that a program may give."""
    return {name: held for name, held in flat(shape).items() if not held.read_only}


def is_set_of_names(shape: Shape) -> bool:
    """Whether Azure has names as the keys of an object where azure-native has a list of them: what they stand for is Azure's to say."""
    return isinstance(shape, MapOf) and isinstance(shape.item, ObjectOf) and all(held.read_only for held in shape.item.properties.values())


def _flat(shape: ObjectOf) -> Mapping[str, Property]:
    inner = shape.inner
    found = {name: held for name, held in shape.properties.items() if not (inner is not None and name == "properties")}
    if inner is not None:
        found |= {name: held for name, held in inner.properties.items() if is_inner(shape, name) or name not in found}
    for name, path in renamed(shape).items():
        *outer, last = path.split(".")
        place: Shape | None = shape
        for step in outer:
            place = part(place, step)
        if isinstance(place, ObjectOf) and last in place.properties:
            if len(outer) == (1 if outer == ["properties"] else 0):
                found.pop(last, None)
            found[name] = place.properties[last]
    return found
