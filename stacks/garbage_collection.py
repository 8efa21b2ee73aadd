"""Decides how often Python's cycle collector looks at what a Pulumi program makes: hardly ever, since nearly all of it lives to the end."""

from __future__ import annotations

import gc

THRESHOLDS = (50_000, 1_000, 1_000)
"""New objects before the collector looks at them, and passes before it looks again at those that stayed: never in a run.
The defaults (700, 10, 10) take half of a program's CPU, more than linearly in resources; peak memory stays within a few MB of theirs."""


def collect_rarely() -> None:
    """Set the thresholds for the rest of this process."""
    gc.set_threshold(*THRESHOLDS)
