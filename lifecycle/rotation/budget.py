"""Budgets of a rotation: counts of unavailable machines per compartment, and rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lifecycle.rotation.policy import Policy

CLUSTER = "cluster"
"""Compartment of the whole cluster."""
DOMAINS = "scale sets at once"
"""Compartment of the scale sets that a gang may take below their own budget."""


@dataclass(frozen=True, slots=True)
class Place:
    """Compartments of one machine; team is "" without an allocation."""

    scale_set: str
    pool: str
    team: str


@dataclass(frozen=True, slots=True)
class Shortage:
    """A budget that a start would exceed: the compartment's key, machines (or scale sets) it uses, its bound, and the number requested."""

    key: str
    what: str
    used: int
    bound: int
    requested: int

    def __str__(self) -> str:
        unit = "scale sets down" if self.key == DOMAINS else "machines unavailable"
        return f"{self.what} has {self.used} of {self.bound} {unit}, and {self.requested} more are needed"


@dataclass
class Ledger:
    """Unavailable machines of a cluster, each counted once, with their compartments."""

    policy: Policy
    places: dict[str, Place] = field(default_factory=dict)
    unavailable: set[str] = field(default_factory=set)
    sets: Counter[str] = field(default_factory=Counter)
    pools: Counter[str] = field(default_factory=Counter)
    teams: Counter[str] = field(default_factory=Counter)
    down: int = 0
    """Scale sets with more than per_scale_set unavailable machines."""

    @property
    def total(self) -> int:
        """Unavailable machines of the cluster."""
        return len(self.unavailable)

    @property
    def free(self) -> int:
        """Machines that may still become unavailable; negative if faults exceed the budget."""
        return self.policy.machines - len(self.unavailable)

    def record(self, name: str, place: Place, unavailable: bool) -> None:
        """Record a machine's compartments, and whether it is unavailable."""
        before = self.places.get(name)
        if before is not None and before != place and name in self.unavailable:
            self._count(name, before, -1)
        self.places[name] = place
        if unavailable != (name in self.unavailable):
            self._count(name, place, 1 if unavailable else -1)

    def _count(self, name: str, place: Place, change: int) -> None:
        if change > 0:
            self.unavailable.add(name)
        else:
            self.unavailable.discard(name)
        bound = self.policy.per_scale_set
        before = self.sets[place.scale_set]
        self.sets[place.scale_set] = before + change
        self.down += (before + change > bound) - (before > bound)
        self.pools[place.pool] += change
        self.teams[place.team] += change

    def shortages(self, names: Iterable[str], *, gang: bool) -> Iterator[Shortage]:
        """Yield each budget that making these machines unavailable would exceed; machines that already are unavailable cost nothing.

        A unit of a gang may exceed the budget of its scale set, which then counts as down.
        """
        policy = self.policy
        places = [self.places[name] for name in names if name not in self.unavailable]
        if not places:
            return
        if len(self.unavailable) + len(places) > policy.machines:
            yield Shortage(CLUSTER, CLUSTER, len(self.unavailable), policy.machines, len(places))
        yield from _exceeded("pool", Counter(place.pool for place in places), self.pools, policy.pools)
        yield from _exceeded("team", Counter(place.team for place in places), self.teams, policy.teams)
        sets = Counter(place.scale_set for place in places)
        if not gang:
            bounds = dict.fromkeys(sets, policy.per_scale_set)
            yield from _exceeded("scale set", sets, self.sets, bounds)
            return
        taken = sum(1 for name, count in sets.items() if self.sets[name] <= policy.per_scale_set < self.sets[name] + count)
        if taken and self.down + taken > policy.scale_sets_at_once:
            yield Shortage(DOMAINS, CLUSTER, self.down, policy.scale_sets_at_once, taken)


def _exceeded(kind: str, added: Counter[str], used: Counter[str], bounds: Mapping[str, int]) -> Iterator[Shortage]:
    for name, count in added.items():
        bound = bounds.get(name)
        if bound is not None and used[name] + count > bound:
            yield Shortage(f"{kind} {name}", f"{kind} {name}", used[name], bound, count)


@dataclass
class Rate:
    """Tokens of a rate per minute, up to a minute's worth.

    A request of more than a minute's worth is allowed when the tokens are full, and leaves a debt, so that the rate holds on average.
    """

    per_minute: float
    capacity: float
    tokens: float = 0.0
    at: float = 0.0

    @classmethod
    def full(cls, per_minute: float, capacity: float, now: float) -> Rate:
        """Return a rate with all its tokens."""
        return cls(per_minute, capacity, capacity, now)

    def wait(self, count: int, now: float) -> float:
        """Return the seconds until a request of count tokens is allowed; 0 if it is now."""
        self._refill(now)
        short = min(float(count), self.capacity) - self.tokens
        return max(0.0, short * 60.0 / self.per_minute)

    def take(self, count: int, now: float) -> None:
        """Take tokens; the rest may become negative."""
        self._refill(now)
        self.tokens -= count

    def _refill(self, now: float) -> None:
        if now > self.at:
            self.tokens = min(self.capacity, self.tokens + (now - self.at) * self.per_minute / 60.0)
            self.at = now
