"""Interfaces of the stores of a journal: a file, or append blobs."""

from __future__ import annotations

from typing import Protocol


class ReadableJournal(Protocol):
    """Bytes of one journal, which another process may append to at the same time.

    All methods raise GpufleetError subclasses of `journal_errors`, and no others for a fault of the disk or the network.
    """

    @property
    def name(self) -> str:
        """Return the file or the prefix of the blobs, for messages."""
        ...

    def place(self, offset: int) -> str:
        """Return the file or blob that contains a byte of the last `read`, and the byte's offset in it."""
        ...

    def read(self) -> bytes:
        """Return all bytes."""
        ...


class JournalStore(ReadableJournal, Protocol):
    """Bytes of one journal, which one process at a time may append to."""

    def append(self, data: bytes) -> None:
        """Append bytes; they are durable on return. JournalLeaseLostError and JournalWriteError: the caller must not act."""
        ...

    def discard_after(self, length: int) -> None:
        """Remove bytes that an interrupted append left behind the first `length` bytes."""
        ...

    def check_held(self) -> None:
        """Raise JournalLeaseLostError if this process may no longer write."""
        ...

    def close(self) -> None:
        """Let another process write; may be repeated."""
        ...
