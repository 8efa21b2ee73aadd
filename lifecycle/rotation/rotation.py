"""Decision core of a rotation: what starts, continues, is repeated or given up, from the journal, observations, policy and time.

It does no input or output and reads no clock. A caller reports observations, calls step, appends the step's transitions to the journal, and
then carries out its actions. Actions are idempotent: an action without a visible effect is returned again, also in a new process that
replays the journal, so that a crash between journal and action loses nothing.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

from components.spec.tenancy import Replacement
from lifecycle.rotation.budget import CLUSTER, DOMAINS, Ledger, Place, Rate, Shortage
from lifecycle.rotation.model import (
    ENDED,
    IN_ROTATION,
    NEXT_STATES,
    ROTATION,
    Action,
    ActionKind,
    Freshness,
    Gang,
    Load,
    NodeObservation,
    NodeState,
    RunNode,
    Step,
    Task,
    Transition,
    Verdict,
    Wait,
)
from lifecycle.rotation.pending import SERVICES_FROM, PendingNodes, Unit
from lifecycle.rotation.policy import Policy

CALLS = {ActionKind.REIMAGE: 2, ActionKind.REPLACE: 2, ActionKind.DELETE: 1}
"""Requests to Azure per action on machines of one scale set: update and reimage, delete and restore the capacity, or delete."""
CALLS_PER_SET = 4, 12
"""Updates, deletes or writes of one scale set per minute, and the number that accumulates:
https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits"""
MOST_WAITS = 20
"""Waits that a step returns; explain returns all."""


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
class _Batch:
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


class Rotation:
    """State of one run: fold of its journal, and the latest observations of its cluster."""

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
        self._pending = PendingNodes(self.observed, self.gangs, self.ledger.places)
        self._freshness: Freshness | None = None
        self._verdicts: deque[bool] = deque(maxlen=policy.failed_of)
        self._dirty: dict[str, None] = {}
        self._held: dict[str, None] = {}
        """Nodes that continue when observations are fresh again."""
        self._units: dict[tuple[float, tuple[str, ...]], list[str]] = {}
        self._timers: list[tuple[float, str]] = []
        self._to_replace: dict[tuple[ActionKind, str], dict[str, None]] = {}
        self._starts = Rate.full(policy.starts_per_minute, policy.starts_per_minute, started)
        self._calls = Rate.full(policy.calls_per_minute, policy.calls_per_minute, started)
        self._set_calls: dict[str, Rate] = {}
        self._day: tuple[date | None, int] = None, 0
        self._span: tuple[bool, float] = False, float("-inf")
        self._head = ""
        self._try_starts = True
        self._try_at = float("inf")

    # Journal ---------------------------------------------------------------------------------------------------------------------------

    def replay(self, transitions: Iterable[Transition]) -> None:
        """Apply the transitions of a journal, oldest first; raise InvalidTransitionError."""
        for transition in transitions:
            record = self.records.get(transition.node)
            if record is None:
                raise InvalidTransitionError(f"{transition.node} is not in the run")
            if transition.to not in NEXT_STATES[record.state]:
                raise InvalidTransitionError(f"{transition.node} cannot change from {record.state} to {transition.to}")
            self._apply(record, transition)
        self._dirty.update(dict.fromkeys(self.records))

    def stop(self, reason: str) -> None:
        """Start no more nodes; those in rotation continue."""
        self.stopped = reason

    def resume(self) -> None:
        """Start nodes again after a stop; verdicts before it no longer count."""
        self.stopped = ""
        self._verdicts.clear()
        for progress in self.pools.values():
            progress.failed = 0
        self._try_starts = True

    def retry(self, now: float, actor: str) -> tuple[Transition, ...]:
        """Return transitions, already applied, that make failed and blocked nodes pending or drained again for another attempt."""
        batch = _Batch(now)
        for record in self.records.values():
            if record.state is NodeState.BLOCKED:
                self._change(batch, record, NodeState.PENDING, "retried", actor=actor)
            elif record.state is NodeState.FAILED:
                self._change(batch, record, NodeState.DRAINED, "retried", actor=actor, attempt=1)
                self._dirty[record.node.name] = None
        return tuple(batch.transitions)

    # Observations ----------------------------------------------------------------------------------------------------------------------

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
                self._pending.forget_unit(gang.id)
                self._try_starts = True
            self._dirty.update(dict.fromkeys(gang.nodes))
        for ended in ended_gangs:
            gone = self.gangs.pop(ended, None)
            if gone is not None:
                self._pending.forget_unit(ended)
                self._dirty.update(dict.fromkeys(gone.nodes))
        for seen in nodes:
            self.observed[seen.name] = seen
            record = self.records.get(seen.name)
            self._count(seen.name, record)
            if record is None:
                continue
            self._dirty[seen.name] = None
            if record.state is NodeState.PENDING:
                self._pending.file(seen.name)
                self._try_starts = True
        if freshness is not None:
            self._freshness = freshness
            self._dirty.update(self._held)
            self._held.clear()

    def _count(self, name: str, record: NodeRecord | None) -> None:
        """Count a machine in the budgets: unavailable as observed, or because this run has taken it."""
        seen = self.observed.get(name)
        if seen is None:
            return
        unavailable = seen.unavailable or (record is not None and record.state in IN_ROTATION)
        if not unavailable and name in self.ledger.unavailable:
            self._try_starts = True
        place = self.ledger.places.get(name)
        if place is None or place.team != seen.team or place.scale_set != seen.scale_set or place.pool != seen.pool:
            place = Place(seen.scale_set, seen.pool, seen.team)
        self.ledger.record(name, place, unavailable)

    # Step ------------------------------------------------------------------------------------------------------------------------------

    def step(self, now: float) -> Step:
        """Return the decisions at a time, already applied to this state.

        Append the transitions to the journal before carrying out the actions. If that fails, discard this object and replay the journal.
        """
        batch = _Batch(now)
        self._wake(now)
        hold = self._not_fresh(now)
        while self._dirty:
            name = next(iter(self._dirty))
            del self._dirty[name]
            record = self.records.get(name)
            if record is not None:
                self._advance(batch, record, hold)
        self._replace(batch, hold)
        self._check_stop()
        if len(self._pending):
            self._start(batch, hold)
            self._give_up(batch)
        while self._timers and not self._is_due(*self._timers[0]):
            heapq.heappop(self._timers)
        if self._timers:
            batch.wake(self._timers[0][0])
        actions = tuple(
            Action(kind, tuple(names), reason, scale_set, until) for (kind, reason, scale_set, until), names in batch.actions.items()
        )
        next_at = None if batch.next_at == float("inf") else batch.next_at
        return Step(tuple(batch.transitions), actions, tuple(batch.waits), next_at, self.stopped, self.open == 0)

    def _wake(self, now: float) -> None:
        while self._timers and self._timers[0][0] <= now:
            at, name = heapq.heappop(self._timers)
            if self._is_due(at, name):
                self._dirty[name] = None
        if now >= self._try_at:
            self._try_starts, self._try_at = True, float("inf")

    def _is_due(self, at: float, name: str) -> bool:
        """Return whether a timer is still that of its node: the end of its state, or of the wait for an action's effect."""
        record = self.records[name]
        return record.until == at or record.sent_at + self.policy.timeouts.resend == at

    def _timer(self, at: float, name: str) -> None:
        heapq.heappush(self._timers, (at, name))

    def _not_fresh(self, now: float) -> str:
        """Return why no node may start or be changed on the present observations, "" if it may."""
        read = self._freshness
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

    # Nodes in rotation -----------------------------------------------------------------------------------------------------------------

    def _advance(self, batch: _Batch, record: NodeRecord, hold: str) -> None:
        """Continue a node as far as its observation allows; with a hold, only record what was observed."""
        state = None
        while record.state is not state:
            state = record.state
            seen = self.observed.get(record.node.name)
            if seen is None:
                return
            match state:
                case NodeState.PENDING:
                    self._pending_node(batch, record, seen)
                case NodeState.CORDONED:
                    self._cordoned(batch, record, hold)
                case NodeState.DRAINING:
                    self._draining(batch, record, seen, hold)
                case NodeState.DRAINED:
                    self._drained(batch, record)
                case NodeState.REPLACING:
                    self._replacing(batch, record, seen, hold)
                case NodeState.JOINING:
                    self._joining(batch, record, seen)
                case NodeState.PREFLIGHT:
                    self._preflight(batch, record, seen)
                case NodeState.READY | NodeState.BLOCKED if seen.cordoned_by == ROTATION:
                    self._send_again(batch, record, ActionKind.UNCORDON, "has ended")

    def _pending_node(self, batch: _Batch, record: NodeRecord, seen: NodeObservation) -> None:
        """End a pending node that another actor has brought to the target or removed; remove a cordon that a cancelled start has left."""
        if record.node.task is Task.REMOVE and not seen.exists and not seen.operating:
            self._change(batch, record, NodeState.REMOVED, "was already removed")
        elif record.node.task is Task.ROTATE and seen.current and seen.replaced_at >= self.started and not seen.unavailable:
            self._change(batch, record, NodeState.READY, "was already on the target")
        elif seen.cordoned_by == ROTATION:
            self._send_again(batch, record, ActionKind.UNCORDON, "has not started")

    def _cordoned(self, batch: _Batch, record: NodeRecord, hold: str) -> None:
        """Continue a unit when all its nodes are seen cordoned, or cancel its start."""
        seen = [self.observed[name] for name in record.unit]
        foreign = next((one for one in seen if _is_foreign(one)), None)
        if foreign is not None:
            self._cancel(batch, record.unit, f"{foreign.name} is cordoned by {foreign.cordoned_by}")
        elif any(one.cordoned_by != ROTATION for one in seen):
            if self._is_over(record, batch.now):
                self._cancel(batch, record.unit, "not all of its nodes could be cordoned in time")
            elif self.observed[record.node.name].cordoned_by != ROTATION:
                self._send_again(batch, record, ActionKind.CORDON, "starts")
        elif hold:
            self._held[record.node.name] = None
        else:
            started = sorted({gang for one in seen for gang in one.gangs}.difference(record.gangs))
            if started:
                self._cancel(batch, record.unit, f"gang {started[0]} has started on it")
            else:
                self._drain(batch, record.unit, record.gangs)

    def _cancel(self, batch: _Batch, names: Sequence[str], cause: str) -> None:
        """Make the nodes of a unit pending again, and remove the rotation's cordons."""
        for name in names:
            record = self.records[name]
            if record.state is NodeState.CORDONED:
                self._change(batch, record, NodeState.PENDING, cause)
                if not _is_foreign(self.observed[name]):
                    batch.act(ActionKind.UNCORDON, (name,), cause)
                    self._mark_sent(record, batch.now)

    def _drain(self, batch: _Batch, names: Sequence[str], gangs: tuple[str, ...]) -> None:
        """Signal the unit's jobs to write a checkpoint, or evict at once where there is no job to wait for."""
        alive = [gang for gang in gangs if gang in self.gangs]
        wait = max((self.policy.deadlines.get(self.gangs[gang].load, 0.0) for gang in alive), default=0.0)
        until = wait if wait > 0 else self.policy.timeouts.eviction
        for name in names:
            self._change(batch, self.records[name], NodeState.DRAINING, "is cordoned", until, evicting=wait <= 0, gangs=gangs)
            self._dirty[name] = None
        if wait > 0:
            batch.act(ActionKind.SIGNAL_CHECKPOINT, names, f"drain of {alive[0]}", until=batch.now + wait)
            for name in names:
                self.records[name].sent_at = batch.now
        else:
            self._evict(batch, names)

    def _evict(self, batch: _Batch, names: Iterable[str]) -> None:
        with_pods = [name for name in names if self.observed[name].pods]
        if with_pods:
            batch.act(ActionKind.EVICT, with_pods, "drain")
        for name in with_pods:
            self._mark_sent(self.records[name], batch.now)

    def _draining(self, batch: _Batch, record: NodeRecord, seen: NodeObservation, hold: str) -> None:
        if seen.pods == 0:
            self._change(batch, record, NodeState.DRAINED, "has no pods")
        elif record.evicting and self._is_over(record, batch.now):
            self._change(batch, record, NodeState.BLOCKED, f"{seen.pods} pods could not be evicted in time")
            batch.act(ActionKind.UNCORDON, (record.node.name,), "could not be drained")
            self._mark_sent(record, batch.now)
        elif hold:
            self._held[record.node.name] = None
        elif record.evicting:
            self._send_again(batch, record, ActionKind.EVICT, "drain")
        else:
            self._wait_for_checkpoint(batch, record)

    def _wait_for_checkpoint(self, batch: _Batch, record: NodeRecord) -> None:
        """Evict all nodes of a unit when its jobs have written a checkpoint or ended, or when the deadline has passed."""
        cause = self._end_of_wait(record, batch.now)
        if cause:
            names = [one for one in record.unit if self.records[one].state is NodeState.DRAINING and not self.records[one].evicting]
            for name in names:
                self._change(batch, self.records[name], NodeState.DRAINING, cause, self.policy.timeouts.eviction, evicting=True)
            self._evict(batch, names)
        elif record.sent_at == float("-inf"):
            # Replayed from a journal: the signal may not have been sent.
            batch.act(ActionKind.SIGNAL_CHECKPOINT, (record.node.name,), "drain", until=record.until)
            record.sent_at = batch.now

    def _end_of_wait(self, record: NodeRecord, now: float) -> str:
        """Return why the wait for a checkpoint is over, "" if it is not."""
        if self._is_over(record, now):
            return "the deadline of its checkpoint has passed"
        alive = [self.gangs[gang] for gang in record.gangs if gang in self.gangs]
        if not alive:
            return "its gang has ended"
        return "its gang has written a checkpoint" if all(gang.checkpoint_at > record.since for gang in alive) else ""

    def _drained(self, batch: _Batch, record: NodeRecord) -> None:
        """Queue a drained node for its replacement, after a back-off if it failed before."""
        if record.until is None or batch.now >= record.until:
            self._queue_replacement(record)

    def _queue_replacement(self, record: NodeRecord) -> None:
        kind = ActionKind.DELETE
        if record.node.task is Task.ROTATE:
            kind = ActionKind.REPLACE if self._method(record) is Replacement.REPLACE else ActionKind.REIMAGE
        self._to_replace.setdefault((kind, record.node.scale_set), {})[record.node.name] = None

    def _method(self, record: NodeRecord) -> Replacement:
        return record.method or self.policy.method

    def _replace(self, batch: _Batch, hold: str) -> None:
        """Send one request per scale set for its drained nodes, as the call rates allow."""
        if not self._to_replace or hold:
            return
        sent = []
        for (kind, scale_set), names in self._to_replace.items():
            calls = CALLS[kind]
            per_set = self._set_calls.get(scale_set)
            if per_set is None:
                per_set = self._set_calls[scale_set] = Rate.full(CALLS_PER_SET[0], CALLS_PER_SET[1], batch.now)
            wait = max(self._calls.wait(calls, batch.now), per_set.wait(1, batch.now))
            if wait > 0:
                batch.wake(batch.now + wait)
                continue
            self._calls.take(calls, batch.now)
            per_set.take(1, batch.now)
            sent.append((kind, scale_set))
            batch.act(kind, names, "drained", scale_set)
            for name in names:
                record = self.records[name]
                if record.state is NodeState.DRAINED:
                    self._change(batch, record, NodeState.REPLACING, "drained", self.policy.timeouts.replacing, method=record.method)
                self._mark_sent(record, batch.now)
        for key in sent:
            del self._to_replace[key]

    def _replacing(self, batch: _Batch, record: NodeRecord, seen: NodeObservation, hold: str) -> None:
        if record.node.task is Task.REMOVE:
            if not seen.exists and not seen.operating:
                self._change(batch, record, NodeState.REMOVED, "its machine is deleted")
                return
        elif seen.current and seen.replaced_at >= record.since:
            self._change(batch, record, NodeState.JOINING, "has a new OS disk", self.policy.timeouts.joining)
            return
        if seen.operation_error and not seen.operating and seen.operation_at >= record.since:
            self._fail(batch, record, Verdict.TRANSIENT, f"Azure: {seen.operation_error}")
        elif self._is_over(record, batch.now):
            self._fail(batch, record, Verdict.TRANSIENT, "has no new OS disk in time")
        elif not hold and not seen.operating and batch.now >= record.sent_at + self.policy.timeouts.resend:
            self._queue_replacement(record)

    def _joining(self, batch: _Batch, record: NodeRecord, seen: NodeObservation) -> None:
        if seen.exists and seen.ready and seen.booted_at >= record.replaced_from:
            self._change(batch, record, NodeState.PREFLIGHT, "joined", self.policy.timeouts.preflight)
        elif self._is_over(record, batch.now):
            self._fail(batch, record, Verdict.TRANSIENT, "did not join in time")

    def _preflight(self, batch: _Batch, record: NodeRecord, seen: NodeObservation) -> None:
        name = record.node.name
        if seen.booted_at < record.replaced_from:
            return
        if seen.verdict is Verdict.PASSED:
            self._change(batch, record, NodeState.READY, "passed preflight")
            if seen.cordoned_by == ROTATION:
                batch.act(ActionKind.UNCORDON, (name,), "passed preflight")
                self._mark_sent(record, batch.now)
        elif seen.verdict is not Verdict.UNKNOWN:
            self._fail(batch, record, seen.verdict, f"preflight: {seen.verdict.value} fault")
        elif self._is_over(record, batch.now):
            self._fail(batch, record, Verdict.TRANSIENT, "has no preflight verdict in time")

    def _fail(self, batch: _Batch, record: NodeRecord, fault: Verdict, cause: str) -> None:
        """Retry a node after a fault with a back-off, on other hardware after a hardware fault, or give it up."""
        if fault is Verdict.CONFIGURATION or record.attempt >= self.policy.attempts:
            self._change(batch, record, NodeState.FAILED, cause, attempt=record.attempt, method=record.method)
            return
        method = Replacement.REPLACE if fault is Verdict.HARDWARE else record.method
        back_off = self.policy.timeouts.back_off * 2 ** (record.attempt - 1)
        self._change(batch, record, NodeState.DRAINED, cause, back_off, attempt=record.attempt + 1, method=method)

    def _is_over(self, record: NodeRecord, now: float) -> bool:
        return record.until is not None and now >= record.until

    def _send_again(self, batch: _Batch, record: NodeRecord, kind: ActionKind, reason: str) -> None:
        """Repeat an action that has had no visible effect for a while, or that may not have been sent before a restart."""
        again = record.sent_at + self.policy.timeouts.resend
        if batch.now >= again:
            batch.act(kind, (record.node.name,), reason)
            self._mark_sent(record, batch.now)
        else:
            self._timer(again, record.node.name)

    def _mark_sent(self, record: NodeRecord, now: float) -> None:
        record.sent_at = now
        self._timer(now + self.policy.timeouts.resend, record.node.name)

    # Starts ----------------------------------------------------------------------------------------------------------------------------

    def _start(self, batch: _Batch, hold: str) -> None:
        """Start units in order, until a budget, rate, window or canary forbids more."""
        closed = self._closed(batch.now, hold)
        if closed is not None:
            batch.waits.append(closed)
            self._try_again(closed.until)
        elif self._try_starts:
            self._try_starts = False
            reserved: dict[str, str] = {}
            for unit in self._candidates(batch.now, reserved):
                refusal = self._refusal(unit, batch.now, reserved)
                if refusal is None:
                    self._begin(batch, unit)
                    continue
                self._try_again(refusal.until)
                if len(batch.waits) < MOST_WAITS:
                    batch.waits.append(refusal)
                if CLUSTER in reserved:
                    break
        batch.wake(self._try_at)

    def _try_again(self, at: float | None) -> None:
        """Try to start nodes again at a time, if no observation has changed before; None for never."""
        if at is not None:
            self._try_at = min(self._try_at, at)

    def _closed(self, now: float, hold: str) -> Wait | None:
        """Return why no node at all may start now; None if nodes may."""
        nodes = len(self._pending)
        if hold:
            self._try_starts = True
            return Wait(nodes, hold)
        if self.stopped:
            return Wait(nodes, f"stopped: {self.stopped}")
        if now >= self._span[1]:
            self._span = self.policy.calendar.span(now)
            self._try_starts = True
        is_open, changes = self._span
        if is_open:
            return None
        freeze = self.policy.calendar.freeze(now)
        reason = f"frozen: {freeze.reason}" if freeze else "no window is open"
        return Wait(nodes, reason, None if changes == float("inf") else changes)

    def _candidates(self, now: float, reserved: dict[str, str]) -> Iterator[Unit]:
        """Yield units in the order of their start; a gang that waits for budget comes first."""
        head = self._pending.unit(self._head) if self._head else None
        if head is None:
            self._head = ""
        else:
            yield head
        yield from self._pending.broken()

        def takes(place: Place) -> bool:
            return self.ledger.sets[place.scale_set] < self.policy.per_scale_set and reserved.keys().isdisjoint(place.keys)

        yield from self._pending.singles((Load.EMPTY, Load.BALLOON, Load.LOW), takes)
        seen: set[str] = set(head.gangs) if head else set()
        services = False
        for gang in list(self._pending.gang_ids(now)):
            unit = None if gang in seen else self._pending.unit(gang)
            if unit is None:
                continue
            seen.update(unit.gangs)
            if unit.load >= SERVICES_FROM and not services:
                services = True
                yield from self._pending.singles((Load.NORMAL, Load.HIGH), takes)
            if DOMAINS not in reserved or all(map(self.ledger.is_down, unit.need.sets)):
                yield unit
        if not services:
            yield from self._pending.singles((Load.NORMAL, Load.HIGH), takes)

    def _refusal(self, unit: Unit, now: float, reserved: dict[str, str]) -> Wait | None:
        """Return why a unit cannot start now, None if it can.

        reserved: budgets that take no more starts now, and why; those for which a gang waits are added, and those that are used up.
        """
        nodes = len(unit.nodes)
        held = reserved.keys() & unit.need.keys
        if held:
            return Wait(nodes, reserved[min(held)])
        refusal = self._not_eligible(unit, now)
        if refusal is not None:
            self._drop_head(unit)
            return refusal
        shortages = self.ledger.shortages(unit.need, gang=bool(unit.gangs))
        too_large = next((one for one in shortages if one.requested > one.bound), None)
        if too_large is not None:
            self._drop_head(unit)
            return Wait(nodes, f"{unit.name} needs {too_large.needs()}; it starts when idle")
        if shortages:
            if unit.gangs and self._will_free(shortages):
                self._head = self._head or unit.gangs[0]
                reserved.update((one.key, f"the budget of {one.what} is reserved for {unit.name}") for one in shortages)
            elif not unit.gangs:
                reserved.update((one.key, str(one)) for one in shortages)
            return Wait(nodes, f"{unit.name}: {shortages[0]}")
        return self._not_grown(unit, reserved) or self._beyond_rates(nodes, now, reserved)

    def _beyond_rates(self, nodes: int, now: float, reserved: dict[str, str]) -> Wait | None:
        """Return the wait for the starts per minute or per day, None without one; a unit larger than a day's share starts first."""
        used = self._day[1] if self._day[0] == self._today(now) else 0
        if used and used + nodes > self.policy.starts_per_day:
            return Wait(nodes, f"{used} of {self.policy.starts_per_day} starts of this day are used", self.policy.calendar.tomorrow(now))
        wait = self._starts.wait(nodes, now)
        if wait > 0:
            reason = f"starts are limited to {self.policy.starts_per_minute} per minute"
            reserved[CLUSTER] = reason
            return Wait(nodes, reason, now + wait)
        return None

    def _today(self, now: float) -> date | None:
        """Return the local date; None if the starts of a day are not limited."""
        return self.policy.calendar.day(now) if self.policy.starts_per_day < len(self.records) else None

    def _drop_head(self, unit: Unit) -> None:
        if self._head in unit.gangs:
            self._head = ""

    def _not_eligible(self, unit: Unit, now: float) -> Wait | None:
        """Return why a unit may not start whatever the budgets are, None if it may."""
        nodes = len(unit.nodes)
        cordoned = next((seen for name in unit.nodes if (seen := self.observed[name]).cordoned_by), None)
        if cordoned is not None:
            return Wait(nodes, f"{cordoned.name} is cordoned by {cordoned.cordoned_by}")
        if unit.load >= SERVICES_FROM and now < self.policy.idle_only_until:
            return Wait(nodes, "nodes with jobs wait until they are idle", self.policy.idle_only_until)
        for gang in unit.gangs:
            if gang not in self.gangs:
                return Wait(nodes, f"gang {gang} was not read yet")
            if gang in self.interrupted:
                return Wait(nodes, f"gang {gang} was interrupted before; its nodes wait until it ends")
        return None

    def _will_free(self, shortages: list[Shortage]) -> bool:
        """Return whether nodes that are now in rotation will free enough of the cluster's budget."""
        others = self.ledger.total - self.in_rotation
        cluster = next((one for one in shortages if one.key == CLUSTER), None)
        return self.in_rotation > 0 and (cluster is None or cluster.requested + others <= cluster.bound)

    def _not_grown(self, unit: Unit, reserved: dict[str, str]) -> Wait | None:
        """Return why the canaries or the growth of its pools do not allow a unit yet; alone in its pool, any unit may start."""
        for pool, count in unit.need.pools.items():
            progress, window = self.pools[pool], self.window(pool)
            if progress.in_rotation and progress.in_rotation + count > window:
                what = "canaries" if progress.good < self.policy.canaries else "growth"
                reason = f"{what} of pool {pool}: {progress.in_rotation} of {window} nodes are in rotation"
                if count == 1:
                    reserved[f"growth of pool {pool}"] = reason
                return Wait(len(unit.nodes), reason)
        return None

    def window(self, pool: str) -> int:
        """Return the number of a pool's nodes that may be in rotation, by its verdicts so far."""
        good = self.pools[pool].good
        if good < self.policy.canaries:
            return self.policy.canaries
        return self.policy.growth.first + (self.policy.growth.factor - 1) * (good - self.policy.canaries)

    def _begin(self, batch: _Batch, unit: Unit) -> None:
        cost = sum(self.gangs[gang].lost_gpu_hours(batch.now) for gang in unit.gangs)
        cause = f"{unit.name}, {cost:.1f} GPU-hours since its checkpoint" if unit.gangs else f"load: {unit.load.name.lower()}"
        self._drop_head(unit)
        for name in unit.nodes:
            self._change(batch, self.records[name], NodeState.CORDONED, cause, self.policy.timeouts.cordon, gangs=unit.gangs)
            self._mark_sent(self.records[name], batch.now)
        self._starts.take(len(unit.nodes), batch.now)
        batch.act(ActionKind.CORDON, unit.nodes, cause)

    def _give_up(self, batch: _Batch) -> None:
        """Block the nodes that are still pending when the run has lasted too long."""
        end = self.started + self.policy.give_up_after
        if batch.now < end:
            batch.wake(end)
            return
        for wait, names in list(self.explain(batch.now)):
            for name in names:
                self._change(batch, self.records[name], NodeState.BLOCKED, f"not started in time: {wait.reason}")

    def _check_stop(self) -> None:
        """Stop the run when too many of the last verdicts are failures, or when a pool's canaries fail."""
        if self.stopped:
            return
        failed = self._verdicts.count(False)
        if failed > self.policy.failed_share * self.policy.failed_of:
            bound = f"{self.policy.failed_share:.0%} of {self.policy.failed_of}"
            self.stopped = f"{failed} of the last {len(self._verdicts)} nodes failed, more than {bound}"
        for pool, progress in self.pools.items():
            if progress.good < self.policy.canaries < progress.failed:
                self.stopped = f"{progress.failed} canaries of pool {pool} failed"

    def explain(self, now: float) -> list[tuple[Wait, tuple[str, ...]]]:
        """Return for all pending nodes why they do not start, grouped by reason, in the order of their start."""
        closed = self._closed(now, self._not_fresh(now))
        if closed is not None:
            return [(closed, tuple(self._pending))]
        found: dict[str, tuple[Wait, list[str]]] = {}
        reserved: dict[str, str] = {}
        explained: set[str] = set()
        head = self._head
        for unit in (*self._candidates(now, reserved), *(self._pending.single(name) for name in self._pending)):
            names = [name for name in unit.nodes if name not in explained]
            if not names:
                continue
            explained.update(names)
            refusal = self._refusal(unit, now, reserved) or Wait(len(names), "starts next")
            found.setdefault(refusal.reason, (refusal, []))[1].extend(names)
        self._head = head
        return [(Wait(len(names), wait.reason, wait.until), tuple(names)) for wait, names in found.values()]

    # Changes ---------------------------------------------------------------------------------------------------------------------------

    def _change(
        self,
        batch: _Batch,
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
        self._apply(record, transition)

    def _apply(self, record: NodeRecord, transition: Transition) -> None:
        """Apply a transition to a node's record, its pool, and the budgets."""
        before, to = record.state, transition.to
        name = record.node.name
        progress = self.pools[record.node.pool]
        record.state, record.since, record.until, record.cause = to, transition.at, transition.until, transition.cause
        record.attempt, record.evicting, record.method = transition.attempt, transition.evicting, transition.method
        if transition.until is not None:
            self._timer(transition.until, name)
        entered = (to in IN_ROTATION) - (before in IN_ROTATION)
        if entered:
            self.in_rotation += entered
            progress.in_rotation += entered
            self._count(name, record)
        if to in ENDED or before in ENDED:
            self.open -= (to in ENDED) - (before in ENDED)
        if to is NodeState.PENDING:
            record.attempt, record.unit, record.gangs = 1, [], ()
            if name in self.observed:
                self._pending.file(name)
            self._try_starts = True
        elif before is NodeState.PENDING:
            self._pending.remove(name)
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
            self._verdicts.append(True)
            self._try_starts = True
        elif to in (NodeState.DRAINED, NodeState.FAILED) and before in (NodeState.REPLACING, NodeState.JOINING, NodeState.PREFLIGHT):
            progress.failed += 1
            self._verdicts.append(False)

    def _count_start(self, at: float) -> None:
        day = self._today(at)
        self._day = (day, self._day[1] + 1) if self._day[0] == day else (day, 1)


def _is_foreign(seen: NodeObservation) -> bool:
    """Return whether another actor than the rotation has cordoned a node."""
    return seen.cordoned_by not in ("", ROTATION)
