"""Shapes of bodies: properties of an object, read-only ones among them, and values of enumerations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class Plain(Enum):
    """JSON value without parts; `.value` is its type in Azure's error messages."""

    STRING = "System.String"
    BOOLEAN = "System.Boolean"
    INTEGER = "System.Int64"
    NUMBER = "System.Double"
    MOMENT = "System.DateTime"
    ANYTHING = "System.Object"


@dataclass(frozen=True, slots=True)
class Choice:
    """Enumeration. An open one accepts other strings too, because Azure adds values without a new API version."""

    name: str
    values: tuple[str, ...]
    closed: bool = True


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of items of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object whose keys are the caller's."""

    item: Shape


@dataclass(frozen=True, slots=True)
class Property:
    """One property; a read-only one is never required of a caller."""

    shape: Shape
    read_only: bool = False
    required: bool = False


@dataclass(frozen=True, eq=False)
class ObjectOf:
    """An object of named properties. They are read on first use, because Azure's types refer to each other in cycles.

    flattened means that the official clients and azure-native show the fields of `properties` as the object's own.
    package is the client's (storage, network, …): several clients have models of one name.
    """

    name: str
    read: Callable[[], Mapping[str, Property]]
    flattened: bool = False
    package: str = ""

    @cached_property
    def properties(self) -> Mapping[str, Property]:
        """Return the properties by the name that Azure publishes."""
        return self.read()

    @cached_property
    def inner(self) -> ObjectOf | None:
        """Return the shape of `properties` if it is flattened."""
        held = self.properties.get("properties")
        return held.shape if self.flattened and held is not None and isinstance(held.shape, ObjectOf) else None


@dataclass(frozen=True, eq=False)
class OneOf:
    """Object with a discriminating property and several variants; base contains the common properties."""

    name: str
    discriminator: str
    base: ObjectOf
    read: Callable[[], Mapping[str, ObjectOf]]

    @cached_property
    def variants(self) -> Mapping[str, ObjectOf]:
        """Return the objects by the value of the discriminating property."""
        return self.read()


Shape = Plain | Choice | ListOf | MapOf | ObjectOf | OneOf


def with_response_fields(request: ObjectOf, answer: ObjectOf) -> ObjectOf:
    """Return the shape of a request plus read-only properties of the response, so that clients can send a response back."""

    def read() -> Mapping[str, Property]:
        more = {key: Property(held.shape, read_only=True) for key, held in answer.properties.items() if key not in request.properties}
        return {**request.properties, **more, **_inner()}

    def _inner() -> Mapping[str, Property]:
        sent, answered = request.properties.get("properties"), answer.properties.get("properties")
        if not (sent and answered and isinstance(sent.shape, ObjectOf) and isinstance(answered.shape, ObjectOf)):
            return {}
        same = sent.shape.name == answered.shape.name
        shape = sent.shape if same else with_response_fields(sent.shape, answered.shape)
        return {"properties": Property(shape, sent.read_only, sent.required)}

    return ObjectOf(request.name, read, request.flattened or answer.flattened, request.package)
