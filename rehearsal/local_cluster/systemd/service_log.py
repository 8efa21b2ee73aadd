"""Log of a service: limit of its size, and its last lines."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MAX_BYTES = 4 * 2**20
"""Size above which a log replaces its earlier part; checked repeatedly while the service runs."""
LINES_SHOWN, MAX_LINE_LENGTH = 5, 300
READ_AT_END = 16 * 2**10


def earlier_part(log: Path) -> Path:
    """Return the path of the log's earlier part."""
    return log.with_name(f"{log.name}.1")


def limit_size(log: Path) -> None:
    """Move a log that is too long to its earlier part. Writers append, so they continue; lines written meanwhile are lost."""
    if log.is_file() and log.stat().st_size > MAX_BYTES:
        shutil.copyfile(log, earlier_part(log))
        os.truncate(log, 0)


def last_lines(log: Path) -> list[str]:
    """Return the log's last lines, or its earlier part's if it is empty; long lines are cut."""
    for file in (log, earlier_part(log)):
        if file.is_file() and (size := file.stat().st_size):
            with file.open("rb") as content:
                content.seek(max(0, size - READ_AT_END))
                lines = content.read().decode(errors="replace").splitlines()
            return [line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}…" for line in lines[-LINES_SHOWN:]]
    return []
