"""Text of two different values: the differing part of long ones, and a unified diff of those with several lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from rehearsal.local_up.secret_masking import is_secret_value, mask_line, mask_lines
from rehearsal.program.graph import MASK

WHOLE, PAIR = 60, 80
"""Characters of a value that is printed whole, and of two values in one line."""
LINE = 100
"""Characters of a line of a file that is printed whole."""
NEAR, FAR = 8, 48
"""Characters around a difference: without a separator, and up to the next separator at most."""
HEAD = 20
"""Characters printed from the start of a text that is shortened before its difference, so that a reader recognizes it."""
MIDDLE = 600
"""Characters of a differing part that are printed at most."""
CONTEXT = 1
"""Unchanged lines around a changed line."""
MANY_LINES = 2_000
"""Lines above which frequent lines do not anchor a diff, so that its time stays short."""
SEPARATOR = re.compile(r"[/,;&\s]")


def value_lines(path: str, old: Any, new: Any) -> list[str]:
    """Return a changed value as lines: in one line if both fit, otherwise one line each, or the changed lines of a text."""
    if is_secret_value(path, old) or is_secret_value(path, new):
        return [f"{path}: {MASK}"]
    if isinstance(old, str) and isinstance(new, str) and ("\n" in old or "\n" in new):
        return [f"{path}:", *(f"  {line}" for line in text_diff(path, old, new))]
    if isinstance(old, str) and isinstance(new, str):
        # A difference within a secret has the mask on both sides.
        first, second = mask_line(old), mask_line(new)
        first, second = shorten_pair(first, second) if max(len(first), len(second)) > WHOLE else (first, second)
        first, second = printable(first), printable(second)
    else:
        first, second = _shown(old), _shown(new)
    if len(first) + len(second) <= PAIR:
        return [f"{path}: {first} => {second}"]
    return [f"{path}:", f"  - {first}", f"  + {second}"]


def shorten_pair(old: str, new: str) -> tuple[str, str]:
    """Return two texts with their common start and end shortened to an ellipsis; the differing part stays, from separator to separator."""
    if old == new:
        return _cut(old), _cut(new)
    begin = _common_length(old, new)
    end = _common_length(old[begin:][::-1], new[begin:][::-1])
    before = [place.start() for place in SEPARATOR.finditer(old, max(0, begin - FAR), begin)]
    start = before[-1] if before else max(0, begin - NEAR)
    tail = old[len(old) - end :]
    after = SEPARATOR.search(tail, 0, FAR)
    stop = end - (after.start() if after else min(NEAR, end))
    # An Azure resource id has no start that helps a reader.
    head = "" if old.startswith("/") else old[: min(HEAD, start)]
    if start - len(head) <= NEAR:
        head, start = "", 0
    stop = stop if stop > NEAR else 0
    return _around(old, head, start, stop), _around(new, head, start, stop)


def text_diff(path: str, old: str, new: str) -> list[str]:
    """Return the changed lines of a text with context, as a unified diff with line numbers and masked secrets."""
    before, after = old.splitlines(), new.splitlines()
    shown, other = mask_lines(path, before), mask_lines(path, after)
    found = []
    for group in SequenceMatcher(None, before, after, autojunk=len(after) > MANY_LINES).get_grouped_opcodes(CONTEXT):
        found.append(f"@@ line {group[0][3] + 1}")
        for kind, first, last, begin, end in group:
            found += _block(kind, shown[first:last], other[begin:end])
    return found or [f"(the same {len(after):,} lines, with other line ends)"]


def _block(kind: str, old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield the lines of one operation of a diff; lines that replace each other are shortened around their difference."""
    if kind == "equal":
        yield from (f"  {_cut(line)}" for line in old)
        return
    first, second = list(old), list(new)
    if len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            if max(len(one), len(other)) > LINE:
                first[number], second[number] = shorten_pair(one, other)
    yield from (f"- {_cut(line)}" for line in first)
    yield from (f"+ {_cut(line)}" for line in second)


def _common_length(old: str, new: str) -> int:
    """Return the number of characters with which both texts begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _around(text: str, head: str, start: int, stop: int) -> str:
    """Return a text from start to stop (counted from its end), with its head before it and an ellipsis for what is left out."""
    middle = text[start : len(text) - stop]
    if len(middle) > MIDDLE:
        middle = f"{middle[: MIDDLE // 2]}… ({len(middle):,} characters)"
    return f"{head}{'…' if start else ''}{middle}{'…' if stop else ''}"


def printable(text: str) -> str:
    """Return a text with escapes in place of control characters, which a terminal would obey."""
    return text if text.isprintable() else "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _cut(line: str) -> str:
    """Return a printable line, shortened if it is very long."""
    line = printable(line)
    return line if len(line) <= MIDDLE else f"{line[: MIDDLE // 2]}… ({len(line):,} characters)"


def _shown(value: Any) -> str:
    """Return a value in one printable line: a scalar masked and shortened, a collection as its size."""
    match value:
        case None:
            return "(absent)"
        case Mapping() | list():
            word = "key" if isinstance(value, Mapping) else "item"
            return f"({len(value):,} {word}{'' if len(value) == 1 else 's'})"
        case _:
            # A private key, or a setting with its value below, is recognized by several lines.
            text = printable(" ".join(" ".join(mask_lines("", str(value).splitlines())).split()))
            return text if len(text) <= WHOLE else f"{text[: WHOLE - 1]}… ({len(text):,} characters)"
