"""Decides how it is told that programs cannot be had: what is missing, why, and what to do."""

from __future__ import annotations

from components.errors import GpufleetError


class BinariesMissingError(GpufleetError):
    """Programs are not there, or cannot be built; its text is one sentence, with the remedy behind a semicolon."""

    def __init__(self, what: str, why: str, remedy: str) -> None:
        super().__init__(what, why, remedy)
        self.what, self.why, self.remedy = what, why, remedy

    def __str__(self) -> str:
        return f"{self.what}: {self.why}; {self.remedy}" if self.remedy else f"{self.what}: {self.why}"
