"""Entry point of the script: an interrupt is reported in one line, also while Python still imports the command."""

from __future__ import annotations

import sys

from gpufleet.output_streams import open_outputs

EXIT_INTERRUPTED = 130


def main() -> None:
    """Run the command line; output works on every terminal, pipe and locale."""
    try:
        open_outputs()
        from gpufleet.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)
