"""End of a command by Ctrl-C or SIGTERM: one line on standard error, and exit status 130 or 143."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

EXIT_INTERRUPTED, EXIT_TERMINATED = 130, 143
"""128 + SIGINT and 128 + SIGTERM, as a shell reports them."""

_received: set[int] = set()
"""Signals that this process handled as an interrupt, besides SIGINT."""


def handle_termination() -> None:
    """Handle SIGTERM as Ctrl-C, unless the caller of the command made it ignore SIGTERM.

    A shell script makes a background command ignore SIGINT. The signal is then blocked instead, because asyncio ends tasks in order only
    where SIGINT has Python's own handler.
    """
    if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        return
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Call the present handler of SIGINT: that of Python, of an event loop, or of a running Pulumi command."""
    _received.add(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def interrupted_status() -> int:
    """Return the exit status of an interrupted command: 143 if it received SIGTERM, otherwise 130."""
    return EXIT_TERMINATED if signal.SIGTERM in _received else EXIT_INTERRUPTED


def exit_interrupted(left: str = "") -> NoReturn:
    """Print that the command was interrupted or terminated, what is left and how to continue; exit with the signal's status."""
    status = interrupted_status()
    print(f"{'terminated' if status == EXIT_TERMINATED else 'interrupted'}{left}", file=sys.stderr)
    sys.exit(status)
