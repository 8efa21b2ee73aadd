"""Holds a file's lock, so that two programs do not change one thing at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from cni.node.errors import NodeNetworkError


@contextlib.contextmanager
def locked(path: Path, seconds: float, remedy: str = "wait for it to end, and try again") -> Iterator[None]:
    """Holds flock(2) on a file that is made where it is missing; Refused where another holds it for longer than so many seconds.

    The kernel frees it when its holder ends, however that ends; programs that the holder runs do not inherit it.
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
