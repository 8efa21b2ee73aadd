"""Decides what the bytes of a YAML file say: plain data with the place of every part of it, or the problems that make it say two things."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from stacks.file_problems import MAX_PROBLEMS, FileProblem, InvalidFileError, Path, Position, invalid_file, problem, shown
from stacks.yaml_scalars import Trap, plain_value
from stacks.yaml_syntax import PROGRAMS, mishap, position, reference

MAX_BYTES = 1 << 20
"""Bytes of a file. A region of three clusters of 7,500 nodes takes about 6 kB; the reader takes about 1 s for 1 MiB of comments."""

MAX_VALUES = 50_000
"""Values of a file. A region of three clusters has about 350; the reader takes about 70 microseconds for each."""

MAX_DEPTH = 32
"""Lists and mappings inside each other. A region file has 7; the reader calls itself once per level."""

MISLEADING = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060-\u2069\ufeff\ufffe\uffff\ud800-\udfff]|\r(?!\n)")
"""Characters that a reviewer does not see, or that move what is seen: https://www.unicode.org/reports/tr36/#Bidirectional_Text_Spoofing"""


@dataclass(frozen=True)
class Document:
    """What a file says.

    `data` is made of dict, list, str, int, float, bool and None. `positions` has the place of the root, of every list entry and of every
    key. Where a word may mean two things, `problems` says so, `refused` has its path, and `data` holds the word itself as text.
    """

    data: object
    positions: dict[Path, Position]
    problems: tuple[FileProblem, ...]
    refused: frozenset[Path]


def read(content: bytes, file: str) -> Document:
    """Read the content of a YAML file named `file`.

    Quoted words are text; words without quotes are read by `plain_value`. Anchors, aliases, tags, merge keys, keys that are no text,
    duplicate keys and words without quotes over several lines are problems of the document. Raises FileRefused where there is no document:
    over MAX_BYTES, not UTF-8, with invisible characters, not YAML, with directives, empty, several documents, a list or mapping as a
    key, over MAX_DEPTH or MAX_VALUES, more problems than are told.
    The parser is always PyYAML's own in Python: libyaml's takes other texts (a tab after a colon) and complains at other places.
    """
    text = _decoded(content, file)
    loader = yaml.SafeLoader(text)
    reader = _Reader(file, loader)
    try:
        data = reader.document()
    except yaml.MarkedYAMLError as error:
        found = mishap(error)
        reader.forget_after(found.position)
        raise reader.end(found.position, found.reason, found.remedy) from None
    except (ValueError, OverflowError):
        # PyYAML turns the digits of an escape or a directive into a number without looking at its size.
        raise reader.end(position(loader.get_mark()), "a number here is beyond every bound", "leave it out") from None
    finally:
        loader.dispose()
    return Document(data, reader.positions, tuple(reader.problems), frozenset(reader.refused))


def _decoded(content: bytes, file: str) -> str:
    """Turn bytes into text, or say why they are none."""

    def refuse(place: Position | None, reason: str, remedy: str) -> InvalidFileError:
        return invalid_file([problem(file, (), place, None, reason, remedy)])

    if len(content) > MAX_BYTES:
        raise refuse(None, f"has more than {MAX_BYTES} bytes", "give a file that a person wrote")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The bytes of a byte order mark are missing from what the decoder counts.
        good = error.object[: error.start].decode("utf-8", errors="replace")
        raise refuse(_place(good, len(good)), f"byte 0x{error.object[error.start]:02x} is not UTF-8", "save the file as UTF-8") from None
    if bad := MISLEADING.search(text):
        raise refuse(_place(text, bad.start()), f"character U+{ord(bad[0]):04X} cannot be seen", "delete it") from None
    return text


def _place(text: str, index: int) -> Position:
    """Find the line and column of a character."""
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


