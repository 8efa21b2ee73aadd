"""Changed files in custom data: each distinct change once, with the resources that have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rehearsal.local_up.boot_documents import DocumentFile, UnreadableDocumentError, archive_members, changed_files
from rehearsal.local_up.value_text import printable, text_diff
from rehearsal.program.graph import MASK

CUSTOM_DATA = "customData"
FILE_LINES = 8
"""Lines of one file that are printed without --diff."""
NAMES = 3
"""Names of resources, and of members of an archive, that are printed without --diff."""
LAYOUT = "no file differs: only the order or the layout of the document"


@dataclass(frozen=True)
class CustomDataChange:
    """Changed custom data of one resource: the word for its type, its name, and both values."""

    word: str
    name: str
    old: str
    new: str


@dataclass
class FileChange:
    """One distinct change of a file: what changed besides the content, its changed lines, and the names of resources by type."""

    path: str
    notes: tuple[str, ...]
    lines: tuple[str, ...]
    resources: dict[str, list[str]] = field(default_factory=dict)


def boot_file_lines(changes: Sequence[CustomDataChange], room: int, *, everything: bool) -> list[str]:
    """Return the changed files: all their lines if everything is set, otherwise as many lines as there is room for."""
    found = _distinct(changes)
    if not found:
        return []
    title = "files in customData that change:"
    if everything:
        return [title, *(line for one in found for line in (f"  {_header(one, everything=True)}", *_indented(one.lines)))]
    shown = found[: max(1, room - 2)]
    spare, lines = room - 1 - len(shown), [title]
    left = len(found) - len(shown)
    for one in shown:
        lines.append(f"  {_header(one, everything=False)}")
        bounded = _bounded(one.lines)
        if len(bounded) <= spare:
            lines += _indented(bounded)
            spare -= len(bounded)
    return [*lines, f"  {left:,} more file{'' if left == 1 else 's'}; --diff prints them"] if left else lines


def _distinct(changes: Sequence[CustomDataChange]) -> list[FileChange]:
    """Return the distinct changes, by path; those that differ only in the lines around a change are one."""
    found: dict[tuple[object, ...], FileChange] = {}
    for change in changes:
        for one in _changes_of(change.old, change.new):
            changed = tuple(line for line in one.lines if not line.startswith(("  ", "@@")))
            same = found.setdefault((one.path, one.notes, changed), FileChange(one.path, one.notes, one.lines))
            same.resources.setdefault(change.word, []).append(change.name)
    return sorted(found.values(), key=lambda one: one.path)


@lru_cache(maxsize=64)
def _changes_of(old: str, new: str) -> tuple[FileChange, ...]:
    """Return the changed files of two custom data; one line on the whole where they cannot be decoded."""
    if MASK in (old, new):
        return (FileChange("(secret)", ("marked as secret, so that its files are not printed",), ()),)
    try:
        files = changed_files(old, new)
    except UnreadableDocumentError as error:
        return (FileChange("(unreadable)", (f"{error}; {len(old):,} -> {len(new):,} characters",), ()),)
    if not files:
        return (FileChange("(document)", (LAYOUT,), ()),)
    return tuple(_change_of(path, before, after) for path, (before, after) in files.items())


@lru_cache(maxsize=1024)
def _change_of(path: str, old: DocumentFile | None, new: DocumentFile | None) -> FileChange:
    """Return the change of one file; None is a missing file."""
    before, after = old.content if old else b"", new.content if new else b""
    notes = ["new"] if old is None else ["removed"] if new is None else []
    if old and new:
        pairs = (("mode", old.mode, new.mode), ("owner", old.owner, new.owner))
        notes += [f"{name} {one or '(absent)'} -> {other or '(absent)'}" for name, one, other in pairs if one != other]
    if before == after:
        return FileChange(path, tuple(notes), ())
    if _is_text(before) and _is_text(after):
        return FileChange(path, tuple(notes), tuple(text_diff(path, before.decode(), after.decode())))
    members, other = archive_members(before) if before else {}, archive_members(after) if after else {}
    kind = "binary" if members is None or other is None else "archive"
    size = f"{kind}, {len(before):,} -> {len(after):,} bytes"
    return FileChange(path, (*notes, size), tuple(_member_lines(members or {}, other or {}) if kind == "archive" else ()))


def _member_lines(old: dict[str, bytes], new: dict[str, bytes]) -> list[str]:
    """Return a line per member of an archive that differs."""
    signs = {True: {True: "~", False: "-"}, False: {True: "+"}}
    names = [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]
    return [
        f"{signs[name in old][name in new]} {printable(name)} ({len(old.get(name, b'')):,} -> {len(new.get(name, b'')):,} bytes)"
        for name in names
    ]


def _is_text(content: bytes) -> bool:
    try:
        return "\x00" not in content.decode()
    except UnicodeError:
        return False


def _header(change: FileChange, *, everything: bool) -> str:
    """Return a line with the file, the number of its changed lines, and the resources."""
    counts = [f"{sign}{count}" for sign in "+-~" if (count := sum(line.startswith(f"{sign} ") for line in change.lines))]
    notes = [*change.notes, *([" ".join(counts)] if counts else [])]
    where = (_resources(word, names, everything=everything) for word, names in change.resources.items())
    return f"{printable(change.path)} ({'; '.join(notes)}) in {', '.join(where)}"


def _resources(word: str, names: Sequence[str], *, everything: bool) -> str:
    names = sorted(names)
    if everything or len(names) <= NAMES:
        return f"{word} {', '.join(names)}"
    return f"{len(names):,} {word} ({names[0]} … {names[-1]})"


def _bounded(lines: Sequence[str]) -> list[str]:
    if len(lines) <= FILE_LINES:
        return list(lines)
    return [*lines[: FILE_LINES - 1], f"{len(lines) - FILE_LINES + 1:,} more lines; --diff prints them"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
