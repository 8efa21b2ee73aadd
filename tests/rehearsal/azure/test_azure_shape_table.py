"""Shapes that were written to a file are the shapes that were read out of the official clients."""

from __future__ import annotations

import json

import pytest

from rehearsal.azure.additional_shapes import WITHOUT_CLIENT
from rehearsal.azure.sdk_shapes import MODELS, shape_of
from rehearsal.azure.shape_table import decode_shapes, encode_shapes
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Property, Shape

SHAPES = {name: shape_of(name) for name in (*MODELS, *WITHOUT_CLIENT)}


class Compared:
    """Goes through two shapes side by side, each pair once."""

    def __init__(self) -> None:
        self.seen: set[tuple[ObjectOf | OneOf, ObjectOf | OneOf]] = set()
        self.waiting: list[tuple[Shape, Shape]] = []

    def finish(self) -> None:
        while self.waiting:
            self._one(*self.waiting.pop())

    def _one(self, one: Shape, other: Shape) -> None:
        match one, other:
            case (ListOf(item), ListOf(same)) | (MapOf(item), MapOf(same)):
                self.waiting.append((item, same))
            case ObjectOf(), ObjectOf():
                if (one, other) not in self.seen:
                    self.seen.add((one, other))
                    assert (one.name, one.flattened, one.package) == (other.name, other.flattened, other.package)
                    assert list(one.properties) == list(other.properties)
                    for name, held in one.properties.items():
                        self._property(held, other.properties[name])
            case OneOf(), OneOf():
                if (one, other) not in self.seen:
                    self.seen.add((one, other))
                    assert (one.name, one.discriminator, list(one.variants)) == (other.name, other.discriminator, list(other.variants))
                    self.waiting.append((one.base, other.base))
                    self.waiting += [(variant, other.variants[value]) for value, variant in one.variants.items()]
            case _:
                assert one == other

    def _property(self, one: Property, other: Property) -> None:
        assert (one.read_only, one.required) == (other.read_only, other.required)
        self.waiting.append((one.shape, other.shape))


def test_what_is_written_is_read_as_it_was() -> None:
    again = decode_shapes(json.loads(json.dumps(encode_shapes(SHAPES))))
    assert list(again) == list(SHAPES)
    compared = Compared()
    compared.waiting += [(shape, again[name]) for name, shape in SHAPES.items()]
    compared.finish()
    assert len(compared.seen) > 500


@pytest.mark.parametrize(
    "document", [{}, {"roots": {"a": 0}, "shapes": []}, {"roots": {"a": 0}, "shapes": [[]]}, {"roots": {"a": "b"}, "shapes": [1]}]
)
def test_another_document_is_refused(document: dict[str, object]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        decode_shapes(document)
