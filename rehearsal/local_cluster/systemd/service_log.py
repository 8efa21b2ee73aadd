"""Decides how much of what a service writes is kept, and which of it is shown to a person."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MOST_BYTES = 4 * 2**20
"""Size above which a log is moved to its earlier part, which is then lost; looked at again and again while its service runs."""
LINES_SHOWN, LONGEST_LINE = 5, 300
READ_AT_END = 16 * 2**10


def earlier_part(log: Path) -> Path:
    """Where the log's earlier part lies."""
    return log.with_name(f"{log.name}.1")


def limit_size(log: Path) -> None:
    """Move a log that is too long to its earlier part. Writers append, so they go on at its beginning; lines of that moment are lost."""
    if log.is_file() and log.stat().st_size > MOST_BYTES:
        shutil.copyfile(log, earlier_part(log))
        os.truncate(log, 0)


def last_lines(log: Path) -> list[str]:
    """The log's last lines, of its earlier part where it has just begun, each no longer than a person reads."""
    for file in (log, earlier_part(log)):
        if file.is_file() and (size := file.stat().st_size):
            with file.open("rb") as content:
                content.seek(max(0, size - READ_AT_END))
                lines = content.read().decode(errors="replace").splitlines()
            return [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…" for line in lines[-LINES_SHOWN:]]
    return []
