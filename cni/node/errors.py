"""Errors of the node program: the value found, the bound, the location, and the remedy."""

from __future__ import annotations


class NodeNetworkError(Exception):
    """An error that is printed as one line.

    value is the value found, bound the permitted one, where its location (a file, a command, an address), remedy the action to take.
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
    """Return an external value for an error message: on one line, 80 characters at most."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
