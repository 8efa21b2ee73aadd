"""Clock of the embedded Azure: real, scaled or manual."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from components.errors import GpufleetError

SCALED = re.compile(r"scaled:(\d+(?:\.\d+)?)")


class InvalidClockError(GpufleetError, ValueError):
    """An invalid clock."""


@dataclass
class TimeSource:
    """factor is seconds of Azure's time per second here: 1 is real, more is faster, 0 is moved by hand.

    began is Azure's moment at the start.
    """

    factor: float
    began: float
    _start: float = field(default_factory=time.monotonic)
    _moved: float = 0.0

    def now(self) -> float:
        """Return Azure's time, in seconds since 1970."""
        return self.began + self._moved + (time.monotonic() - self._start) * self.factor

    def move(self, seconds: float) -> None:
        """Advance a manual clock, in seconds of Azure's time, at least 0."""
        self._moved += max(0.0, seconds)

    def here(self, seconds: float) -> float:
        """Return the real seconds for a number of seconds of Azure's time; with a manual clock, a moment."""
        return seconds / self.factor if self.factor else min(seconds, 0.05)


def read_clock(text: str) -> float:
    """Return the factor of real, scaled:FACTOR or manual; raise InvalidClockError for another text."""
    if text in ("real", "manual"):
        return 1.0 if text == "real" else 0.0
    scaled = SCALED.fullmatch(text)
    if not scaled or not 0 < float(scaled[1]) <= 1_000_000:
        raise InvalidClockError(f"{text!r} is no clock; give real, manual, or scaled:FACTOR with a factor above 0, up to 1000000")
    return float(scaled[1])
