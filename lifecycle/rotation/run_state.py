"""State of one run: fold of its journal, the latest observations of its cluster, and the timers of its nodes."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

from components.spec.tenancy import Replacement
from lifecycle.rotation.budget import Ledger, Place, Rate
from lifecycle.rotation.model import (
    ENDED,
    IN_ROTATION,
    NEXT_STATES,
    ROTATION,
    ActionKind,
    Freshness,
    Gang,
    NodeObservation,
    NodeState,
    RunNode,
    Transition,
    Wait,
)
from lifecycle.rotation.pending import PendingNodes
from lifecycle.rotation.policy import Policy

STARTING = frozenset({NodeState.CORDONED, NodeState.DRAINING})
"""States in which a start can still reach the node's gangs."""
TESTED = frozenset({NodeState.REPLACING, NodeState.JOINING, NodeState.PREFLIGHT})
"""States whose end is a verdict on the target."""


class InvalidTransitionError(ValueError):
    """A transition of a node that is not in the run, or from a state that it cannot follow."""


@dataclass(slots=True)
class NodeRecord:
    """State of one node in the run, and since when.

    unit: nodes that started together with it, and gangs: those that the start interrupts. cordoned_at: reading of nodes that first showed
    its cordon, infinite before. replaced_from: time of the last request to replace its OS disk. sent_at: last action on it in this process.
    """

    node: RunNode
    state: NodeState = NodeState.PENDING
    since: float = 0.0
    until: float | None = None
    attempt: int = 1
    evicting: bool = False
    method: Replacement | None = None
    cause: str = ""
    unit: list[str] = field(default_factory=list)
    gangs: tuple[str, ...] = ()
    cordoned_at: float = float("inf")
    replaced_from: float = 0.0
    sent_at: float = float("-inf")


@dataclass(slots=True)
class PoolProgress:
    """Verdicts of a pool in this run, and its nodes in rotation."""

    good: int = 0
    failed: int = 0
    in_rotation: int = 0


@dataclass(slots=True)
class Batch:
    """Result of a step so far."""

    now: float
    transitions: list[Transition] = field(default_factory=list)
    actions: dict[tuple[ActionKind, str, str, float | None], list[str]] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    next_at: float = float("inf")

    def act(self, kind: ActionKind, names: Iterable[str], reason: str, scale_set: str = "", until: float | None = None) -> None:
        self.actions.setdefault((kind, reason, scale_set, until), []).extend(names)

    def wake(self, at: float) -> None:
        self.next_at = min(self.next_at, at)


