"""Progress of a build: the current program, its number, elapsed time, and an estimate of the remaining time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from rehearsal.binaries.pins import Program

PLAIN_SECONDS = 30.0
"""Seconds between two lines about the same program if there is no terminal."""


class Phase(Enum):
    STARTS = "starts"
    RUNS = "runs"
    ENDS = "ends"
    WAITS = "waits"


@dataclass(frozen=True)
class ProgressEvent:
    """One progress report: `seconds` since the program's start, `remaining` seconds until all programs exist (None: unknown)."""

    phase: Phase
    what: str
    seconds: float = 0.0
    number: int = 0
    of: int = 0
    remaining: float | None = None

    def __str__(self) -> str:
        if self.phase is Phase.WAITS:
            return f"binaries: waiting for another gpufleet that builds them ({self.what or 'begins'}), {_time(self.seconds)}"
        place = f" ({self.number} of {self.of})" if self.of else ""
        if self.phase is Phase.ENDS:
            return f"binaries: {self.what}{place} is ready after {_time(self.seconds)}{self._rest()}"
        verb = "making" if self.of else "getting"
        since = f", {_time(self.seconds)}" if self.phase is Phase.RUNS else ""
        return f"binaries: {verb} {self.what}{place}{since}{self._rest()}"

    def _rest(self) -> str:
        if self.remaining is None or (self.phase is Phase.ENDS and self.number == self.of):
            return ""
        return f"; about {_time(self.remaining)} to go, by estimate" if self.remaining >= 1 else "; nearly done, by estimate"


ReportProgress = Callable[[ProgressEvent], None]


class Estimate:
    """Estimate of the remaining seconds: the expected durations, scaled by the real durations so far."""

    def __init__(self, programs: Sequence[Program]) -> None:
        self._expected = {program.name: program.cold_seconds for program in programs}
        self._took: dict[str, float] = {}

    def finished(self, name: str, seconds: float) -> None:
        self._took[name] = seconds

    def remaining(self, present: str, elapsed: float) -> float:
        expected = sum(self._expected[name] for name in self._took)
        scale = sum(self._took.values()) / expected if expected else 1.0
        of_present = 0.0 if present in self._took else self._expected[present]
        if of_present:
            scale = max(scale, elapsed / of_present)
        rest = sum(seconds for name, seconds in self._expected.items() if name not in self._took and name != present)
        return max(0.0, scale * of_present - elapsed) + scale * rest


class ProgramProgress:
    """One program that is being built."""

    def __init__(self, name: str, number: int, of: int, estimate: Estimate, tell: ReportProgress) -> None:
        self._name, self._number, self._of = name, number, of
        self._estimate, self._tell = estimate, tell
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def tick(self) -> None:
        self.tell(Phase.RUNS)

    def tell(self, phase: Phase) -> None:
        remaining = self._estimate.remaining(self._name, self.seconds)
        self._tell(ProgressEvent(phase, self._name, self.seconds, self._number, self._of, remaining))


def line_reporter(say: Callable[[str], None]) -> ReportProgress:
    """Return a reporter that prints lines: at each start and end, and every half minute between."""
    reported_at = time.monotonic()
    waits = False

    def tell(moment: ProgressEvent) -> None:
        nonlocal reported_at, waits
        first = moment.phase in (Phase.STARTS, Phase.ENDS) or (moment.phase is Phase.WAITS and not waits)
        waits = moment.phase is Phase.WAITS
        if first or time.monotonic() - reported_at >= PLAIN_SECONDS:
            reported_at = time.monotonic()
            say(str(moment))

    return tell


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
