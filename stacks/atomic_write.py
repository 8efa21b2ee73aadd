"""Atomic writing of a text file."""

from __future__ import annotations

import os
import pathlib


def write_atomically(path: pathlib.Path, text: str, mode: int = 0o666) -> pathlib.Path:
    """Write a file so that a reader sees the old text or the new one, and return its path; raise OSError, which changes nothing.

    mode is the file's mode less the umask. The text is first in `.NAME.PID` beside the file.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
        return part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