class RunState:
    """State that the parts of the decision core share.

    dirty: nodes to be looked at in the next step. held: nodes that continue when observations are fresh again. try_starts: something has
    changed since nodes could not start.
    """

    def __init__(self, nodes: Sequence[RunNode], policy: Policy, started: float) -> None:
        self.policy, self.started = policy, started
        self.records = {node.name: NodeRecord(node, since=started) for node in nodes}
        self.pools = {node.pool: PoolProgress() for node in nodes}
        self.open = len(self.records)
        """Nodes that have not ended."""
        self.in_rotation = 0
        self.interrupted: set[str] = set()
        """Gangs that this run has interrupted."""
        self.stopped = ""
        self.observed: dict[str, NodeObservation] = {}
        self.gangs: dict[str, Gang] = {}
        self.ledger = Ledger(policy)
        self.pending = PendingNodes(self.observed, self.gangs, self.ledger.places)
        self.freshness: Freshness | None = None
        self.verdicts: deque[bool] = deque(maxlen=policy.failed_of)
        self.dirty: dict[str, None] = {}
        self.held: dict[str, None] = {}
        self._units: dict[tuple[float, tuple[str, ...]], list[str]] = {}
        self.timers: list[tuple[float, str]] = []
        self.starts = Rate.full(policy.starts_per_minute, policy.starts_per_minute, started)
        self.starting: Counter[str] = Counter()
        """Nodes that are being cordoned or drained, by gang."""
        self.give_up_from = started
        self._day: date | None = None
        self._starts_of_day = 0
        self.try_starts = True
        self._replaying = False
        """Timers and budgets are computed after all transitions of a journal."""

    def replay(self, transitions: Iterable[Transition]) -> float:
        """Apply the transitions of a journal, oldest first; return the time of the last one. Raises InvalidTransitionError."""
        last = self.started
        self._replaying = True
        for transition in transitions:
            record = self.records.get(transition.node)
            if record is None:
                raise InvalidTransitionError(f"{transition.node} is not in the run")
            if transition.to not in NEXT_STATES[record.state]:
                raise InvalidTransitionError(f"{transition.node} cannot change from {record.state} to {transition.to}")
            self.apply(record, transition)
            last = transition.at
        self._replaying = False
        for name, record in self.records.items():
            self.dirty[name] = None
            self.count(name, record)
            if record.state in IN_ROTATION and record.until is not None:
                self.timer(record.until, name)
        return last

    def resume(self) -> None:
        """Start nodes again after a stop; verdicts before it no longer count."""
        self.stopped = ""
        self.verdicts.clear()
        for progress in self.pools.values():
            progress.failed = 0
        self.try_starts = True

    def observe(
        self,
        nodes: Iterable[NodeObservation] = (),
        gangs: Iterable[Gang] = (),
        ended_gangs: Iterable[str] = (),
        freshness: Freshness | None = None,
    ) -> None:
        """Report what changed, as Rotation.observe does."""
        for gang in gangs:
            known = self.gangs.get(gang.id)
            self.gangs[gang.id] = gang
            if known is None or known.nodes != gang.nodes:
                self.pending.forget_unit(gang.id)
                self.try_starts = True
            self.dirty.update(dict.fromkeys(gang.nodes))
        for ended in ended_gangs:
            gone = self.gangs.pop(ended, None)
            if gone is not None:
                self.pending.forget_unit(ended)
                self.dirty.update(dict.fromkeys(gone.nodes))
        for seen in nodes:
            self.observed[seen.name] = seen
            record = self.records.get(seen.name)
            self.count(seen.name, record)
            if record is None:
                continue
            self.dirty[seen.name] = None
            if record.state is NodeState.PENDING:
                self.pending.file(seen.name)
                self.try_starts = True
        if freshness is not None:
            self.freshness = freshness

    def count(self, name: str, record: NodeRecord | None) -> None:
        """Count a machine in the budgets: unavailable as observed, or because this run has taken it."""
        seen = self.observed.get(name)
        in_rotation = record is not None and record.state in IN_ROTATION
        if seen is None:
            # Replayed and not read yet: the place is known except for the team.
            if record is not None and in_rotation:
                self.ledger.record(name, Place(record.node.scale_set, record.node.pool, ""), True)
            return
        removed = record is not None and record.state is NodeState.REMOVED
        unavailable = not removed and (seen.unavailable or in_rotation)
        down = self.ledger.down
        place = self.ledger.places.get(name)
        if place is None or place.team != seen.team or place.scale_set != seen.scale_set or place.pool != seen.pool:
            place = Place(seen.scale_set, seen.pool, seen.team)
        freed = not unavailable and name in self.ledger.unavailable
        self.ledger.record(name, place, unavailable)
        if freed or self.ledger.down != down:
            # A gang may also start because its scale set has come down for another reason.
            self.try_starts = True

    def change(
        self,
        batch: Batch,
        record: NodeRecord,
        to: NodeState,
        cause: str,
        seconds: float | None = None,
        *,
        actor: str = ROTATION,
        attempt: int | None = None,
        evicting: bool = False,
        method: Replacement | None = None,
        gangs: tuple[str, ...] = (),
    ) -> None:
        """Record a transition and apply it; seconds is the longest time in the new state."""
        until = None if seconds is None else batch.now + seconds
        attempt = record.attempt if attempt is None else attempt
        if method is None and to not in (NodeState.PENDING, NodeState.CORDONED):
            method = record.method
        transition = Transition(record.node.name, to, batch.now, cause, actor, until, attempt, evicting, method, gangs)
        batch.transitions.append(transition)
        self.apply(record, transition)

    def apply(self, record: NodeRecord, transition: Transition) -> None:
        """Apply a transition to a node's record, its pool, and the budgets."""
        before, to = record.state, transition.to
        name = record.node.name
        progress = self.pools[record.node.pool]
        started, gangs_before = record.since, record.gangs
        record.state, record.since, record.until, record.cause = to, transition.at, transition.until, transition.cause
        record.attempt, record.evicting, record.method = transition.attempt, transition.evicting, transition.method
        if transition.until is not None and not self._replaying:
            self.timer(transition.until, name)
        entered = (to in IN_ROTATION) - (before in IN_ROTATION)
        self.in_rotation += entered
        progress.in_rotation += entered
        self.open -= (to in ENDED) - (before in ENDED)
        if (entered or to is NodeState.REMOVED) and not self._replaying:
            self.count(name, record)
        if entered < 0:
            # Its place in the window is free, even where its machine stays unavailable.
            self.try_starts = True
        if before in STARTING:
            self.starting.subtract(gangs_before)
        match to:
            case NodeState.PENDING:
                self._apply_pending(record, transition, before, started)
            case NodeState.CORDONED:
                self._apply_start(record, transition)
            case NodeState.DRAINING if before is NodeState.CORDONED:
                self.interrupted.update(transition.gangs)
                record.gangs = transition.gangs
            case NodeState.REPLACING:
                record.replaced_from = transition.at
        if to in STARTING:
            self.starting.update(record.gangs)
        if before is NodeState.PENDING:
            self.pending.remove(name)
        if before in TESTED and to in (NodeState.READY, NodeState.DRAINED, NodeState.FAILED):
            good = to is NodeState.READY
            self.verdicts.append(good)
            progress.good += good
            progress.failed += not good

    def _apply_pending(self, record: NodeRecord, transition: Transition, before: NodeState, started: float) -> None:
        if before is NodeState.CORDONED:
            self._units.pop((started, record.gangs or (record.node.name,)), None)
            if self._day == self.policy.calendar.day(started):
                # A cancelled start does not count.
                self._starts_of_day -= 1
        record.attempt, record.unit, record.gangs, record.cordoned_at = 1, [], (), float("inf")
        if record.node.name in self.observed:
            self.pending.file(record.node.name)
        self.try_starts = True
        if before is NodeState.BLOCKED:
            self.give_up_from = transition.at

    def _apply_start(self, record: NodeRecord, transition: Transition) -> None:
        # Nodes of one gang start in one step, and in only one unit of its gangs.
        record.unit = self._units.setdefault((transition.at, transition.gangs or (record.node.name,)), [])
        record.unit.append(record.node.name)
        record.gangs = transition.gangs
        self.starts.take(1, transition.at)
        day = self.policy.calendar.day(transition.at)
        self._starts_of_day = self._starts_of_day + 1 if day == self._day else 1
        self._day = day

    def starts_of_day(self, now: float) -> int:
        """Return the number of nodes that have started on this local day."""
        return self._starts_of_day if self._day == self.policy.calendar.day(now) else 0

    def wake(self, now: float) -> None:
        while self.timers and self.timers[0][0] <= now:
            at, name = heapq.heappop(self.timers)
            if self.is_due(at, name):
                self.dirty[name] = None

    def is_due(self, at: float, name: str) -> bool:
        """Return whether a timer is still that of its node: the end of its state, or of the wait for an action's effect."""
        record = self.records[name]
        if record.until == at:
            return record.state in IN_ROTATION
        seen = self.observed.get(name)
        if seen is None or record.sent_at + self.policy.timeouts.resend != at:
            return False
        match record.state:
            case NodeState.CORDONED:
                return seen.cordoned_by != ROTATION
            case NodeState.DRAINING:
                return record.evicting
            case NodeState.REPLACING:
                return not seen.operating
        return seen.cordoned_by == ROTATION and record.state in (NodeState.PENDING, NodeState.READY, NodeState.BLOCKED)

    def next_timer(self) -> float:
        """Return the time of the next timer, infinite without one."""
        while self.timers and not self.is_due(*self.timers[0]):
            heapq.heappop(self.timers)
        return self.timers[0][0] if self.timers else float("inf")

    @property
    def pending_nodes(self) -> int:
        """Nodes that have neither started nor ended."""
        return self.open - self.in_rotation

    def timer(self, at: float, name: str) -> None:
        heapq.heappush(self.timers, (at, name))

    def send_again(self, batch: Batch, record: NodeRecord, kind: ActionKind, reason: str) -> None:
        """Repeat an action that has had no visible effect for a while, or that may not have been sent before a restart."""
        again = record.sent_at + self.policy.timeouts.resend
        if batch.now >= again:
            batch.act(kind, (record.node.name,), reason)
            self.mark_sent(record, batch.now)
        else:
            self.timer(again, record.node.name)

    def mark_sent(self, record: NodeRecord, now: float) -> None:
        record.sent_at = now
        self.timer(now + self.policy.timeouts.resend, record.node.name)

    def is_throttled(self, now: float) -> bool:
        """Return whether Azure still refuses requests."""
        return self.freshness is not None and now < self.freshness.throttled_until

    def not_fresh(self, now: float) -> str:
        """Return why no node may start or be changed on the present observations, "" if it may."""
        read = self.freshness
        if read is None:
            return "nothing was read yet"
        if read.incomplete:
            return f"the last reading is incomplete: {read.incomplete}"
        if self.is_throttled(now):
            return "Azure throttles requests"
        for source, at in (("nodes", read.nodes_at), ("jobs", read.jobs_at), ("Azure", read.azure_at)):
            if now - at > self.policy.timeouts.fresh:
                return f"the last complete reading of {source} is {now - at:.0f} s old, more than {self.policy.timeouts.fresh:.0f} s"
        return ""

    def check_stop(self) -> None:
        """Stop the run when too many of the last verdicts are failures, or when a pool's canaries fail."""
        if self.stopped:
            return
        failed = self.verdicts.count(False)
        if failed > self.policy.failed_share * self.policy.failed_of:
            bound = f"{self.policy.failed_share:.0%} of {self.policy.failed_of}"
            self.stopped = f"{failed} of the last {len(self.verdicts)} nodes failed, more than {bound}"
        for pool, progress in self.pools.items():
            if progress.good < self.policy.canaries < progress.failed:
                passed = f"{progress.good} of {self.policy.canaries} passed"
                self.stopped = f"{progress.failed} canaries of pool {pool} failed, and {passed}"
