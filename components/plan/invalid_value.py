"""Invalid values of a region file, as validation reports them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SIZES_LISTED = "docs/region-file.md"
"""Document with the VM sizes that a file may use."""
Path = tuple[str | int, ...]
Raw = Mapping[str, Any]


@dataclass(frozen=True)
class InvalidValue:
    """One invalid value: its path in the file, the value, the reason, and the remedy.

    replaces_model_error is True if this error is reported in place of the model's error at the path, whose bound the plan refuses too.
    """

    path: Path
    value: Any
    reason: str
    remedy: str
    replaces_model_error: bool = False


def nearest(value: object, known: tuple[str, ...]) -> str:
    """Return a remedy with the known word that is most similar to value, otherwise with the known words."""
    near = difflib.get_close_matches(str(value), known, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]}?"
    return f"known: {', '.join(known[:12])}{', …' if len(known) > 12 else ''}" if known else "none is known yet"


def most_similar(value: str, known: tuple[str, ...]) -> str:
    """Return the known word that is most similar to value; of equally similar ones, the last."""
    return max(reversed(known), key=lambda word: difflib.SequenceMatcher(None, word, value).ratio())


def whole_number(value: object) -> int | None:
    """Return the value if it is an integer and no boolean, otherwise None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
