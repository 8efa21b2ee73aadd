"""Meaning of a YAML scalar without quotes, if all versions of YAML agree on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stacks.file_problems import ProblemKind, shown

MAX_DIGITS = 40
"""Maximum digits of a whole number; an IPv6 address as a number has 39."""

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]*")
NUMBER = re.compile(r"[-+]?(?=\.?[0-9])[0-9_]*\.[0-9_]*")


@dataclass(frozen=True)
class ValueProblem:
    """Reason and remedy for a value that YAML parsers read differently, or that is not allowed."""

    reason: str
    remedy: str
    kind: ProblemKind = ProblemKind.OTHER


QUOTE_IT = "quote it"
OR = ", or "


def quotable(reason: str, alternative: str = "") -> ValueProblem:
    """Return the problem of a value whose remedy is an alternative, if there is one, or quotes."""
    return ValueProblem(reason, f"{alternative}{OR}{QUOTE_IT}" if alternative else QUOTE_IT, ProblemKind.QUOTABLE)


def without_quotes(remedy: str) -> str:
    """Return the alternative in the remedy of a quotable value; an empty string if there is none."""
    return remedy.removesuffix(QUOTE_IT).removesuffix(OR)


NO_VALUE = re.compile(r"~|(?i:null)")
_AMBIGUOUS = (
    (r"(?i:y|n|yes|no|on|off)", "is true or false in YAML 1.1 and text in YAML 1.2", "write true or false"),
    (r"(?i:true|false)", "is true or false for some readers and text for others", "write true or false in lower case"),
    (r"(?i:[-+]?\.inf|\.nan)", "is no finite number", "write a number"),
    (r"[-+]?[0-9][0-9_]*(:[0-9]+)+(\.[0-9_]*)?", "is a base-60 number in YAML 1.1 and text in YAML 1.2", ""),
    (r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?", "is a date in YAML 1.1 and text in YAML 1.2", ""),
    (r"[-+]?0([xX][0-9a-fA-F_]+|[oO][0-7_]+|[bB][01_]+)", "is not decimal for some readers", "write it in decimal"),
    (r"[-+]?0[0-9_]+", "is octal in YAML 1.1 and decimal in YAML 1.2", "write it without leading zero"),
    (r"[-+]0|\+[1-9][0-9]*", "has a redundant sign", "write it without the sign"),
    (r"[-+]?[0-9][0-9_]*", "is a number for some readers and text for others", "write a number in digits alone"),
    (r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+", "is a number for some readers and text for others", "write all digits"),
)
"""Pattern of the whole scalar, reason and remedy besides quotes; the first match applies. Sources:
https://yaml.org/type/bool.html, int.html, float.html, null.html and timestamp.html (YAML 1.1) and
https://yaml.org/spec/1.2.2/#103-core-schema (YAML 1.2)."""

AMBIGUOUS = tuple((re.compile(pattern), reason, alternative) for pattern, reason, alternative in _AMBIGUOUS)


def plain_value(word: str) -> str | int | float | bool | ValueProblem | None:
    """Return the value of a scalar without quotes.

    The result is true, false, null, a decimal whole number without plus sign or leading zero, or a number with a fraction whose text is
    equal to the scalar, so that a version such as 1.30 is never read as 1.3. Every other scalar that YAML 1.1 or 1.2 does not read as text
    is a problem. All others are text.
    """
    match word:
        case "true" | "false":
            return word == "true"
        case "null":
            return None
        case "":
            return ValueProblem("has no value", "write one, or leave the key out where it may be (what follows a # is a comment)")
    if WHOLE_NUMBER.fullmatch(word):
        if len(word.removeprefix("-")) > MAX_DIGITS:
            return quotable(f"is a number of {len(word.removeprefix('-'))} digits", f"write at most {MAX_DIGITS} digits")
        return int(word)
    if NUMBER.fullmatch(word):
        number = float(word.replace("_", ""))
        return (
            number if repr(number) == word else ValueProblem(f"{_bare(word)} as a number is {number!r}", f"{QUOTE_IT}, or write {number!r}")
        )
    if NO_VALUE.fullmatch(word):
        return ValueProblem(f"{_bare(word)} means no value", f"write a value, {QUOTE_IT}, or leave the key out where it may be")
    for pattern, reason, alternative in AMBIGUOUS:
        if pattern.fullmatch(word):
            return quotable(f"{_bare(word)} {reason}", alternative)
    return word


def _bare(word: str) -> str:
    """Return a scalar without quotes, shortened."""
    return shown(word)[1:-1]
