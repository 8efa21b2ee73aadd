"""Entry point of the script: an interrupt is reported in one line, also while Python still imports the command."""

from __future__ import annotations

import os
import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line; output works on every terminal, pipe and locale."""
    try:
        _open_outputs()
        from gpufleet.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


def _open_outputs() -> None:
    """Replace a stream that the caller has closed by /dev/null; write `?` for a character that the encoding does not have."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 it lasts as long as the process
        else:
            stream.reconfigure(errors="replace")
