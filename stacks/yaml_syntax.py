"""Decides how a sentence of YAML's grammar that a file breaks is put to a person."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from stacks.file_problems import Position
from stacks.yaml_scalars import Trap


@dataclass(frozen=True)
class Mishap:
    """What is wrong with the text, at which place, and what to write."""

    position: Position | None
    reason: str
    remedy: str


ESCAPE = "a backslash in double quotes begins no known escape here"
PROGRAMS = "a line beginning with % is for programs"
OPEN_QUOTE = "the quote that opens here is never closed"
QUOTE = "quote the value"

WHERE_IT_BROKE = (
    ("character '\\t'", "a tab stands where YAML wants spaces", "indent and separate with spaces"),
    ("cannot start any token", "this character cannot begin a value", QUOTE),
    (
        "mapping values are not allowed",
        "a colon and a space stand inside a value, or the line is indented wrongly",
        "quote the value, or align it",
    ),
    ("entries are not allowed", "a list entry cannot begin here", "put `- ` on a line of its own, aligned with the other entries"),
    ("keys are not allowed", "a key cannot begin here", "put it on a line of its own"),
    ("expected <block end>", "this does not continue what stands above it", "align it with the lines that it belongs to"),
    ("expected the node content", "a value is missing here", "write one, or leave the comma or bracket out"),
    ("unknown escape character", ESCAPE, "double the backslash, or use single quotes"),
    ("expected escape sequence", ESCAPE, "double the backslash, or use single quotes"),
    ("a block scalar", "a | or > is followed by something else than a line break", "quote the value, or begin it on the next line"),
    ("directive", PROGRAMS, "leave the line out"),
    ("incompatible YAML document", PROGRAMS, "leave the line out"),
    ("an alias", "a * begins a reference to another part of the file", QUOTE),
    ("an anchor", "a & begins a mark for references", QUOTE),
    ("a tag", "a ! begins a type", QUOTE),
    ("tag handle", "a ! begins a type", QUOTE),
    ("<document start>", "the document has ended above", "leave out what follows, or indent it"),
)
WHERE_IT_BEGAN = (
    ("could not find expected ':'", "this line is no key and value", "write the key, a colon, a space and the value"),
    ("found unexpected end of stream", OPEN_QUOTE, "close it"),
    ("found unexpected document separator", OPEN_QUOTE, "close it"),
    ("expected ',' or ']'", "the [ that opens here has no ] or lacks a comma", "close it, and separate entries with commas"),
    ("expected ',' or '}'", "the { that opens here has no } or lacks a comma", "close it, and separate entries with commas"),
)
"""Words in the parser's complaint, what is wrong, what to write; by the place that helps a person to find it."""


def mishap(error: yaml.MarkedYAMLError) -> Mishap:
    """Put a parser's complaint into a sentence, with the place where a person has to look."""
    complaint = f"{error.context}: {error.problem}"
    for table, mark in ((WHERE_IT_BEGAN, error.context_mark), (WHERE_IT_BROKE, error.problem_mark)):
        for words, reason, remedy in table:
            if words in complaint:
                return Mishap(position(mark), reason, remedy)
    return Mishap(position(error.problem_mark), f"this is not YAML: {error.problem}", "quote the value, or align the line")


def reference(event: yaml.Event) -> Trap | None:
    """Say why an alias, an anchor or a tag is not read."""
    if isinstance(event, yaml.AliasEvent):
        return Trap(f"*{event.anchor} refers to another part of the file, which can grow without bound", "write the value, or quote it")
    if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
        return Trap(f"&{event.anchor} marks a value for references, which are not read", "leave the mark out, or quote it")
    if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag is not None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        return Trap(f"{tag} gives the value a type, which is the schema's to give", "leave it out, or quote it")
    return None


def position(mark: object) -> Position | None:
    """Turn a parser's mark, which counts from 0, into a position."""
    return Position(mark.line + 1, mark.column + 1) if isinstance(mark, yaml.Mark) else None
