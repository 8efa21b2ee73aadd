"""Budgets of a rotation: counts of unavailable machines per compartment, and rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lifecycle.rotation.policy import Policy

CLUSTER = "cluster"
"""Compartment of the whole cluster."""
ROUNDING = 1e-6
"""Tokens of a rate that are lost to rounding."""
DOMAINS = "scale sets at once"
"""Compartment of the scale sets that a gang may take below their own budget."""


@dataclass(frozen=True, slots=True)
class Place:
    """Compartments of one machine; team is "" without an allocation. keys: those of the budgets that a start on it uses."""

    scale_set: str
    pool: str
    team: str
    keys: frozenset[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        keys = (CLUSTER, f"scale set {self.scale_set}", f"pool {self.pool}", f"team {self.team}", f"growth of pool {self.pool}")
        object.__setattr__(self, "keys", frozenset(keys))


@dataclass(frozen=True, slots=True)
class Need:
    """Nodes of a start, their numbers per compartment, and the keys of these compartments without the scale sets."""

    nodes: tuple[str, ...]
    sets: Mapping[str, int]
    pools: Mapping[str, int]
    teams: Mapping[str, int]
    keys: frozenset[str]

    @classmethod
    def of(cls, places: Mapping[str, Place], names: Iterable[str]) -> Need:
        """Count nodes, whose places are known."""
        nodes = tuple(names)
        if len(nodes) == 1:
            place = places[nodes[0]]
            return cls(nodes, {place.scale_set: 1}, {place.pool: 1}, {place.team: 1}, place.keys)
        found = Counter(places[name] for name in nodes)
        sets, pools, teams = Counter[str](), Counter[str](), Counter[str]()
        for place, count in found.items():
            sets[place.scale_set] += count
            pools[place.pool] += count
            teams[place.team] += count
        keys = frozenset().union(*(place.keys for place in found)) - {f"scale set {name}" for name in sets}
        return cls(nodes, sets, pools, teams, keys)


@dataclass(frozen=True, slots=True)
class Shortage:
    """A budget that a start would exceed: the compartment's key, machines (or scale sets) it uses, its bound, and the number requested."""

    key: str
    what: str
    used: int
    bound: int
    requested: int

    def needs(self) -> str:
        """Return the text of a request that is larger than the bound."""
        return f"{self.requested}, more than the budget of {self.bound} of {self.what}"

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
        counted = name in self.unavailable
        before = self.places.get(name)
        if before != place:
            if counted and before is not None:
                self._count(name, before, -1)
                counted = False
            self.places[name] = place
        if unavailable != counted:
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

    def is_down(self, scale_set: str) -> bool:
        """Return whether a scale set has more than per_scale_set unavailable machines."""
        return self.sets[scale_set] > self.policy.per_scale_set

    def shortages(self, need: Need, *, gang: bool) -> list[Shortage]:
        """Return each budget that a start would exceed; machines that already are unavailable cost nothing.

        A gang may exceed the budget of its scale set, which then counts as down.
        """
        if not self.unavailable.isdisjoint(need.nodes):
            need = Need.of(self.places, (name for name in need.nodes if name not in self.unavailable))
        if not need.nodes:
            return []
        policy, count, found = self.policy, len(need.nodes), []
        if len(self.unavailable) + count > policy.machines:
            found.append(Shortage(CLUSTER, CLUSTER, len(self.unavailable), policy.machines, count))
        if policy.pools:
            found += _exceeded("pool", need.pools, self.pools, policy.pools)
        if policy.teams:
            found += _exceeded("team", need.teams, self.teams, policy.teams)
        bound = policy.per_scale_set
        if not gang:
            found += _exceeded("scale set", need.sets, self.sets, dict.fromkeys(need.sets, bound))
            return found
        taken = sum(1 for name, added in need.sets.items() if self.sets[name] <= bound < self.sets[name] + added)
        if taken and self.down + taken > policy.scale_sets_at_once:
            found.append(Shortage(DOMAINS, CLUSTER, self.down, policy.scale_sets_at_once, taken))
        return found


def _exceeded(kind: str, added: Mapping[str, int], used: Counter[str], bounds: Mapping[str, int]) -> list[Shortage]:
    found = []
    for name, count in added.items():
        bound = bounds.get(name)
        if bound is not None and used[name] + count > bound:
            found.append(Shortage(f"{kind} {name}", f"{kind} {name}", used[name], bound, count))
    return found


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
        # A rest of rounding must not make a caller wait for no time.
        return short * 60.0 / self.per_minute if short > ROUNDING else 0.0

    def take(self, count: int, now: float) -> None:
        """Take tokens; the rest may become negative."""
        self._refill(now)
        self.tokens -= count

    def _refill(self, now: float) -> None:
        if now > self.at:
            self.tokens = min(self.capacity, self.tokens + (now - self.at) * self.per_minute / 60.0)
            self.at = now
        elif now < self.at:
            # The clock was set back.
            self.at = now
