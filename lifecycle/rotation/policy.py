"""Policy of a cluster's rotation: budgets, rates, calendar and deadlines, as numbers of machines and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from components.spec.tenancy import Replacement
from lifecycle.rotation.calendar import Calendar
from lifecycle.rotation.model import Load


@dataclass(frozen=True)
class Timeouts:
    """Seconds after which a state counts as failed.

    eviction: from the first eviction until the last pod is gone. back_off: before the second attempt; doubled for each further one.
    resend: until an action without visible effect is repeated. fresh: maximum age of an observation on which nodes start.
    """

    cordon: float = 300.0
    eviction: float = 3_600.0
    replacing: float = 2_700.0
    joining: float = 1_800.0
    preflight: float = 1_800.0
    back_off: float = 60.0
    resend: float = 120.0
    fresh: float = 120.0


@dataclass(frozen=True)
class Growth:
    """Machines of a pool in rotation: first after its canaries, and factor - 1 more for each good verdict."""

    first: int = 16
    factor: int = 4


@dataclass(frozen=True)
class Policy:
    """Bounds of one run, all enforced together; every unavailable machine counts, for any reason.

    machines: of the cluster. per_scale_set: of a scale set, for starts without a gang. scale_sets_at_once: scale sets with more than
    per_scale_set unavailable. pools, teams: of each pool and team with a bound of its own. starts_per_minute, starts_per_day: machines.
    calls_per_minute: requests to Azure, this cluster's share. deadlines: seconds from the checkpoint signal to eviction, by load.
    idle_only_until: before this time only nodes without jobs of normal or high priority start. canaries: machines of each pool.
    failed_share of the last failed_of verdicts stops the run. give_up_after: seconds until pending nodes are blocked.
    """

    machines: int
    per_scale_set: int
    scale_sets_at_once: int
    deadlines: Mapping[Load, float]
    pools: Mapping[str, int] = field(default_factory=dict)
    teams: Mapping[str, int] = field(default_factory=dict)
    starts_per_minute: int = 120
    starts_per_day: int = 1_000_000
    calls_per_minute: int = 120
    calendar: Calendar = field(default_factory=Calendar)
    idle_only_until: float = 0.0
    canaries: int = 1
    growth: Growth = field(default_factory=Growth)
    failed_share: float = 0.2
    failed_of: int = 50
    attempts: int = 3
    give_up_after: float = 14 * 86_400.0
    method: Replacement = Replacement.REIMAGE
    timeouts: Timeouts = field(default_factory=Timeouts)