class _Reader:
    """Puts the parser's events together, one call per list or mapping."""

    def __init__(self, file: str, loader: yaml.SafeLoader) -> None:
        self.file = file
        self.events: Iterator[Any] = iter(loader.get_event, None)
        self.positions: dict[Path, Position] = {}
        self.problems: list[FileProblem] = []
        self.refused: set[Path] = set()

    def end(self, place: Position | None, reason: str, remedy: str) -> InvalidFileError:
        """Build the refusal of a file whose rest cannot be read, with the problems found before."""
        return invalid_file([*self.problems, problem(self.file, (), place, None, reason, remedy)])

    def forget_after(self, place: Position | None) -> None:
        """Leave out the problems behind a place from which on the text is not what its author meant: they follow from it."""
        if place:
            self.problems = [one for one in self.problems if (one.line or 0, one.column or 0) <= (place.line, place.column)]

    def doubt(self, path: Path, place: Position | None, word: str | None, trap: Trap) -> None:
        """Note a problem that does not keep the rest from being read."""
        self.problems.append(problem(self.file, path, place, None if word is None else shown(word), trap.reason, trap.remedy))
        if len(self.problems) > MAX_PROBLEMS:
            raise invalid_file(self.problems)

    def document(self) -> object:
        """Read the only document."""
        next(self.events)
        start = next(self.events)
        if not isinstance(start, yaml.DocumentStartEvent):
            raise self.end(None, "is empty", "write at least one key")
        if start.version or start.tags:
            raise self.end(position(start.start_mark), PROGRAMS, "leave the line out")
        root = next(self.events)
        if _is_plain(root) and not root.value:
            raise self.end(None, "is empty", "write at least one key")
        self.positions[()] = position(root.start_mark) or Position(1, 1)
        data = self.node(root, (), 0)
        next(self.events)
        after = next(self.events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise self.end(position(after.start_mark), "a second document begins here", "write one document in a file")
        return data

    def node(self, event: yaml.Event, path: Path, depth: int) -> object:
        """Read the value that begins with an event and stands at a path."""
        place = position(event.start_mark)
        if len(self.positions) > MAX_VALUES:
            raise self.end(place, f"the file holds more than {MAX_VALUES} values", "give a file that a person wrote")
        if depth > MAX_DEPTH:
            raise self.end(place, f"lists and mappings lie more than {MAX_DEPTH} deep here", "write fewer brackets, or indent less")
        if isinstance(event, yaml.CollectionStartEvent):
            if trap := reference(event):
                self.doubt(path, place, None, trap)
            return self.mapping(path, depth) if isinstance(event, yaml.MappingStartEvent) else self.sequence(path, depth)
        meant, trap = _meaning(event)
        if trap:
            self.refused.add(path)
            self.doubt(path, place, _letters(event), trap)
        return meant

    def sequence(self, path: Path, depth: int) -> list[object]:
        """Read the entries of a list up to its end."""
        entries: list[object] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            below = (*path, len(entries))
            self.positions.setdefault(below, position(event.start_mark) or self.positions[path])
            entries.append(self.node(event, below, depth + 1))
        return entries

    def mapping(self, path: Path, depth: int) -> dict[str, object]:
        """Read the keys and values of a mapping up to its end; of a key given twice the first value stays."""
        entries: dict[str, object] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            place = position(event.start_mark)
            key = self.key(event, path)
            below = (*path, key)
            if key in entries:
                first = self.positions[below].line
                self.doubt(below, place, None, Trap(f"the key is given twice: in line {first} and here", "keep one of the two"))
            self.positions.setdefault(below, place or self.positions[path])
            value = self.node(next(self.events), below, depth + 1)
            entries.setdefault(key, value)
        return entries

    def key(self, event: yaml.Event, path: Path) -> str:
        """Read a key, which is text."""
        place = position(event.start_mark)
        if isinstance(event, yaml.CollectionStartEvent):
            raise self.end(place, "a list or mapping stands where a key belongs", "write the key as text; quote what begins with { or [")
        key = _letters(event)
        meant, trap = _meaning(event)
        if key == "<<" and _is_plain(event):
            trap = Trap("<< copies the keys of another part of the file", "write the keys themselves, or quote it")
        elif trap:
            trap = Trap(f"as a key, {trap.reason}", "quote it")
        elif not isinstance(meant, str):
            trap = Trap(f"as a key, {key} is no text", "quote it")
        if trap:
            self.refused.add((*path, key))
            self.doubt((*path, key), place, key, trap)
        return key


def _is_plain(event: yaml.Event) -> bool:
    """Tell whether a word stands without quotes and without a type."""
    return isinstance(event, yaml.ScalarEvent) and event.style is None and event.tag is None


def _letters(event: Any) -> str:
    """Give the text of a word as it stands, less what cannot be seen."""
    if isinstance(event, yaml.AliasEvent):
        return f"*{event.anchor}"
    return MISLEADING.sub("", event.value)


def _meaning(event: yaml.Event) -> tuple[str | int | float | bool | None, Trap | None]:
    """Read a word or a text; where it is a trap, its letters stand for it."""
    text = _letters(event)
    if trap := reference(event):
        return text, trap
    if isinstance(event, yaml.ScalarEvent) and (bad := MISLEADING.search(event.value)):
        return text, Trap(f"holds character U+{ord(bad[0]):04X}, which cannot be seen", "leave its escape out")
    if not _is_plain(event):
        return text, None
    start, stop = position(event.start_mark), position(event.end_mark)
    if start and stop and start.line != stop.line:
        return text, Trap(f"{shown(text)} goes over several lines without quotes", "quote it, or see whether a colon is missing")
    meant = plain_value(text)
    return (text, meant) if isinstance(meant, Trap) else (meant, None)
