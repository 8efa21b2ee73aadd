"""Waits in tests for what other processes do, generously: the machine may be loaded."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE_SECONDS = 300.0
LOOK_SECONDS = 0.05


def until(true: Callable[[], T], what: str, seconds: float = DEADLINE_SECONDS) -> T:
    """Return the first truthy result of a function; raise AssertionError with the given text after the deadline in seconds."""
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline, f"still not after {seconds:g} s: {what}"
        time.sleep(LOOK_SECONDS)
    return found
