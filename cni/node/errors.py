"""How the program says no: what it found, what it would take, why, and what to do."""

from __future__ import annotations


class NodeNetworkError(Exception):
    """Something that the program cannot work with, for one line to a person.

    value is what was found, bound what would do, where its place (a file, a command, an address), remedy what to do about it.
    """

    def __init__(self, where: str, value: str, bound: str, remedy: str) -> None:
        super().__init__(where, value, bound, remedy)
        self.where = where
        self.value = value
        self.bound = bound
        self.remedy = remedy

    def __str__(self) -> str:
        return " ".join(f"{self.where}: {self.value}; {self.bound}; {self.remedy}".split())


def shown(value: object) -> str:
    """A value from outside as an error may carry it: on one line, 80 characters at most."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
