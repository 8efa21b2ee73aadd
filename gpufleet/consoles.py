"""Consoles for results on standard output and for progress on standard error, with a usable width on every terminal and pipe."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from rich.console import Console

LOG_WIDTH = 160
"""Columns of a result that is not written to a terminal."""
UNKNOWN_WIDTH = 80
"""Columns of a terminal that reports none."""


def result_console(log_width: int = LOG_WIDTH) -> Console:
    """Return the console for results, on standard output; a pipe or a file gets `log_width` columns."""
    return Console(width=_fixed_width(sys.stdout, log_width), highlight=False)


def progress_console() -> Console:
    """Return the console for progress, on standard error, so that standard output contains only the result."""
    return Console(stderr=True, width=_fixed_width(sys.stderr, LOG_WIDTH), highlight=False)


def is_live(console: Console) -> bool:
    """Return whether a console can redraw a line: a terminal that moves its cursor."""
    return console.is_terminal and not console.is_dumb_terminal


def _fixed_width(stream: TextIO, log_width: int) -> int | None:
    """Return the number of columns; None for a terminal whose width rich reads, also after a change of its size."""
    if not stream.isatty():
        return log_width
    columns = os.environ.get("COLUMNS", "")
    if not columns.isdigit() or int(columns) > 0:
        return None
    # rich takes COLUMNS=0 as a width.
    return os.get_terminal_size(stream.fileno()).columns or UNKNOWN_WIDTH
