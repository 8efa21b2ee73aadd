"""Directory of an embedded Azure: the latest snapshot, and every change since, written before it is acknowledged."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from components.errors import GpufleetError
from rehearsal.azure.directory_lock import DirectoryLock
from rehearsal.azure.directory_marker import AZURE, claim, mark

Json = dict[str, Any]

SNAPSHOT, JOURNAL = "state-{:06d}.json", "journal-{:06d}.jsonl"
MOST_CHANGES, MOST_BYTES = 20_000, 64 * 2**20
"""Changes and bytes of a journal after which a new snapshot is cheaper than a replay."""


class StateCorruptError(GpufleetError):
    """A state directory whose files cannot be read or do not match."""


class StateDirectory:
    """A state directory, held by one process: the latest snapshot of a model, and what has happened to it since.

    What flush has written is in the operating system's hands: the death of the process loses nothing, that of the machine may lose the last
    moments. A torn last line belongs to a change that was never acknowledged, and is dropped.
    """

    def __init__(self, folder: Path) -> None:
        """Lock a directory and create it if it does not exist.

        Raises DirectoryInUseError, ForeignDirectoryError for a directory with other files, or OSError if it cannot be created.
        """
        claim(folder, AZURE)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._lock = DirectoryLock(folder)
        try:
            mark(folder, AZURE)
        except OSError:
            self._lock.release()
            raise
        self._generation = max((int(path.stem.rpartition("-")[2]) for path in folder.glob("state-*.json")), default=0)
        self._journal = -1
        self._pending = bytearray()
        self._changes = self._bytes = 0
        self._remove_others()

    def __enter__(self) -> StateDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def snapshot(self) -> Path:
        """Return the path of the latest snapshot; a new directory has none."""
        return self.folder / SNAPSHOT.format(self._generation)

    @property
    def journal(self) -> Path:
        """Return the path of the journal since the latest snapshot."""
        return self.folder / JOURNAL.format(self._generation)

    @property
    def begin_anew(self) -> str:
        """Return the remedy if nothing else helps; the damaged files stay available."""
        folder = str(self.folder).rstrip("/")
        return f"move it away (mv {quote(folder)} {quote(f'{folder}.broken')}) to begin anew"

    def saved(self) -> Json | None:
        """Return the latest snapshot; None in a new directory. Raises StateCorruptError."""
        if not self.snapshot.is_file():
            return None
        try:
            saved = json.loads(self.snapshot.read_bytes().decode())
        except ValueError as error:
            raise StateCorruptError(f"{self.snapshot} cannot be read (damaged at byte {_damaged_at(error)}); {self.begin_anew}") from None
        if not isinstance(saved, dict):
            raise StateCorruptError(f"{self.snapshot} contains no saved Azure; {self.begin_anew}")
        return saved

    def since(self) -> Iterator[Json]:
        """Yield the changes since the latest snapshot in order. Raises StateCorruptError."""
        if not self.journal.is_file():
            return
        whole = 0
        with self.journal.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                try:
                    change = json.loads(line.decode())
                except ValueError as error:
                    place = whole + _damaged_at(error)
                    raise StateCorruptError(f"{self.journal} cannot be read (damaged at byte {place}); {self.begin_anew}") from None
                whole += len(line)
                self._changes, self._bytes = self._changes + 1, whole
                yield change
        if whole < self.journal.stat().st_size:
            os.truncate(self.journal, whole)

    def append(self, change: Json) -> None:
        """Queue a change. It must not be acknowledged before flush returns."""
        self._pending += json.dumps(change, separators=(",", ":")).encode() + b"\n"
        self._changes += 1

    def flush(self) -> None:
        """Write queued changes. After an OSError they stay queued, and the next flush continues."""
        if not self._pending:
            return
        if self._journal < 0:
            self._journal = os.open(self.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        while self._pending:
            written = os.write(self._journal, self._pending)
            self._bytes += written
            del self._pending[:written]

    @property
    def full(self) -> bool:
        """Return whether a snapshot is due."""
        return self._changes > MOST_CHANGES or self._bytes > MOST_BYTES

    def replace(self, saved: Json) -> None:
        """Write a snapshot and start a new journal. An OSError changes nothing."""
        new = self.folder / SNAPSHOT.format(self._generation + 1)
        part = new.with_suffix(".part")
        try:
            self._write(part, json.dumps(saved, separators=(",", ":")).encode())
        except OSError:
            part.unlink(missing_ok=True)
            raise
        part.rename(new)
        self._generation += 1
        if self._journal >= 0:
            os.close(self._journal)
        self._journal = -1
        self._pending.clear()
        self._changes = self._bytes = 0
        self._remove_others()

    def close(self) -> None:
        """Release the directory."""
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1
        self._lock.release()

    @staticmethod
    def _write(path: Path, content: bytes) -> None:
        """Write a file that only its owner can read, and sync it to the disk."""
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())

    def _remove_others(self) -> None:
        """Remove files of earlier and unfinished snapshots."""
        for pattern in ("state-*.json", "journal-*.jsonl", "state-*.part"):
            for path in self.folder.glob(pattern):
                if path not in (self.snapshot, self.journal):
                    path.unlink(missing_ok=True)


def _damaged_at(error: ValueError) -> int:
    """Return the byte at which a text stops being JSON, from 0; its start if Python does not report it."""
    match error:
        case json.JSONDecodeError():
            return len(error.doc[: error.pos].encode())
        case UnicodeDecodeError():
            return error.start
        case _:
            return 0
