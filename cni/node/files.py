"""Atomic file writes and file locks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from cni.node.errors import NodeNetworkError


def write_if_changed(path: Path, text: str, mode: int = 0o644) -> bool:
    """Write text to a file where its content differs; return whether it did.

    A crash at any point leaves the old or the new content, on the disk too.
    """
    try:
        if path.read_text() == text:
            return False
    except (OSError, ValueError):
        # Missing or unreadable: write it.
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    # The container runtime reads only .conf, .conflist and .json files, so it ignores this temporary file.
    temporary = path.with_name(f".{path.name}.next")
    with temporary.open("w") as stream:
        stream.write(text)
        stream.flush()
        os.fchmod(stream.fileno(), mode)
        os.fsync(stream.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return True


def remove_file(path: Path) -> bool:
    """Remove a file; return whether it existed."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def locked(path: Path, seconds: float, remedy: str = "wait for it to end, and try again") -> Iterator[None]:
    """Hold flock(2) on a file, which is created if missing.

    NodeNetworkError where another process holds the lock for longer than `seconds`. The kernel releases the lock when its holder ends.
    Child processes do not inherit it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        end = time.monotonic() + seconds
        while not _taken(handle):
            if time.monotonic() >= end:
                raise NodeNetworkError(str(path), f"another process holds this lock for {seconds:.0f} s", "one at a time", remedy)
            time.sleep(0.02)
        yield
    finally:
        os.close(handle)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
