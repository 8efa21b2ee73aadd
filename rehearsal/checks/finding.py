"""Finding of a cross-check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One difference: check is the violated statement, where the resource or flow that violates it.

    planned is the expected state, found the registered state, remedy the action; all are text for messages.
    """

    check: str
    where: str
    planned: str
    found: str
    remedy: str

    def sentence(self) -> str:
        """Return one line: where, both sides, the remedy and the statement."""
        return f"{self.where}: planned {self.planned}, found {self.found}; {self.remedy} (must hold: {self.check})"
