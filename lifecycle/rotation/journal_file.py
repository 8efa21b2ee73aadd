"""Journal in a file: one writer by an advisory lock, every append synced to the disk; readers need no lock."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from lifecycle.rotation.journal_errors import (
    JournalExistsError,
    JournalHeldError,
    JournalLeaseLostError,
    JournalMissingError,
    JournalReadError,
    JournalWriteError,
)


class JournalFile:
    """The journal file of a run, locked for this process until it is closed or the process ends.

    The lock is flock(2), https://man7.org/linux/man-pages/man2/flock.2.html. Programs that this process starts do not inherit it,
    because Python opens files with O_CLOEXEC; a plain fork() would.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        self._broken = ""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._length = os.fstat(descriptor).st_size
            self.check_held()
        except BlockingIOError:
            os.close(descriptor)
            raise JournalHeldError(str(path), "it holds the file's lock") from None
        except BaseException:
            os.close(descriptor)
            raise

    @classmethod
    def create(cls, path: Path) -> JournalFile:
        """Create the file and its folder; JournalExistsError if the file exists."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, 0o640)
        except FileExistsError:
            raise JournalExistsError(str(path)) from None
        except OSError as error:
            raise JournalWriteError(str(path), _reason(error), "choose a folder that this user may write") from None
        file = cls(path, descriptor)
        _sync_folder(path.parent)
        return file

    @classmethod
    def open(cls, path: Path) -> JournalFile:
        """Open an existing file for appending; JournalMissingError without one, JournalHeldError while another process writes it."""
        try:
            return cls(path, os.open(path, os.O_RDWR | os.O_APPEND))
        except FileNotFoundError:
            raise JournalMissingError(str(path)) from None
        except OSError as error:
            raise JournalWriteError(str(path), _reason(error), "allow this user to write the file") from None

    @property
    def name(self) -> str:
        """Return the path."""
        return str(self._path)

    def place(self, offset: int) -> str:
        """Return the path and the offset."""
        return f"{self._path}, byte {offset}"

    def read(self) -> bytes:
        """Return all bytes."""
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return file.read()

    def append(self, data: bytes) -> None:
        """Append bytes and sync the file. After a failure every further append fails: the state of the disk is then unknown."""
        if self._broken:
            raise JournalWriteError(self.name, self._broken, "continue the run in a new process once the disk works")
        self.check_held()
        try:
            written = 0
            while written < len(data):
                written += os.write(self._descriptor, data[written:])
            # A file grows, so that its size must be on the disk too: fdatasync writes what is needed to read the data back.
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._broken = _reason(error)
            raise JournalWriteError(self.name, self._broken, "make room or repair the disk, then continue the run") from None
        self._length += len(data)

    def discard_after(self, length: int) -> None:
        """Cut the file to its first `length` bytes, and sync it."""
        self.check_held()
        try:
            os.ftruncate(self._descriptor, length)
            os.fsync(self._descriptor)
        except OSError as error:
            raise JournalWriteError(self.name, _reason(error), "repair the disk, then continue the run") from None
        self._length = length

    def check_held(self) -> None:
        """Raise JournalLeaseLostError if the file was removed, replaced or changed by another program."""
        own = os.fstat(self._descriptor)
        try:
            there = self._path.stat()
        except OSError as error:
            raise JournalLeaseLostError(self.name, _reason(error)) from None
        if (own.st_dev, own.st_ino) != (there.st_dev, there.st_ino):
            raise JournalLeaseLostError(self.name, "the file was replaced")
        if own.st_size != self._length and not self._broken:
            raise JournalLeaseLostError(self.name, f"another program changed its size from {self._length} to {own.st_size} bytes")

    def close(self) -> None:
        """Close the file, which releases its lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class JournalCopy:
    """The content of a journal file at one moment, read without its lock, so that a run may continue meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._content = path.read_bytes()
        except FileNotFoundError:
            raise JournalMissingError(str(path)) from None
        except OSError as error:
            raise JournalReadError(str(path), _reason(error)) from None

    @property
    def name(self) -> str:
        """Return the path."""
        return str(self._path)

    def place(self, offset: int) -> str:
        """Return the path and the offset."""
        return f"{self._path}, byte {offset}"

    def read(self) -> bytes:
        """Return all bytes."""
        return self._content


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _sync_folder(folder: Path) -> None:
    """Write the entry of a new file to the disk: https://man7.org/linux/man-pages/man2/fsync.2.html."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
