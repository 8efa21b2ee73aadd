"""State of one run: fold of its journal, the latest observations of its cluster, and the timers of its nodes."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

from components.spec.tenancy import Replacement
from lifecycle.rotation.budget import Ledger, Place
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


class InvalidTransitionError(ValueError):
    """A transition of a node that is not in the run, or from a state that it cannot follow."""


@dataclass(slots=True)
class NodeRecord:
    """State of one node in the run, and since when.

    unit: nodes that started together with it, and gangs: those that the start interrupts. replaced_from: time of the last request to
    replace its OS disk. sent_at: time of the last action on it in this process.
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
        self.day: tuple[date | None, int] = None, 0
        self.try_starts = True

    def replay(self, transitions: Iterable[Transition]) -> None:
        """Apply the transitions of a journal, oldest first; raise InvalidTransitionError."""
        for transition in transitions:
            record = self.records.get(transition.node)
            if record is None:
                raise InvalidTransitionError(f"{transition.node} is not in the run")
            if transition.to not in NEXT_STATES[record.state]:
                raise InvalidTransitionError(f"{transition.node} cannot change from {record.state} to {transition.to}")
            self.apply(record, transition)
        self.dirty.update(dict.fromkeys(self.records))

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
        """Report what changed: machines of the whole cluster, gangs, gangs that ended, and how fresh and complete the readings are."""
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
            self.dirty.update(self.held)
            self.held.clear()

    def count(self, name: str, record: NodeRecord | None) -> None:
        """Count a machine in the budgets: unavailable as observed, or because this run has taken it."""
        seen = self.observed.get(name)
        if seen is None:
            return
        unavailable = seen.unavailable or (record is not None and record.state in IN_ROTATION)
        if not unavailable and name in self.ledger.unavailable:
            self.try_starts = True
        place = self.ledger.places.get(name)
        if place is None or place.team != seen.team or place.scale_set != seen.scale_set or place.pool != seen.pool:
            place = Place(seen.scale_set, seen.pool, seen.team)
        self.ledger.record(name, place, unavailable)

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
        record.state, record.since, record.until, record.cause = to, transition.at, transition.until, transition.cause
        record.attempt, record.evicting, record.method = transition.attempt, transition.evicting, transition.method
        if transition.until is not None:
            self.timer(transition.until, name)
        entered = (to in IN_ROTATION) - (before in IN_ROTATION)
        if entered:
            self.in_rotation += entered
            progress.in_rotation += entered
            self.count(name, record)
        if to in ENDED or before in ENDED:
            self.open -= (to in ENDED) - (before in ENDED)
        if to is NodeState.PENDING:
            record.attempt, record.unit, record.gangs = 1, [], ()
            if name in self.observed:
                self.pending.file(name)
            self.try_starts = True
        elif before is NodeState.PENDING:
            self.pending.remove(name)
        if to is NodeState.CORDONED:
            self._count_start(transition.at)
            # Nodes of one gang start in one step, and in only one unit of its gangs.
            key = (transition.at, transition.gangs or (name,))
            record.unit = self._units.setdefault(key, [])
            record.unit.append(name)
            record.gangs = transition.gangs
        elif to is NodeState.DRAINING:
            self.interrupted.update(transition.gangs)
        elif to is NodeState.REPLACING:
            record.replaced_from = transition.at
        elif to is NodeState.READY and before is NodeState.PREFLIGHT:
            progress.good += 1
            self.verdicts.append(True)
            self.try_starts = True
        elif to in (NodeState.DRAINED, NodeState.FAILED) and before in (NodeState.REPLACING, NodeState.JOINING, NodeState.PREFLIGHT):
            progress.failed += 1
            self.verdicts.append(False)

    def _count_start(self, at: float) -> None:
        day = self.today(at)
        self.day = (day, self.day[1] + 1) if self.day[0] == day else (day, 1)

    def today(self, now: float) -> date | None:
        """Return the local date; None if the starts of a day are not limited."""
        return self.policy.calendar.day(now) if self.policy.starts_per_day < len(self.records) else None

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

    def is_over(self, record: NodeRecord, now: float) -> bool:
        return record.until is not None and now >= record.until

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

    def not_fresh(self, now: float) -> str:
        """Return why no node may start or be changed on the present observations, "" if it may."""
        read = self.freshness
        if read is None:
            return "nothing was read yet"
        if read.incomplete:
            return f"the last reading is incomplete: {read.incomplete}"
        if now < read.throttled_until:
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
                self.stopped = f"{progress.failed} canaries of pool {pool} failed"
