"""Strict reader of YAML: data with the position of each part, and the problems of ambiguous or forbidden syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import yaml

from stacks.file_problems import (
    MAX_PROBLEMS,
    FileProblem,
    InvalidFileError,
    Path,
    Position,
    invalid_file,
    path_text,
    problem,
    shown,
)
from stacks.yaml_scalars import QUOTE_IT, ValueProblem, plain_value
from stacks.yaml_syntax import PROGRAMS, QuoteLoader, open_quote, position, reference, syntax_problem

MAX_BYTES = 1 << 20
"""Maximum bytes of a file. A region of three clusters of 7,500 nodes has about 6 kB; 1 MiB of comments takes about 1 s."""

MAX_VALUES = 50_000
"""Maximum values of a file. A region of three clusters has about 350; each takes about 70 microseconds."""

MAX_DEPTH = 32
"""Maximum depth of nested lists and mappings. A region file has 7; the reader is recursive."""

MISLEADING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]|\r(?!\n)")
"""Invisible characters, and characters that change the display of others: https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing"""


@dataclass(frozen=True)
class Document:
    """Content of a file.

    `data` consists of dict, list, str, int, float, bool and None. `positions` has the positions of the root, of all list entries and of all
    keys. For an ambiguous scalar, `problems` has a problem, `refused` has its path, and `data` has its text.
    """

    data: object
    positions: dict[Path, Position]
    problems: tuple[FileProblem, ...]
    refused: frozenset[Path]


def read(content: bytes, file: str) -> Document:
    """Return the document of a YAML file named `file`.

    Quoted scalars are text; `plain_value` reads scalars without quotes. Anchors, aliases, tags, merge keys, keys that are not text,
    duplicate keys and scalars without quotes over several lines are problems of the document. Raise InvalidFileError if there is no
    document: over MAX_BYTES, not UTF-8, invisible characters, a syntax error, directives, empty, several documents, a list or mapping as a
    key, over MAX_DEPTH or MAX_VALUES, too many problems.
    The parser is always PyYAML's own in Python: libyaml accepts other texts (a tab after a colon) and reports other positions.
    """
    text = _decoded(content, file)
    loader = QuoteLoader(text)
    reader = _Reader(file, text, loader)
    try:
        data = reader.document()
    except yaml.MarkedYAMLError as error:
        found = open_quote(loader, text, error) or syntax_problem(error, text)
        reader.drop_since(found.since)
        raise reader.fatal(found.where, found.reason, found.remedy) from None
    except (ValueError, OverflowError):
        # PyYAML converts the digits of an escape or a directive to a number of any size.
        raise reader.fatal(position(loader.get_mark()), "a number here is too large", "leave it out") from None
    finally:
        loader.dispose()
    return Document(data, reader.positions, tuple(reader.problems), frozenset(reader.refused))


def _decoded(content: bytes, file: str) -> str:
    """Return the text of a file; raise InvalidFileError if it is too long, not UTF-8 or has invisible characters."""

    def invalid(where: Position | None, reason: str, remedy: str) -> InvalidFileError:
        return invalid_file([problem(file, (), where, None, reason, remedy)])

    if len(content) > MAX_BYTES:
        raise invalid(None, f"has more than {MAX_BYTES} bytes", "use a smaller file")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The decoder does not count the bytes of a byte order mark.
        good = error.object[: error.start].decode("utf-8", errors="replace")
        raise invalid(
            _position_of(good, len(good)), f"byte 0x{error.object[error.start]:02x} is not UTF-8", "save the file as UTF-8"
        ) from None
    if bad := MISLEADING.search(text):
        raise invalid(_position_of(text, bad.start()), f"character U+{ord(bad[0]):04X} cannot be seen", "delete it") from None
    return text


def _position_of(text: str, index: int) -> Position:
    """Return the position of a character."""
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


class _Reader:
    """Builder of a document from the parser's events, with one call per list or mapping."""

    def __init__(self, file: str, text: str, loader: yaml.SafeLoader) -> None:
        self.file = file
        self.text = text
        self.events: Iterator[Any] = iter(loader.get_event, None)
        self.positions: dict[Path, Position] = {}
        self.problems: list[FileProblem] = []
        self.refused: set[Path] = set()
        self.undashed: dict[Path, list[dict[str, object]]] = {}

    def fatal(self, where: Position | None, reason: str, remedy: str) -> InvalidFileError:
        """Return the error of a file whose rest cannot be read, with the earlier problems."""
        return invalid_file([*self.problems, problem(self.file, (), where, None, reason, remedy)])

    def drop_since(self, where: Position | None) -> None:
        """Drop the problems from a position on, since they are consequences of a syntax error."""
        if where:
            self.problems = [one for one in self.problems if (one.line or 0, one.column or 0) < (where.line, where.column)]

    def report(self, path: Path, where: Position | None, word: str | None, found: ValueProblem) -> None:
        """Add a problem after which reading continues."""
        self.problems.append(problem(self.file, path, where, None if word is None else shown(word), found.reason, found.remedy, found.kind))
        if len(self.problems) > MAX_PROBLEMS:
            raise invalid_file(self.problems)

    def document(self) -> object:
        """Return the data of the only document."""
        next(self.events)
        start = next(self.events)
        if not isinstance(start, yaml.DocumentStartEvent):
            raise self.fatal(None, "is empty", "write at least one key")
        if start.version or start.tags:
            raise self.fatal(position(start.start_mark), PROGRAMS, "leave the line out")
        root = next(self.events)
        if _is_plain(root) and not root.value:
            raise self.fatal(None, "is empty", "write at least one key")
        self.positions[()] = position(root.start_mark) or Position(1, 1)
        data = self.node(root, (), 0)
        next(self.events)
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self.fatal(
                position(after.start_mark),
                "a second document begins here",
                "delete the line with ---, or move what follows to its own file",
            )
        return data

    def node(self, event: yaml.Event, path: Path, depth: int) -> object:
        """Return the value that starts with an event, at a path."""
        where = position(event.start_mark)
        if len(self.positions) > MAX_VALUES:
            raise self.fatal(where, f"the file holds more than {MAX_VALUES} values", "use a smaller file")
        if depth > MAX_DEPTH:
            raise self.fatal(
                where, f"lists and mappings are nested more than {MAX_DEPTH} deep here", "write fewer brackets, or indent less"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            if found := reference(event):
                self.report(path, where, None, found)
            return self.mapping(path, depth) if isinstance(event, yaml.MappingStartEvent) else self.sequence(path, depth)
        meant, found = _value(event)
        if found:
            self.refused.add(path)
            self.report(path, where, _text(event), found)
        return meant

    def sequence(self, path: Path, depth: int) -> list[object]:
        """Return the entries of a list."""
        entries: list[object] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            below = (*path, len(entries))
            self.positions.setdefault(below, position(event.start_mark) or self.positions[path])
            entries.append(self.node(event, below, depth + 1))
            entries.extend(self.undashed.pop(below, ()))
        return entries

    def mapping(self, path: Path, depth: int) -> dict[str, object]:
        """Return the entries of a mapping; the first value of a duplicate key applies.

        If a list entry repeats its first key and another one, the `-` of the next entry is missing. This is one problem, and the rest is an
        entry of its own in `undashed`.
        """
        entries: dict[str, object] = {}
        parts: list[tuple[Path, dict[str, object]]] = [(path, entries)]
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            where = position(event.start_mark)
            base, current = parts[-1]
            key = self.key(event, base)
            if path and isinstance(path[-1], int) and current and key == next(iter(current)):
                base, current = (*path[:-1], path[-1] + len(parts)), {}
                parts.append((base, current))
                self.positions[base] = where or self.positions[path]
            self.entry((*base, key), where, current, depth)
        pairs = [*pairwise(parts)]
        if all(len(current.keys() & earlier.keys()) > 1 for (_, earlier), (_, current) in pairs):
            for (before, _), (base, current) in pairs:
                self.missing_dash(base, next(iter(current)), self.positions[before].line)
        else:
            for (before, earlier), (base, current) in reversed(pairs):
                self.merge(before, earlier, base, current)
            del parts[1:]
        if len(parts) > 1:
            self.undashed[path] = [current for _, current in parts[1:]]
        return entries

    def entry(self, below: Path, where: Position | None, entries: dict[str, object], depth: int) -> None:
        """Read the value of a key at a path into a mapping, and report a duplicate key."""
        key = str(below[-1])
        event = next(self.events)
        if key in entries:
            self.duplicate(below, where, isinstance(event, yaml.CollectionStartEvent) and isinstance(entries[key], list | dict))
        self.positions.setdefault(below, where or self.positions[below[:-1]])
        value = self.node(event, below, depth + 1)
        entries.setdefault(key, value)

    def missing_dash(self, path: Path, first: str, above: int) -> None:
        """Report a list entry at a path whose `-` is missing; its keys repeat those of the entry in the line above."""
        reason = f"repeats the keys of the entry above, which starts in line {above}"
        remedy = f"put `- ` before {first}, so that a new entry starts here; or remove what is repeated"
        self.report((*path, first), self.positions[path], None, ValueProblem(reason, remedy))

    def duplicate(self, path: Path, where: Position | None, collections: bool) -> None:
        """Report a key that its mapping has already; collections is True if both values are a list or mapping."""
        first = self.positions[path].line
        remedy = "keep one of the two"
        if collections:
            remedy += f", or move the entries below this one to line {first}'s and delete this line"
        self.report(path, where, None, ValueProblem(f"the key is given twice: in line {first} and here", remedy))

    def merge(self, path: Path, entries: dict[str, object], tentative: Path, rest: dict[str, object]) -> None:
        """Move keys that were read as the next list entry back to their mapping, with positions and problems."""
        for key, value in rest.items():
            if key in entries:
                both = isinstance(value, list | dict) and isinstance(entries[key], list | dict)
                self.duplicate((*path, key), self.positions[(*tentative, key)], both)
            entries.setdefault(key, value)
        old, new, length = path_text(tentative), path_text(path), len(tentative)
        for below in [below for below in self.positions if below[:length] == tentative]:
            self.positions.setdefault((*path, *below[length:]), self.positions.pop(below))
        self.refused = {(*path, *below[length:]) if below[:length] == tentative else below for below in self.refused}
        self.problems = [
            replace(one, path=new + one.path.removeprefix(old)) if one.path.startswith(f"{old}.") else one for one in self.problems
        ]

    def key(self, event: yaml.Event, path: Path) -> str:
        """Return a key, which must be text."""
        where = position(event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            if event.start_mark and self.text.startswith("{{", event.start_mark.index - 1):
                raise self.fatal(where, "{{ opens a placeholder of a template, which nothing replaces here", "write the value itself")
            raise self.fatal(where, "a list or mapping is used as a key", "write the key as text; quote what begins with { or [")
        key = _text(event)
        meant, found = _value(event)
        if key == "<<" and _is_plain(event):
            found = ValueProblem("<< copies the keys of another part of the file", f"write the keys themselves, or {QUOTE_IT}")
        elif found:
            found = ValueProblem(f"as a key, {found.reason}", QUOTE_IT)
        elif not isinstance(meant, str):
            found = ValueProblem(f"as a key, {key} is no text", QUOTE_IT)
        if found:
            self.refused.add((*path, key))
            self.report((*path, key), where, key, found)
        return key


def _is_plain(event: yaml.Event) -> bool:
    """Return True for a scalar without quotes and without a tag."""
    return isinstance(event, yaml.ScalarEvent) and event.style is None and event.tag is None


def _text(event: Any) -> str:
    """Return the text of a scalar without invisible characters."""
    if isinstance(event, yaml.AliasEvent):
        return f"*{event.anchor}"
    return MISLEADING.sub("", event.value)


def _value(event: yaml.Event) -> tuple[str | int | float | bool | None, ValueProblem | None]:
    """Return the value of a scalar and its problem; with a problem, the value is its text."""
    text = _text(event)
    if found := reference(event):
        return text, found
    if isinstance(event, yaml.ScalarEvent) and (bad := MISLEADING.search(event.value)):
        return text, ValueProblem(f"holds character U+{ord(bad[0]):04X}, which cannot be seen", "leave its escape out")
    if not _is_plain(event):
        return text, None
    start, stop = position(event.start_mark), position(event.end_mark)
    if start and stop and start.line != stop.line:
        return text, ValueProblem(f"{shown(text)} spans several lines without quotes", f"{QUOTE_IT}, or see whether a colon is missing")
    meant = plain_value(text)
    return (text, meant) if isinstance(meant, ValueProblem) else (meant, None)
