"""Problems of a file, each printed as one line with file, line, path, reason and remedy."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from components.errors import GpufleetError

Path = tuple[str | int, ...]
"""Path in a document: keys and list indices from the root."""

MAX_PROBLEMS = 200
"""Maximum problems reported per file; rejecting a large random file must not take minutes."""

LONGEST_TEXT = 400
"""Maximum characters of a reason or remedy; the middle of a longer text is omitted."""

LONGEST_VALUE = 60
"""Maximum characters of a value from the file; the end of a longer value is omitted."""

LINE_BREAK = re.compile(r"\s*[\r\n]\s*")

PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

WIDE_SPACE = re.compile(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
"""Characters that look like a space; in YAML they are letters."""


@dataclass(frozen=True)
class Position:
    """Position in a text: line and column, both from 1, the column in characters."""

    line: int
    column: int


class ProblemKind(enum.Flag):
    """Properties of a problem that decide how it is merged with other problems of its file."""

    OTHER = 0
    QUOTABLE = enum.auto()
    """A scalar without quotes that is ambiguous; the last remedy is quotes, which are wrong where the model expects no text."""
    UNKNOWN_KEY = enum.auto()
    WRONG_FORM = enum.auto()
    """Text without the form of its key. A validation that knows the existing values has a better remedy."""
    NOT_TEXT_OR_LIST = enum.auto()
    """Another value where text or a list is expected; problems inside the value only follow from it."""
    GENERAL_REMEDY = enum.auto()
    """The remedy is that of every value with the wrong type."""


@dataclass(frozen=True)
class FileProblem:
    """One problem of a file; its text is always one line.

    `path` is the path in the document (`clusters[1].pools[0].nodes`), empty for the document itself; `value` is the value, shortened.
    """

    file: str
    path: str
    line: int | None
    column: int | None
    value: str | None
    reason: str
    remedy: str
    kind: ProblemKind = field(default=ProblemKind.OTHER, compare=False, repr=False)

    def __str__(self) -> str:
        where = one_line(self.file)
        if self.line is not None:
            where += f":{self.line}"
        if self.column is not None and not self.path:
            where += f":{self.column}"
        parts = (where, self.path, f"{self.reason}; {self.remedy}" if self.remedy else self.reason)
        return ": ".join(part for part in parts if part)


class InvalidFileError(GpufleetError):
    """A file that is not used, with every problem found in it; its text is one line per problem."""

    def __init__(self, problems: Iterable[FileProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def problem(
    file: str,
    path: Path,
    position: Position | None,
    value: str | None,
    reason: str,
    remedy: str,
    kind: ProblemKind = ProblemKind.OTHER,
) -> FileProblem:
    """Return a problem whose texts are single lines of limited length."""
    line, column = (position.line, position.column) if position else (None, None)
    return FileProblem(file, path_text(path), line, column, value, one_line(reason), one_line(remedy), kind)


def invalid_file(problems: Iterable[FileProblem]) -> InvalidFileError:
    """Return the error with the distinct problems in file order, at most MAX_PROBLEMS of them."""
    ordered = sorted(dict.fromkeys(problems), key=lambda one: (one.line or 0, one.column or 0))
    if len(ordered) > MAX_PROBLEMS:
        more = problem(ordered[0].file, (), None, None, f"has more than {MAX_PROBLEMS} problems", "correct those above first")
        ordered = [*ordered[:MAX_PROBLEMS], more]
    return InvalidFileError(ordered)


def nearest_position(path: Path, positions: Mapping[Path, Position]) -> Position | None:
    """Return the position of a path, or of its nearest ancestor in the file."""
    return next((positions[path[:length]] for length in range(len(path), -1, -1) if path[:length] in positions), None)


def path_text(path: Path) -> str:
    """Return a path as text: `clusters[1].labels["a/b"]`."""
    text = ""
    for element in path:
        if isinstance(element, int):
            text += f"[{element}]"
        elif PLAIN_KEY.fullmatch(element) and len(element) <= LONGEST_VALUE:
            text += f".{element}"
        else:
            text += f"[{shown(element)}]"
    return text.removeprefix(".")


def shown(value: object) -> str:
    """Return a value from a file as in YAML, on one line, shortened; a list or mapping by its size, a private key without content."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str() if "PRIVATE KEY" in value:
            return "'… PRIVATE KEY …'"
        case str():
            return repr(value) if len(value) <= LONGEST_VALUE else f"{value[: LONGEST_VALUE - 1] + '…'!r}"
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"a mapping of {len(value)} key{'s' * (len(value) != 1)}"
        case _:
            text = repr(value)
            return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def one_line(text: str) -> str:
    """Return a text as one line, with unprintable characters escaped and the middle of a long text omitted."""
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        text = f"{text[:half]} … {text[-half:]}"
    joined = LINE_BREAK.sub(" ", text).strip()
    if joined.isprintable():
        return joined
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in joined)
