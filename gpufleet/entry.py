"""The script's way in: whatever ends a command, also while Python is still importing it, is told in one line."""

from __future__ import annotations

import os
import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line on output that takes what it is given, whatever the terminal, pipe or locale."""
    try:
        _open_outputs()
        from gpufleet.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


def _open_outputs() -> None:
    """A stream that the caller has closed leads nowhere; what a narrow encoding cannot say is said with question marks."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 it lasts as long as the process
        else:
            stream.reconfigure(errors="replace")
