"""What a contradiction in a region file is: where it stands, what stands there, why it cannot be, and what would be right."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SIZES_LISTED = "docs/region-file.md"
"""Where a person finds the VM sizes that a file may name, and how to add one."""
Path = tuple[str | int, ...]
Raw = Mapping[str, Any]


@dataclass(frozen=True)
class InvalidValue:
    """One contradiction: where in the file, what stands there, why it cannot be, what would be right."""

    path: Path
    value: Any
    reason: str
    remedy: str


def nearest(value: object, known: tuple[str, ...]) -> str:
    """A remedy that names the nearest known word, or all words if there are few."""
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]}?"
    return f"known: {', '.join(known[:12])}{', …' if len(known) > 12 else ''}" if known else "none is known yet"


def whole_number(value: object) -> int | None:
    """Return the value if it is an integer and no boolean, otherwise None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
