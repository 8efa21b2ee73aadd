"""Shapes as JSON, so that a process need not import the official clients, which takes two seconds and 100 MB."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rehearsal.azure.resource import Json
from rehearsal.azure.shapes import Choice, ListOf, MapOf, ObjectOf, OneOf, Plain, Property, Shape


def encode_shapes(shapes: Mapping[str, ObjectOf]) -> Json:
    """Return shapes by name, with all shapes that they refer to, each once."""
    table = _Writing()
    roots = {name: table.number(shape) for name, shape in shapes.items()}
    table.finish()
    return {"roots": roots, "shapes": table.rows}


def decode_shapes(document: Mapping[str, Any]) -> dict[str, ObjectOf]:
    """Return the shapes of a document; objects are created on first access. Raises LookupError, TypeError or ValueError."""
    table = _Reading(document["shapes"])
    return {name: table.object_at(number) for name, number in document["roots"].items()}


class _Writing:
    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._numbers: dict[ObjectOf | OneOf, int] = {}
        self._waiting: list[ObjectOf | OneOf] = []

    def number(self, shape: ObjectOf | OneOf) -> int:
        if shape not in self._numbers:
            self._numbers[shape] = len(self.rows)
            self.rows.append(None)
            self._waiting.append(shape)
        return self._numbers[shape]

    def finish(self) -> None:
        """Write referenced shapes that are not yet written. It does not recurse, because Azure's types nest hundreds of levels deep."""
        while self._waiting:
            shape = self._waiting.pop()
            self.rows[self._numbers[shape]] = self._row(shape)

    def _row(self, shape: ObjectOf | OneOf) -> list[Any]:
        if isinstance(shape, OneOf):
            variants = {value: self.number(variant) for value, variant in shape.variants.items()}
            return [shape.name, shape.discriminator, self.number(shape.base), variants]
        held = {name: [self._of(one.shape), one.read_only, one.required] for name, one in shape.properties.items()}
        return [shape.name, held, shape.flattened, shape.package, None]

    def _of(self, shape: Shape) -> Any:
        match shape:
            case Plain():
                return shape.value
            case Choice(name, values, closed):
                return ["choice", name, list(values), closed]
            case ListOf(item):
                return ["list", self._of(item)]
            case MapOf(item):
                return ["map", self._of(item)]
            case ObjectOf() | OneOf():
                return self.number(shape)


class _Reading:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows
        self._made: dict[int, ObjectOf | OneOf] = {}

    def object_at(self, number: int) -> ObjectOf:
        found = self._at(number)
        if not isinstance(found, ObjectOf):
            raise TypeError(f"shape {number} is one of several")
        return found

    def _at(self, number: int) -> ObjectOf | OneOf:
        if number not in self._made:
            row = self._rows[number]
            if len(row) == 4:
                name, discriminator, base, variants = row
                self._made[number] = OneOf(name, discriminator, self.object_at(base), partial(self._variants, variants))
            else:
                name, held, flattened, package, _ = row
                self._made[number] = ObjectOf(name, partial(self._properties, held), flattened, package)
        return self._made[number]

    def _variants(self, variants: Mapping[str, int]) -> Mapping[str, ObjectOf]:
        return {value: self.object_at(number) for value, number in variants.items()}

    def _properties(self, held: Mapping[str, Any]) -> Mapping[str, Property]:
        return {name: Property(self._of(shape), read_only, required) for name, (shape, read_only, required) in held.items()}

    def _of(self, entry: Any) -> Shape:
        match entry:
            case str():
                return Plain(entry)
            case int():
                return self._at(entry)
            case ["choice", name, values, closed]:
                return Choice(name, tuple(values), closed)
            case ["list", item]:
                return ListOf(self._of(item))
            case ["map", item]:
                return MapOf(self._of(item))
            case _:
                raise ValueError(f"{entry!r} is no shape")
