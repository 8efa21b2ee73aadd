"""Entry point of the script: an interrupt is reported in one line, also while Python still imports the command."""

from __future__ import annotations

from gpufleet.interruption import exit_interrupted, handle_termination
from gpufleet.output_streams import open_outputs


def main() -> None:
    """Run the command line; output works on every terminal, pipe and locale."""
    try:
        handle_termination()
        open_outputs()
        from gpufleet.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        exit_interrupted()
