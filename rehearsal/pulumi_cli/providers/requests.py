"""Says what the engine asks a provider about a resource, and what it wants to hear, in Python's values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

from rehearsal.pulumi_cli.providers.errors import CheckFailure
from rehearsal.pulumi_cli.providers.pulumi_values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The resource that a call is about: its URN, type token and logical name."""

    urn: str
    type: str
    name: str


@dataclass(frozen=True, slots=True)
class Naming:
    """A name that the engine's configuration proposes; mode is PROPOSE, ENFORCE or DISABLE."""

    proposed: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAsked(Subject):
    """New inputs to look at; old is None for a resource that is not there yet. seed makes names that look random the same again."""

    old: Json | None
    new: Json
    seed: bytes = b""
    naming: Naming | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffAsked(Subject):
    """What differs between what was asked for last and what is asked for now."""

    id: str
    old_inputs: Json
    old_outputs: Json
    new: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateAsked(Subject):
    """A resource to make. timeout in seconds, 0 for the provider's own."""

    inputs: Json
    timeout: float = 0.0
    preview: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAsked(Subject):
    """A resource to look up; inputs is None where nothing is known of it but its id, as in an import."""

    id: str
    outputs: Json
    inputs: Json | None
    timeout: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateAsked(Subject):
    """A resource to change."""

    id: str
    old_inputs: Json
    old_outputs: Json
    new: Json
    timeout: float = 0.0
    preview: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteAsked(Subject):
    """A resource to delete."""

    id: str
    inputs: Json
    outputs: Json
    timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class Checked:
    """Inputs as they are to be kept, and what is wrong with them."""

    inputs: Mapping[str, Any]
    failures: Sequence[CheckFailure] = ()


class Kind(Enum):
    """What became of a property."""

    ADD = "ADD"
    DELETE = "DELETE"
    UPDATE = "UPDATE"


@dataclass(frozen=True, slots=True)
class Changed:
    """One property that differs; replace says that the resource must be made anew for it."""

    kind: Kind
    replace: bool = False
    input: bool = True


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs, by path (`tags.owner`, `subnets[0].name`); empty for nothing.

    delete_first says that a replacement cannot stand beside what it replaces; stables are outputs that no update changes.
    """

    changed: Mapping[str, Changed] = field(default_factory=dict)
    delete_first: bool = False
    stables: Sequence[str] = ()

    @classmethod
    def of_settings(cls, old: Json, new: Json, replacing: Collection[str] = ()) -> Self:
        """What differs between two configurations; replacing are the settings whose change makes every resource be made anew."""
        differing = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        kinds = ((key, Kind.ADD if key not in old else Kind.UPDATE if key in new else Kind.DELETE) for key in differing)
        return cls({key: Changed(kind, replace=key in replacing) for key, kind in kinds})


@dataclass(frozen=True, slots=True)
class Made:
    """A resource that was made: its id, which is empty in a preview, and its outputs."""

    id: str
    outputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """A resource that was looked up: id, outputs, and the inputs that would make it."""

    id: str
    outputs: Mapping[str, Any]
    inputs: Mapping[str, Any]
