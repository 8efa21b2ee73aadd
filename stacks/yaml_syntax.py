"""Syntax errors of YAML, and references and tags, as problems with reason and remedy."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

import yaml

from stacks.file_problems import WIDE_SPACE, Position
from stacks.yaml_scalars import ValueProblem, quotable

ESCAPE = "a backslash in double quotes starts no known escape here"
PROGRAMS = "a line that starts with % is a directive"
OPEN_QUOTE = "the quote that opens here is not closed"
CLOSE_QUOTE = "close it on this line"
QUOTE = "quote the value"

BY_PROBLEM_MARK = (
    ("character '\\t'", "a tab is used where YAML requires spaces", "indent and separate with spaces"),
    ("cannot start any token", "this character cannot start a value", QUOTE),
    (
        "mapping values are not allowed",
        "a colon and a space are inside a value, or the line is indented wrongly",
        "quote the value, or align it",
    ),
    ("entries are not allowed", "a list entry cannot start here", "put `- ` on a line of its own, aligned with the other entries"),
    ("keys are not allowed", "a key cannot start here", "put it on a line of its own"),
    ("expected <block end>", "this does not continue what stands above it", "align it with the lines that it belongs to"),
    ("expected the node content", "a value is missing here", "write one, or leave the comma or bracket out"),
    ("unknown escape character", ESCAPE, "double the backslash, or use single quotes"),
    ("expected escape sequence", ESCAPE, "double the backslash, or use single quotes"),
    ("a block scalar", "a | or > is not followed by a line break", "quote the value, or begin it on the next line"),
    ("directive", PROGRAMS, "leave the line out"),
    ("incompatible YAML document", PROGRAMS, "leave the line out"),
    ("an alias", "a * starts a reference to another part of the file", QUOTE),
    ("an anchor", "a & starts an anchor for references", QUOTE),
    ("a tag", "a ! starts a type", QUOTE),
    ("tag handle", "a ! starts a type", QUOTE),
    ("<document start>", "the document ends above", "leave out what follows, or indent it"),
)
BY_CONTEXT_MARK = (
    ("could not find expected ':'", "this line is not a key and a value", "write the key, a colon, a space and the value"),
    ("found unexpected end of stream", OPEN_QUOTE, CLOSE_QUOTE),
    ("found unexpected document separator", OPEN_QUOTE, CLOSE_QUOTE),
    ("expected ',' or ']'", "the [ that opens here has no ] or lacks a comma", "close it, and separate entries with commas"),
    ("expected ',' or '}'", "the { that opens here has no } or lacks a comma", "close it, and separate entries with commas"),
)
"""Part of the parser's message, reason and remedy, by the mark whose position is reported."""


CONFLICT = re.compile(r"^(<{7}|\|{7}|={7}|>{7})(?= |\r?$)", re.MULTILINE)
KEY_LINE = re.compile(r"(?P<before> *(?:- +)*)(?P<key>[A-Za-z_][A-Za-z0-9_-]*) *(?P<sign>[:=])?(?P<value>.*)")
PARENT = re.compile(r".*:\s*(?:#.*)?")
DASH_WITHOUT_SPACE = re.compile(r" *(?:- +)*-[^\s-]")
NO_CONTENT = re.compile(r"\s*(#.*)?")
QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|(?:^|(?<=\s))#.*")
LONGEST_LINE = 1_000
"""Maximum characters of a line in which a mistake is searched: the cost of quotes without end is the square of the length."""
BRACKETS = {"}": "{", "]": "["}


@dataclass(frozen=True)
class SyntaxProblem:
    """Position, reason and remedy of a syntax error; problems of `since` and later positions are consequences of it."""

    where: Position | None
    since: Position | None
    reason: str
    remedy: str


AFTER_QUOTE = frozenset(" \t\r\n,]}:#")
"""Characters that can follow a closing quote."""


