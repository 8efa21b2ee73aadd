"""One restriction of Azure: the property it concerns, the rule, and Azure's answer to a request that breaks it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Resource

if TYPE_CHECKING:
    from rehearsal.azure.arm_id import ArmId
    from rehearsal.azure.cloud import Cloud

Fields = Mapping[str, object]
"""Values that a message names."""
PLACEHOLDER = re.compile(r"\{[\w -]+\}|your-(username|password)|image_(publisher|offer|sku)")
"""A placeholder of Microsoft's published examples, such as {your-password}, also without its braces: it represents a valid value."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A request that restrictions apply to: the resource, its body, and the existing resource of this id."""

    cloud: Cloud
    id: ArmId
    body: Json
    previous: Resource | None


class Rule(Protocol):
    """What Azure requires of a value."""

    @property
    def bound(self) -> str:
        """Return the requirement as one phrase."""

    def broken(self, value: Any, subject: Subject, /) -> Fields | None:
        """Return what a message names if the value breaks the rule; None for a valid value."""


@dataclass(frozen=True)
class Between:
    """A whole number in a range; both ends are allowed."""

    low: int
    high: int

    @property
    def bound(self) -> str:
        return f"{self.low} to {self.high}"

    def broken(self, value: Any, _subject: Subject, /) -> Fields | None:
        valid = isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high
        return None if valid else {"value": value}


@dataclass(frozen=True)
class Matches:
    """A text that a regular expression matches as a whole, with classes of ASCII. words describe the pattern."""

    pattern: str
    words: str

    @property
    def bound(self) -> str:
        return self.words

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the compiled pattern."""
        return re.compile(self.pattern, re.ASCII)

    def broken(self, value: Any, _subject: Subject, /) -> Fields | None:
        text = str(value)
        return None if self.compiled.fullmatch(text) or PLACEHOLDER.fullmatch(text) else {"value": text}


@dataclass(frozen=True)
class AtMost:
    """A list, an object or a text of at most so many entries."""

    most: int

    @property
    def bound(self) -> str:
        return f"at most {self.most}"

    def broken(self, value: Any, _subject: Subject, /) -> Fields | None:
        return {"value": len(value)} if isinstance(value, Sized) and len(value) > self.most else None


@dataclass(frozen=True)
class Where:
    """A rule that needs a function of its own."""

    words: str
    function: Callable[[Any, Subject], Fields | None]

    @property
    def bound(self) -> str:
        return self.words

    def broken(self, value: Any, subject: Subject, /) -> Fields | None:
        return self.function(value, subject)


@dataclass(frozen=True)
class Restriction:
    """One row of the table.

    places gives the property by resource type: `name`, or a dotted path in the body with `[]` after a list of which each item is
    checked; empty is the whole body. message can name {value}, {bound}, {pattern}, {name} (of the resource), {id} and the rule's
    fields. source is a URL. A row that is creation_only does not apply to an existing resource. code_assumed marks a code or message
    without public evidence.
    """

    key: str
    places: Mapping[str, str]
    rule: Rule
    message: str
    source: str
    code: str = "InvalidParameter"
    status: int = 400
    target: str = ""
    creation_only: bool = False
    code_assumed: bool = False

    def refusal(self, subject: Subject, fields: Fields) -> AzureError:
        """Return Azure's answer to a request that breaks the rule."""
        known = {"bound": self.rule.bound, "name": subject.id.name, "id": subject.id.text, "pattern": getattr(self.rule, "pattern", "")}
        return AzureError(self.status, self.code, self.message.format_map({**known, **fields}), target=self.target or self.key)


def values_at(value: Any, steps: tuple[str, ...]) -> Iterator[Any]:
    """Yield every value at a place; none where a step is missing or null."""
    for number, step in enumerate(steps):
        name = step.removesuffix("[]")
        value = value.get(name) if isinstance(value, Mapping) else None
        if value is None:
            return
        if step.endswith("[]"):
            for item in value if isinstance(value, list) else ():
                yield from values_at(item, steps[number + 1 :])
            return
    yield value
