"""What a cross-check says when a rehearsed graph is not what it should be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One difference: check is the statement that does not hold, where the resource or flow that breaks it.

    planned is what must be, found what is there, remedy what to do about it; all are text for a person.
    """

    check: str
    where: str
    planned: str
    found: str
    remedy: str

    def sentence(self) -> str:
        """One line: where, both sides, the remedy and the statement."""
        return f"{self.where}: planned {self.planned}, found {self.found}; {self.remedy} (must hold: {self.check})"
