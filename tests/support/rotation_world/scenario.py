"""Scenario of one history: a few small integers, from which a fleet, a policy and an adversary follow."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, time, timedelta
from random import Random

from components.spec.tenancy import Replacement
from lifecycle.rotation.calendar import Calendar, Freeze, WeeklyWindow
from lifecycle.rotation.model import Load
from lifecycle.rotation.policy import Growth, Policy

STARTED = datetime(2026, 3, 27, 9, tzinfo=UTC).timestamp()
"""Begin of each run, two days before the change to summer time in Europe."""
HOUR, DAY = 3_600.0, 86_400.0
CALM_AFTER = 12 * HOUR
"""Time from the start of a run after which the adversary does nothing more."""
GIVE_UP_AFTER = 12 * DAY
"""Time that is enough for each unit to start after the calm begins, one after the other, with the smallest rates and windows."""


def _size(low: int, high: int) -> int:
    """Return a field of a scenario with its smallest and largest value; the smallest makes the history simpler."""
    value: int = field(default=low, metadata={"range": (low, high)})
    return value


@dataclass(frozen=True)
class Scenario:
    """Numbers of one history. Shares are tenths; bounds with the value 0 do not exist where a comment says so."""

    seed: int = _size(0, 2**32 - 1)
    nodes: int = _size(2, 9)
    others: int = _size(0, 3)
    sets: int = _size(1, 4)
    pools: int = _size(1, 2)
    teams: int = _size(0, 2)
    gangs: int = _size(0, 4)
    services: int = _size(0, 4)
    removed: int = _size(0, 3)
    chaos: int = _size(0, 12)
    outages: int = _size(0, 3)
    crashes: int = _size(0, 4)
    faults: int = _size(0, 5)
    lost: int = _size(0, 3)
    races: int = _size(0, 3)
    slow: int = _size(0, 4)
    machines: int = _size(1, 12)
    per_scale_set: int = _size(1, 2)
    scale_sets_at_once: int = _size(0, 3)
    pool_bound: int = _size(0, 7)  # 0: no bound
    team_bound: int = _size(0, 6)  # 0: no bound
    per_minute: int = _size(1, 4)
    per_day: int = _size(0, 5)  # 0: no bound
    canaries: int = _size(0, 2)
    growth: int = _size(1, 8)
    calendar: int = _size(0, 3)
    replace: int = _size(0, 1)
    slow_calls: int = _size(0, 1)

    @classmethod
    def drawn(cls, number: int) -> Scenario:
        """Return the scenario of a number, always the same."""
        random = Random(number)  # noqa: S311
        return cls(**{name: random.randint(*bounds) for name, bounds in RANGES.items()})

    def policy(self) -> Policy:
        """Return the policy of the run."""
        return Policy(
            machines=self.machines,
            per_scale_set=self.per_scale_set,
            scale_sets_at_once=self.scale_sets_at_once,
            deadlines={Load.LOW: 0.0, Load.NORMAL: 600.0, Load.HIGH: 1_800.0},
            pools={"p0": self.pool_bound} if self.pool_bound else {},
            teams={"t0": self.team_bound} if self.team_bound else {},
            starts_per_minute=self.per_minute,
            starts_per_day=self.per_day or 1_000_000,
            calls_per_minute=1 if self.slow_calls else 120,
            calendar=CALENDARS[self.calendar],
            idle_only_until=STARTED + 2 * HOUR if self.seed % 5 == 0 else 0.0,
            canaries=self.canaries,
            growth=Growth(self.growth, 2),
            failed_share=(0.2, 0.5, 1.0)[self.seed % 3],
            failed_of=5,
            give_up_after=GIVE_UP_AFTER,
            method=Replacement.REPLACE if self.replace else Replacement.REIMAGE,
        )


RANGES: dict[str, tuple[int, int]] = {one.name: one.metadata["range"] for one in fields(Scenario)}
"""Smallest and largest value of each field of a scenario."""
_FIRST = datetime.fromtimestamp(STARTED, UTC).date()
_EVERY_DAY = frozenset(range(7))
CALENDARS = (
    Calendar(),
    Calendar((WeeklyWindow(_EVERY_DAY, time(22, 30), 5),), (), "Europe/Berlin"),
    Calendar((WeeklyWindow(_EVERY_DAY, time(10), 2), WeeklyWindow(frozenset({5}), time(1), 24)), (), "Asia/Kolkata"),
    Calendar((), (Freeze(_FIRST, _FIRST + timedelta(days=1), "release"),), "America/Los_Angeles"),
)
"""Calendars of scenarios."""
