"""Explanation of a text that does not match a pattern: the wrong character, the excess length, or the missing end."""

from __future__ import annotations

import re

WRONG_FORM = "the required form"
"""End of every reason."""
LONGEST_EXPLAINED = 1_000
"""Maximum characters of an explained text; a longer one has no specific reason."""


def pattern_fault(pattern: str, example: str, text: str) -> str:
    """Return what is wrong with a text, as the end of a sentence about it; `example` matches the pattern.

    A prefix of the text is possible if it matches with one of some endings: none, a letter, a digit, or the end of the example.
    """
    form = re.compile(pattern)
    if not text:
        return f"is empty, unlike {WRONG_FORM}"
    if len(text) > LONGEST_EXPLAINED or not form.fullmatch(example):
        return f"does not have {WRONG_FORM}"
    endings = ("a", "0", *(example[start:] for start in range(len(example))))
    right = next(length for length in range(len(text), -1, -1) if form.fullmatch(text[:length]) or _continued(form, text[:length], endings))
    if right == len(text):
        return f"is shorter than {WRONG_FORM}" if text[-1].isalnum() else f"ends with {text[-1]!r}, unlike {WRONG_FORM}"
    if form.fullmatch(text[:right]) and not _continued(form, text[:right], endings):
        return f"has {len(text)} characters, {len(text) - right} more than {WRONG_FORM}"
    return f"has {text[right]!r} as character {right + 1}, unlike {WRONG_FORM}"


def _continued(form: re.Pattern[str], text: str, endings: tuple[str, ...]) -> bool:
    """Return True if a text matches with one of the endings."""
    return any(form.fullmatch(text + ending) for ending in endings)
