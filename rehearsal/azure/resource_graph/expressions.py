"""Expressions of a query: a parser to functions of a row, with the names that Azure gives to unnamed columns.

https://learn.microsoft.com/azure/governance/resource-graph/concepts/query-language
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json

SUBSET = (
    "tables Resources, ComputeResources and ResourceContainers; operators where, extend, project, project-away, distinct, summarize "
    "[count()] by, count, order by, top, limit and take; comparisons ==, !=, =~, !~, <, <=, >, >=, in, in~, !in, !in~, contains, has, "
    "startswith, endswith and their negations, joined by and, or and not(); functions tostring, toint, tolower, toupper, isempty, "
    "isnotempty, isnull and isnotnull"
)
MAX_DEPTH = 32
"""Depth of parentheses in an expression at most; queries of tools have a few."""

MAX_DIGITS = 19
"""Characters of a number are fewer: the language's long has 64 bits."""

Evaluate = Callable[[Json], Any]


@dataclass(frozen=True, slots=True)
class Expression:
    """A value computed from a row, and the column name that it has without a given one."""

    value: Evaluate
    name: str


def query_error(reason: str) -> AzureError:
    """Return the refusal of a query, in Azure's form, with the supported subset."""
    message = f"{reason} The embedded Azure supports a subset of the language: {SUBSET}."
    detail = AzureError(400, "InvalidQuery", message)
    return AzureError(400, "BadRequest", f"The query is invalid. {message}", details=(detail,))


_TOKEN = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<number>\d+(?:\.\d+)?)|"""
    r"""(?P<word>!?(?:contains|has|startswith|endswith|in)~?(?![A-Za-z0-9_])|[A-Za-z_$][A-Za-z0-9_$-]*(?<!-))|"""
    r"""(?P<sign>==|!=|=~|!~|<=|>=|<|>|=|\(|\)|\[|\]|,|\.|\||-))""",
    re.IGNORECASE,
)


def tokens_of(text: str) -> list[str]:
    """Return the tokens of a query; strings keep their quotes. Raises AzureError for a character outside the language."""
    found, position, text = [], 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise query_error(f"'{text[position : position + 30].strip()}' at character {position + 1} is not understood.")
        found.append(match[0].strip())
        position = match.end()
    return found


class Tokens:
    """Tokens of one operator, read from the left."""

    def __init__(self, found: list[str]) -> None:
        self._found, self._next = found, 0

    @property
    def next(self) -> str:
        """Return the next token, empty after the last one."""
        return self._found[self._next] if self._next < len(self._found) else ""

    def take(self) -> str:
        """Return the next token and go behind it. Raises AzureError after the last one."""
        if not self.next:
            raise query_error(f"Something is missing after '{' '.join(self._found[-3:])}'.")
        self._next += 1
        return self._found[self._next - 1]

    def accept(self, *words: str) -> bool:
        """Return whether the next token is one of the words, in any capitals, and go behind it."""
        if self.next.lower() not in words:
            return False
        self._next += 1
        return True

    def expect(self, word: str) -> None:
        """Go behind a word. Raises AzureError for another token."""
        if not self.accept(word):
            raise query_error(f"'{self.next or 'the end'}' is found where '{word}' is expected.")

    def followed_by(self, sign: str) -> bool:
        """Return whether the token after the next one is a sign."""
        return self._next + 1 < len(self._found) and self._found[self._next + 1] == sign


def text_of(value: Any) -> str:
    """Return a value as tostring does: empty for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else str(value)


def _whole(value: Any) -> int | None:
    try:
        return int(value)
    except (OverflowError, TypeError, ValueError):
        return None


_FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "tostring": text_of,
    "toint": _whole,
    "tolong": _whole,
    "tolower": lambda value: text_of(value).lower(),
    "toupper": lambda value: text_of(value).upper(),
    "isempty": lambda value: value in (None, "", [], {}),
    "isnotempty": lambda value: value not in (None, "", [], {}),
    "isnull": lambda value: value is None,
    "isnotnull": lambda value: value is not None,
    "not": lambda value: not value,
}


