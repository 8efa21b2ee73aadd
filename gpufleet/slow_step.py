"""Progress of a step whose duration is not known: a line on standard error if it takes more than two seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from gpufleet.consoles import progress_console

FIRST_SECONDS, APART_SECONDS = 2.0, 5.0
"""Seconds before the first line, and between two lines."""


@contextmanager
def slow_step(text: str, first: float = FIRST_SECONDS, apart: float = APART_SECONDS) -> Iterator[None]:
    """Print a text with the elapsed seconds while the block runs: after `first` seconds, and then every `apart` seconds."""
    ended = threading.Event()
    began = time.monotonic()

    def report() -> None:
        console = progress_console()
        pause = first
        while not ended.wait(pause):
            console.print(f"{text}: {time.monotonic() - began:.0f} s", markup=False, soft_wrap=True)
            pause = apart

    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()
