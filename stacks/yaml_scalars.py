"""Decides what a word without quotes means: the one thing that every reader of YAML takes it for, or nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stacks.file_problems import shown

MAX_DIGITS = 40
"""Digits of a whole number: an IPv6 address as a number has 39, and nothing that is counted has more."""

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")
NUMBER = re.compile(r"[-+]?(?=\.?[0-9])[0-9_]*\.[0-9_]*")


@dataclass(frozen=True)
class Trap:
    """A word that readers of YAML do not agree on, or that does not survive being read: why, and what to write."""

    reason: str
    remedy: str


TRAPS = (
    (r"(?i:y|n|yes|no|on|off)", "is true or false to YAML 1.1 and text to YAML 1.2", "write true or false, or quote it"),
    (r"(?i:true|false)", "is true or false to some readers and text to others", "write true or false in lower case, or quote it"),
    (r"~|(?i:null)", "stands for no value", "write a value, quote it, or leave the key out where it may be"),
    (r"(?i:[-+]?\.inf|\.nan)", "is no number that can be counted to", "write a number, or quote it"),
    (r"[-+]?[0-9][0-9_]*(:[0-9]+)+(\.[0-9_]*)?", "is a number in base 60 to YAML 1.1 and text to YAML 1.2", "quote it"),
    (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?", "is a date to YAML 1.1 and text to YAML 1.2", "quote it"),
    (r"[-+]?0([xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)", "is no decimal to some readers", "write it in decimal, or quote it"),
    (r"[-+]?0[0-9_]+", "is octal to YAML 1.1 and decimal to YAML 1.2", "write it without leading zero, or quote it"),
    (r"[-+]0|\+[1-9][0-9]*", "has a sign that says nothing", "write it without the sign, or quote it"),
    (r"[-+]?[0-9][0-9_]*", "is a number to some readers and text to others", "write a number in digits alone, or quote it"),
    (r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+", "is a number to some readers and text to others", "write all digits, or quote it"),
)
"""Pattern of the whole word, what is wrong with it, what to write. The first that matches tells; the words come from
https://yaml.org/type/bool.html, int.html, float.html, null.html and timestamp.html (YAML 1.1) and
https://yaml.org/spec/1.2.2/#103-core-schema (YAML 1.2)."""

COMPILED_TRAPS = tuple((re.compile(pattern), reason, remedy) for pattern, reason, remedy in TRAPS)


def plain_value(word: str) -> str | int | float | bool | Trap | None:
    """Read a word written without quotes.

    true, false and null are read as such; whole numbers in decimal without sign plus or leading zero; numbers with a fraction only where
    the number writes itself back in the same letters, so that a version such as 1.30 is never read as 1.3. Every other word that YAML 1.1
    or 1.2 takes for something else than text is a trap. What is left is text.
    """
    match word:
        case "true" | "false":
            return word == "true"
        case "null":
            return None
        case "":
            return Trap("has no value", "write one, or leave the key out where it may be (what follows a # is a comment)")
    if WHOLE_NUMBER.fullmatch(word):
        if len(word.removeprefix("-")) > MAX_DIGITS:
            return Trap(f"is a number of {len(word.removeprefix('-'))} digits", f"write at most {MAX_DIGITS} digits, or quote it")
        return int(word)
    if NUMBER.fullmatch(word):
        number = float(word.replace("_", ""))
        return number if repr(number) == word else Trap(f"{_bare(word)} as a number is {number!r}", f"quote it, or write {number!r}")
    for pattern, reason, remedy in COMPILED_TRAPS:
        if pattern.fullmatch(word):
            return Trap(f"{_bare(word)} {reason}", remedy)
    return word


def _bare(word: str) -> str:
    """Cut a long word, and show it without quotes, as it stands in the file."""
    return shown(word)[1:-1]
