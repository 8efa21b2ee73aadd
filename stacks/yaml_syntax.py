"""Syntax errors of YAML, and references and tags, as problems with reason and remedy."""

from __future__ import annotations

import yaml

from stacks.file_problems import Position
from stacks.yaml_scalars import ValueProblem

ESCAPE = "a backslash in double quotes starts no known escape here"
PROGRAMS = "a line that starts with % is a directive"
OPEN_QUOTE = "the quote that opens here is not closed"
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
    ("found unexpected end of stream", OPEN_QUOTE, "close it"),
    ("found unexpected document separator", OPEN_QUOTE, "close it"),
    ("expected ',' or ']'", "the [ that opens here has no ] or lacks a comma", "close it, and separate entries with commas"),
    ("expected ',' or '}'", "the { that opens here has no } or lacks a comma", "close it, and separate entries with commas"),
)
"""Part of the parser's message, reason and remedy, by the mark whose position is reported."""


def syntax_problem(error: yaml.MarkedYAMLError) -> tuple[Position | None, str, str]:
    """Return position, reason and remedy of a parser's error."""
    message = f"{error.context}: {error.problem}"
    for table, mark in ((BY_CONTEXT_MARK, error.context_mark), (BY_PROBLEM_MARK, error.problem_mark)):
        for words, reason, remedy in table:
            if words in message:
                return position(mark), reason, remedy
    return position(error.problem_mark), f"this is not YAML: {error.problem}", "quote the value, or align the line"


def reference(event: yaml.Event) -> ValueProblem | None:
    """Return the problem of an alias, an anchor or a tag; None for an event without one."""
    if isinstance(event, yaml.AliasEvent):
        return ValueProblem(
            f"*{event.anchor} refers to another part of the file, which can grow without bound",
            "write the value, or quote it",
        )
    if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
        return ValueProblem(f"&{event.anchor} is an anchor for references, which are not allowed", "remove the anchor, or quote it")
    if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        return ValueProblem(f"{tag} gives the value a type, but the schema sets types", "leave it out, or quote it")
    return None


def position(mark: object) -> Position | None:
    """Return the position of a parser's mark, which counts from 0."""
    return Position(mark.line + 1, mark.column + 1) if isinstance(mark, yaml.Mark) else None
