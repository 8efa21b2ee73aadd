"""Decides how a problem in a file is told: one line with the file, the place, what is wrong and what would be right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from components.errors import GpufleetError

Path = tuple[str | int, ...]
"""Place in a document: keys and list indices from its root."""

MAX_PROBLEMS = 200
"""Faults told of one file: more are not read by anyone, and a file of machine-made nonsense must not take minutes to refuse."""

LONGEST_TEXT = 400
"""Characters of a reason or remedy; what lies in the middle of a longer one is left out."""

LONGEST_VALUE = 60
"""Characters of a value from the file; the end of a longer one is left out."""

LINE_BREAK = re.compile(r"\s*[\r\n]\s*")

PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Position:
    """Place in a text: line and column, both from 1, the column in characters."""

    line: int
    column: int


@dataclass(frozen=True)
class FileProblem:
    """One thing wrong with a file; its text is one line, whatever the file holds.

    `path` is the place inside the document (`clusters[1].pools[0].nodes`), empty for the document itself; `value` is what stands there,
    cut.
    """

    file: str
    path: str
    line: int | None
    column: int | None
    value: str | None
    reason: str
    remedy: str

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


def problem(file: str, path: Path, position: Position | None, value: str | None, reason: str, remedy: str) -> FileProblem:
    """Build a problem whose texts are single lines of bounded length."""
    line, column = (position.line, position.column) if position else (None, None)
    return FileProblem(file, path_text(path), line, column, value, one_line(reason), one_line(remedy))


def invalid_file(problems: Iterable[FileProblem]) -> InvalidFileError:
    """Order problems by their place in the file, tell each once, and at most MAX_PROBLEMS of them."""
    told = sorted(dict.fromkeys(problems), key=lambda one: (one.line or 0, one.column or 0))
    if len(told) > MAX_PROBLEMS:
        more = problem(told[0].file, (), None, None, f"has more than {MAX_PROBLEMS} problems", "mend those above first")
        told = [*told[:MAX_PROBLEMS], more]
    return InvalidFileError(told)


def nearest_position(path: Path, positions: Mapping[Path, Position]) -> Position | None:
    """Find the place of a path, or of its nearest ancestor in the file."""
    return next((positions[path[:length]] for length in range(len(path), -1, -1) if path[:length] in positions), None)


def path_text(path: Path) -> str:
    """Write a path as people do: `clusters[1].labels["a/b"]`."""
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
    """Write a value from a file as YAML would, on one line and cut; a list or mapping by its size."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
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
    """Escape what does not print, and leave out the middle of what is too long."""
    if len(text) > LONGEST_TEXT:
        half = LONGEST_TEXT // 2
        text = f"{text[:half]} … {text[-half:]}"
    joined = LINE_BREAK.sub(" ", text).strip()
    if joined.isprintable():
        return joined
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in joined)