class QuoteLoader(yaml.SafeLoader):
    """A loader that records the quoted scalars which it has scanned."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.quoted: list[yaml.ScalarToken] = []

    def scan_flow_scalar(self, style: str) -> yaml.ScalarToken:
        """Return the next quoted scalar."""
        token: yaml.ScalarToken = super().scan_flow_scalar(style)
        self.quoted.append(token)
        return token


def open_quote(loader: QuoteLoader, text: str, error: yaml.MarkedYAMLError) -> SyntaxProblem | None:
    """Return the problem of a quote that is not closed on its line, if it explains a syntax error further down.

    Such a quote ends at the next quote in the file. What follows there either touches it, or is on the line of the error.
    """
    wrong = error.problem_mark
    for token in loader.quoted:
        start, end = token.start_mark, token.end_mark
        touching = text[end.index : end.index + 1] not in ("", *AFTER_QUOTE)
        if touching or (start.line < end.line and wrong is not None and wrong.line == end.line):
            return SyntaxProblem(position(start), position(start), OPEN_QUOTE, CLOSE_QUOTE)
    return None


def syntax_problem(error: yaml.MarkedYAMLError, text: str) -> SyntaxProblem:
    """Return the problem of a parser's error in a text: a mistake that the text shows, otherwise what the parser found."""
    if conflict := CONFLICT.search(text):
        where = Position(text.count("\n", 0, conflict.start()) + 1, 1)
        return SyntaxProblem(
            where, where, "a merge conflict is not resolved here", "keep one side, and delete the lines with <<<<<<<, ======= and >>>>>>>"
        )
    message = f"{error.context}: {error.problem}"
    lines = text.split("\n")
    marks = [mark for mark in (error.problem_mark, error.context_mark) if isinstance(mark, yaml.Mark) and mark.line < len(lines)]
    if any(words in message for words in ("expected <block end>", "could not find expected ':'", "mapping values are not allowed")):
        found = next((found for mark in marks if (found := _line_problem(lines, mark.line))), None)
        if found is None and marks and ("but found '-'" in message or "found '<block sequence start>'" in message):
            found = _first_dash(lines, marks[0].line)
        if found is None and marks and "mapping values are not allowed" in message:
            found = _indentation(lines, marks[0].line)
        if found:
            return found
    for table, mark in ((BY_CONTEXT_MARK, error.context_mark), (BY_PROBLEM_MARK, error.problem_mark)):
        for words, reason, remedy in table:
            if words in message:
                return _found_at(mark, reason, remedy)
    return _found_at(error.problem_mark, f"this is not YAML: {error.problem}", "quote the value, or align the line")


def _found_at(mark: object, reason: str, remedy: str) -> SyntaxProblem:
    """Return the problem at a parser's mark; problems at the mark itself are no consequences."""
    where = position(mark)
    return SyntaxProblem(where, Position(where.line, where.column + 1) if where else None, reason, remedy)


def _line_problem(lines: list[str], index: int) -> SyntaxProblem | None:
    """Return the mistake that one line shows; None if it shows none or is too long."""
    line = lines[index]
    if len(line) > LONGEST_LINE:
        return None
    begin = Position(index + 1, len(line) - len(line.lstrip(" ")) + 1)
    if space := WIDE_SPACE.search(QUOTED.sub(lambda part: "x" * len(part[0]), line)):
        where = Position(index + 1, space.start() + 1)
        return SyntaxProblem(where, begin, f"character U+{ord(space[0]):04X} looks like a space and is none", "write a space")
    if DASH_WITHOUT_SPACE.match(line):
        return SyntaxProblem(begin, begin, "a list entry starts with a dash and a space", "put a space after the dash")
    found = KEY_LINE.fullmatch(line.rstrip("\r"))
    if found and found["sign"] == ":" and found["value"] and not found["value"].startswith((" ", "\t")):
        return SyntaxProblem(begin, begin, "the colon has no space after it, so this is no key", "put a space after the colon")
    if found and found["sign"] == "=":
        return SyntaxProblem(begin, begin, "an equals sign separates no key from its value", "write a colon and a space in its place")
    opened: list[str] = []
    for column, letter in enumerate(QUOTED.sub(lambda part: "x" * len(part[0]), line)):
        if letter in "{[":
            opened.append(letter)
        elif letter in BRACKETS and (not opened or opened.pop() != BRACKETS[letter]):
            where = Position(index + 1, column + 1)
            return SyntaxProblem(
                where, begin, f"this {letter} has no {BRACKETS[letter]} before it", f"write the {BRACKETS[letter]}, or delete the {letter}"
            )
    return None