def _has(left: str, right: str) -> bool:
    """Return whether a text contains another one as whole words."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(right)}(?![A-Za-z0-9])", left) is not None


_TEXT_COMPARISONS: Mapping[str, Callable[[str, str], bool]] = {
    "=~": lambda left, right: left == right,
    "contains": lambda left, right: right in left,
    "has": _has,
    "startswith": lambda left, right: left.startswith(right),
    "endswith": lambda left, right: left.endswith(right),
}
"""Comparisons in any capitals."""
_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def disjunction(tokens: Tokens, depth: int = 0) -> Expression:
    """Read comparisons joined by and, or and not()."""
    if depth > MAX_DEPTH:
        raise query_error(f"An expression is nested deeper than {MAX_DEPTH} levels.")
    found = [_conjunction(tokens, depth)]
    while tokens.accept("or"):
        found.append(_conjunction(tokens, depth))
    return found[0] if len(found) == 1 else Expression(lambda row: any(one.value(row) for one in found), "Column1")


def _conjunction(tokens: Tokens, depth: int) -> Expression:
    found = [_comparison(tokens, depth)]
    while tokens.accept("and"):
        found.append(_comparison(tokens, depth))
    return found[0] if len(found) == 1 else Expression(lambda row: all(one.value(row) for one in found), "Column1")


def _comparison(tokens: Tokens, depth: int) -> Expression:
    left = _term(tokens, depth)
    sign = tokens.next.lower()
    negated = sign.startswith("!")
    plain = {"!=": "==", "!~": "=~"}.get(sign, sign.removeprefix("!"))
    test: Evaluate
    if plain in ("in", "in~"):
        tokens.take()
        options = _list(tokens, depth)
        fold = plain == "in~"
        test = lambda row: any(_equal(left.value(row), one.value(row), fold=fold) for one in options)  # noqa: E731 one row of the table
    elif plain == "==":
        tokens.take()
        right = _term(tokens, depth)
        test = lambda row: _equal(left.value(row), right.value(row), fold=False)  # noqa: E731 one row of the table
    elif plain in _TEXT_COMPARISONS:
        tokens.take()
        right, compare = _term(tokens, depth), _TEXT_COMPARISONS[plain]
        test = lambda row: compare(text_of(left.value(row)).lower(), text_of(right.value(row)).lower())  # noqa: E731 one row of the table
    elif plain in _ORDER:
        tokens.take()
        right, order = _term(tokens, depth), _ORDER[plain]
        test = lambda row: _ordered(left.value(row), right.value(row), order)  # noqa: E731 one row of the table
    else:
        return left
    return Expression((lambda row: not test(row)) if negated else test, "Column1")


def _equal(left: Any, right: Any, *, fold: bool) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        one, other = text_of(left), text_of(right)
        return one.lower() == other.lower() if fold else one == other
    return bool(left == right)


def _ordered(left: Any, right: Any, order: Callable[[Any, Any], bool]) -> bool:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return order(left, right)
    return isinstance(left, str) and isinstance(right, str) and order(left, right)


def _list(tokens: Tokens, depth: int) -> list[Expression]:
    tokens.expect("(")
    found = [_term(tokens, depth)]
    while tokens.accept(","):
        found.append(_term(tokens, depth))
    tokens.expect(")")
    return found


def _term(tokens: Tokens, depth: int) -> Expression:
    """Read a text, a number, a property, a function's call or an expression in parentheses."""
    word = tokens.take()
    if word == "(":
        inner = disjunction(tokens, depth + 1)
        tokens.expect(")")
        return inner
    if word[0] in "'\"":
        return _constant(re.sub(r"\\(.)", r"\1", word[1:-1]))
    if word[0].isdigit() or word == "-":
        return _constant(_number(word + tokens.take() if word == "-" else word))
    if word.lower() in ("true", "false"):
        return _constant(word.lower() == "true")
    return _call(word, tokens, depth) if tokens.next == "(" else _property(word, tokens)


def _constant(value: Any) -> Expression:
    return Expression(lambda _row: value, "Column1")


def _number(digits: str) -> float:
    if len(digits) >= MAX_DIGITS or not digits.lstrip("-")[:1].isdigit():
        raise query_error(f"'{digits[:MAX_DIGITS]}' is no number of at most {MAX_DIGITS - 1} digits.")
    return float(digits) if "." in digits else int(digits)


def _call(name: str, tokens: Tokens, depth: int) -> Expression:
    function = _FUNCTIONS.get(name.lower())
    if function is None:
        raise query_error(f"The function '{name}' is not supported.")
    tokens.expect("(")
    inner = disjunction(tokens, depth + 1)
    tokens.expect(")")
    return Expression(lambda row: function(inner.value(row)), inner.name)


def _property(first: str, tokens: Tokens) -> Expression:
    """Read a path such as properties.hardwareProfile, tags['fleet'] or zones[0]; names are in any capitals."""
    if not re.fullmatch(r"[A-Za-z_$][\w$-]*", first):
        raise query_error(f"'{first}' is found where a property is expected.")
    path: list[str | int] = [first]
    while tokens.next in (".", "["):
        if tokens.take() == ".":
            path.append(tokens.take())
            continue
        key = tokens.take()
        if not (key[0] in "'\"" or (key.isdigit() and len(key) < MAX_DIGITS)):
            raise query_error(f"'{key}' is found where a name or a number of an element is expected.")
        path.append(key[1:-1] if key[0] in "'\"" else int(key))
        tokens.expect("]")
    return Expression(lambda row: value_at_path(row, path), "_".join(map(str, path)))


def value_at_path(value: Any, path: list[str | int]) -> Any:
    """Return the value at a path with names in any capitals; None if there is none."""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) and -len(value) <= part < len(value) else None
        elif isinstance(value, Mapping):
            value = value[part] if part in value else next((value[key] for key in value if key.lower() == part.lower()), None)
        else:
            return None
    return value
