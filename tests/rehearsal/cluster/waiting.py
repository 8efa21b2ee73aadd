"""Waits in tests for what other processes do, generously: the machine may be loaded."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_SECONDS = 300.0


def until(true: Callable[[], bool], what: str) -> None:
    """Wait until something is so; AssertionError with it in words when that does not come."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not true():
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.01)