def _first_dash(lines: list[str], index: int) -> SyntaxProblem | None:
    """Return the problem of the keys above a list entry, if they should be the entry before it."""
    column = len(lines[index]) - len(lines[index].lstrip(" "))
    content = [number for number in range(index) if not NO_CONTENT.fullmatch(lines[number])]
    inside = list(
        takewhile(lambda number: not lines[number].startswith("-", column) and (_depth(lines[number]) or 0) >= column, content[::-1])
    )
    above = content[: len(content) - len(inside)]
    if not inside or not above or not PARENT.fullmatch(lines[above[-1]]):
        return None
    first = Position(inside[-1] + 1, (_depth(lines[inside[-1]]) or 0) + 1)
    reason = f"line {index + 1} is a list entry, so this line should begin one too"
    return SyntaxProblem(first, first, reason, "put a dash and a space before the key")


def _indentation(lines: list[str], index: int) -> SyntaxProblem | None:
    """Return the problem of a key that continues the value in the line above it; None if the line above does not end with a value.

    If the key is as deep as the line before both, the line above is the wrong one.
    """
    above = [number for number in range(index) if not NO_CONTENT.fullmatch(lines[number])][-2:]
    if not above or (upper := _depth(lines[above[-1]])) is None or (lower := _depth(lines[index])) is None or lower <= upper:
        return None
    if lines[index].lstrip(" ").startswith("-"):
        entry = Position(index + 1, lines[index].index("-") + 1)
        reason = f"line {above[-1] + 1} has a value, so that no list entry can follow it"
        return SyntaxProblem(entry, Position(above[-1] + 1, 1), reason, "leave out the value or the entry")
    before = _depth(lines[above[0]]) if len(above) == 2 else None
    since = Position(above[-1] + 1, 1)
    if before == upper and PARENT.fullmatch(lines[above[0]]):
        where, parent = Position(above[-1] + 1, upper + 1), Position(above[0] + 1, 1)
        reason = f"this key is as deep as line {parent.line}, which has no value, and the lines after it are deeper"
        return SyntaxProblem(where, parent, reason, f"indent it by {lower} spaces")
    if before == lower:
        where = Position(above[-1] + 1, upper + 1)
        return SyntaxProblem(where, since, "this key is less deep than the lines before and after it", f"indent it by {lower} spaces")
    where = Position(index + 1, lower + 1)
    remedy = f"indent it by {upper} spaces" if upper else "do not indent it"
    return SyntaxProblem(where, since, f"this key is deeper than that of line {since.line}, which has a value", remedy)


def _depth(line: str) -> int | None:
    """Return the column of the key in a line, from 0; None if there is none."""
    found = KEY_LINE.fullmatch(line.rstrip("\r"))
    return len(found["before"]) if found and found["sign"] == ":" else None


def reference(event: yaml.Event) -> ValueProblem | None:
    """Return the problem of an alias, an anchor or a tag; None for an event without one."""
    if isinstance(event, yaml.AliasEvent):
        return ValueProblem(
            f"*{event.anchor} refers to another part of the file, which can grow without bound",
            "write the value itself",
        )
    if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
        return ValueProblem(f"&{event.anchor} is an anchor for references, which are not allowed", "remove the anchor")
    if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        return quotable(f"{tag} gives the value a type, but the schema sets types", "leave it out")
    return None


def position(mark: object) -> Position | None:
    """Return the position of a parser's mark, which counts from 0."""
    return Position(mark.line + 1, mark.column + 1) if isinstance(mark, yaml.Mark) else None
