"""Decides how a span of time is written in a scenario: 90s, 2h30m, 1d; larger units first, and no unit twice."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from components.spec.types import form

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))
_WRITTEN = re.compile("".join(rf"(?:([0-9]{{1,7}}){unit})?" for unit, _ in _UNITS))
_LARGEST = 366 * 86_400


@lru_cache(maxsize=1_024)
def span_seconds(text: str) -> float:
    """Seconds of a span as a scenario writes it; ValueError where it is none."""
    found = _WRITTEN.fullmatch(text)
    if found is None or not text:
        raise ValueError("is no span of time; write days, hours, minutes and seconds as 1d, 2h30m or 45s")
    numbers = [None if number is None else int(number) for number in found.groups()]
    below = False
    for number, carry in zip(numbers, (_LARGEST, 24, 60, 60), strict=True):
        if below and number is not None and number >= carry:
            raise ValueError("has a unit that fills the one before it; write 2h30m and not 1h90m")
        below = below or number is not None
    total = float(sum((number or 0) * length for number, (_, length) in zip(numbers, _UNITS, strict=True)))
    if total > _LARGEST:
        raise ValueError("is longer than a year; write at most 366d")
    return total


def _checked(text: str) -> str:
    span_seconds(text)
    return text


Span = Annotated[
    str,
    form(r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$", "a span of time without spaces, larger units first: 1d, 2h30m or 45s"),
    StringConstraints(min_length=2),
    AfterValidator(_checked),
]
"""A span of time from the scenario's start, or a length of time."""
