"""Journal of a simulated rotation in memory: the production records and rules, without a disk."""

from __future__ import annotations

from lifecycle.rotation.journal import Journal, RunStart
from lifecycle.rotation.journal_errors import JournalEmptyError
from lifecycle.rotation.journal_writer import JournalWriter
from lifecycle.rotation.model import Action, Step


class MemoryStore:
    """Store that counts the bytes of a journal and drops them: a region's journals would take tens of megabytes."""

    name = "the journal in memory"

    def __init__(self) -> None:
        self.length = 0

    def place(self, offset: int) -> str:
        """Return the offset."""
        return f"byte {offset} of {self.name}"

    def read(self) -> bytes:
        """Raise JournalEmptyError: only a new journal is read, before its first record."""
        raise JournalEmptyError(self.name)

    def append(self, data: bytes) -> None:
        """Count bytes."""
        self.length += len(data)

    def discard_after(self, length: int) -> None:
        """Set the length."""
        self.length = length

    def check_held(self) -> None:
        """Do nothing: no other process can write."""

    def close(self) -> None:
        """Do nothing."""


class MemoryJournal:
    """Journal that applies and encodes each step as production does."""

    def __init__(self, start: RunStart) -> None:
        self._store = MemoryStore()
        self._writer = JournalWriter.start(self._store, self._store, start)

    def record(self, step: Step) -> None:
        """Append a step's transitions; its actions are the caller's."""
        self._writer.carry_out(step, step.transitions[0].at, _elsewhere)

    @property
    def journal(self) -> Journal:
        """State of the run."""
        return self._writer.journal

    @property
    def length(self) -> int:
        """Bytes of all records."""
        return self._store.length


def _elsewhere(_: Action) -> None:
    """Leave an action to the modelled fleet."""
