"""Progress of the nodes in rotation: from cordon to verdict, with retries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from components.spec.tenancy import Replacement
from lifecycle.rotation.budget import Rate
from lifecycle.rotation.model import ROTATION, ActionKind, NodeObservation, NodeState, Task, Verdict
from lifecycle.rotation.run_state import Batch, NodeRecord, RunState

CALLS = {ActionKind.REIMAGE: 2, ActionKind.REPLACE: 2, ActionKind.DELETE: 1}
"""Requests to Azure per action on machines of one scale set: update and reimage, delete and restore the capacity, or delete."""
CALLS_PER_SET = 4, 12
"""Updates, deletes or writes of one scale set per minute, and the number that accumulates:
https://learn.microsoft.com/azure/virtual-machines/compute-throttling-limits"""


class NodeProgress:
    """Continues nodes that have started, one request to Azure per scale set."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._to_replace: dict[tuple[ActionKind, str], dict[str, None]] = {}
        self._calls = Rate.full(run.policy.calls_per_minute, run.policy.calls_per_minute, run.started)
        self._set_calls: dict[str, Rate] = {}

    def advance(self, batch: Batch, record: NodeRecord, hold: str) -> None:
        """Continue a node as far as its observation allows; with a hold, only record what was observed."""
        state = None
        while record.state is not state:
            state = record.state
            seen = self._run.observed.get(record.node.name)
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
                    self._run.send_again(batch, record, ActionKind.UNCORDON, "has ended")

    def _pending_node(self, batch: Batch, record: NodeRecord, seen: NodeObservation) -> None:
        """End a pending node that another actor has brought to the target or removed; remove a cordon that a cancelled start has left."""
        if record.node.task is Task.REMOVE and not seen.exists and not seen.operating:
            self._run.change(batch, record, NodeState.REMOVED, "was already removed")
        elif record.node.task is Task.ROTATE and seen.current and seen.replaced_at >= self._run.started and not seen.unavailable:
            self._run.change(batch, record, NodeState.READY, "was already on the target")
        elif seen.cordoned_by == ROTATION:
            self._run.send_again(batch, record, ActionKind.UNCORDON, "has not started")

    def _cordoned(self, batch: Batch, record: NodeRecord, hold: str) -> None:
        """Continue a unit when all its nodes are seen cordoned, or cancel its start."""
        seen = [self._run.observed[name] for name in record.unit]
        foreign = next((one for one in seen if _is_foreign(one)), None)
        if foreign is not None:
            self._cancel(batch, record.unit, f"{foreign.name} is cordoned by {foreign.cordoned_by}")
        elif any(one.cordoned_by != ROTATION for one in seen):
            if self._run.is_over(record, batch.now):
                self._cancel(batch, record.unit, "not all of its nodes could be cordoned in time")
            elif self._run.observed[record.node.name].cordoned_by != ROTATION:
                self._run.send_again(batch, record, ActionKind.CORDON, "starts")
        elif hold:
            self._run.held[record.node.name] = None
        else:
            started = sorted({gang for one in seen for gang in one.gangs}.difference(record.gangs))
            if started:
                self._cancel(batch, record.unit, f"gang {started[0]} has started on it")
            else:
                self._drain(batch, record.unit, record.gangs)

    def _cancel(self, batch: Batch, names: Sequence[str], cause: str) -> None:
        """Make the nodes of a unit pending again, and remove the rotation's cordons."""
        for name in names:
            record = self._run.records[name]
            if record.state is NodeState.CORDONED:
                self._run.change(batch, record, NodeState.PENDING, cause)
                if not _is_foreign(self._run.observed[name]):
                    batch.act(ActionKind.UNCORDON, (name,), cause)
                    self._run.mark_sent(record, batch.now)

    def _drain(self, batch: Batch, names: Sequence[str], gangs: tuple[str, ...]) -> None:
        """Signal the unit's jobs to write a checkpoint, or evict at once where there is no job to wait for."""
        alive = [gang for gang in gangs if gang in self._run.gangs]
        wait = max((self._run.policy.deadlines.get(self._run.gangs[gang].load, 0.0) for gang in alive), default=0.0)
        until = wait if wait > 0 else self._run.policy.timeouts.eviction
        for name in names:
            self._run.change(batch, self._run.records[name], NodeState.DRAINING, "is cordoned", until, evicting=wait <= 0, gangs=gangs)
            self._run.dirty[name] = None
        if wait > 0:
            batch.act(ActionKind.SIGNAL_CHECKPOINT, names, f"drain of {alive[0]}", until=batch.now + wait)
            for name in names:
                self._run.records[name].sent_at = batch.now
        else:
            self._evict(batch, names)

    def _evict(self, batch: Batch, names: Iterable[str]) -> None:
        with_pods = [name for name in names if self._run.observed[name].pods]
        if with_pods:
            batch.act(ActionKind.EVICT, with_pods, "drain")
        for name in with_pods:
            self._run.mark_sent(self._run.records[name], batch.now)

    def _draining(self, batch: Batch, record: NodeRecord, seen: NodeObservation, hold: str) -> None:
        if seen.pods == 0:
            self._run.change(batch, record, NodeState.DRAINED, "has no pods")
        elif record.evicting and self._run.is_over(record, batch.now) and not seen.ready:
            # Its kubelet is dead, so no pod can end; replacing the OS disk ends them all.
            self._run.change(batch, record, NodeState.DRAINED, "its kubelet does not report, so that its pods cannot end")
        elif record.evicting and self._run.is_over(record, batch.now):
            self._run.change(batch, record, NodeState.BLOCKED, f"{seen.pods} pods could not be evicted in time")
            batch.act(ActionKind.UNCORDON, (record.node.name,), "could not be drained")
            self._run.mark_sent(record, batch.now)
        elif hold:
            self._run.held[record.node.name] = None
        elif record.evicting:
            self._run.send_again(batch, record, ActionKind.EVICT, "drain")
        else:
            self._wait_for_checkpoint(batch, record)

    def _wait_for_checkpoint(self, batch: Batch, record: NodeRecord) -> None:
        """Evict all nodes of a unit when its jobs have written a checkpoint or ended, or when the deadline has passed."""
        cause = self._end_of_wait(record, batch.now)
        if cause:
            names = [
                one for one in record.unit if self._run.records[one].state is NodeState.DRAINING and not self._run.records[one].evicting
            ]
            for name in names:
                self._run.change(
                    batch, self._run.records[name], NodeState.DRAINING, cause, self._run.policy.timeouts.eviction, evicting=True
                )
            self._evict(batch, names)
        elif record.sent_at == float("-inf"):
            # Replayed from a journal: the signal may not have been sent.
            batch.act(ActionKind.SIGNAL_CHECKPOINT, (record.node.name,), "drain", until=record.until)
            record.sent_at = batch.now

    def _end_of_wait(self, record: NodeRecord, now: float) -> str:
        """Return why the wait for a checkpoint is over, "" if it is not."""
        if self._run.is_over(record, now):
            return "the deadline of its checkpoint has passed"
        alive = [self._run.gangs[gang] for gang in record.gangs if gang in self._run.gangs]
        if not alive:
            return "its gang has ended"
        return "its gang has written a checkpoint" if all(gang.checkpoint_at > record.since for gang in alive) else ""

    def _drained(self, batch: Batch, record: NodeRecord) -> None:
        """Queue a drained node for its replacement, after a back-off if it failed before."""
        if record.until is None or batch.now >= record.until:
            self._queue_replacement(record)

    def _queue_replacement(self, record: NodeRecord) -> None:
        kind = ActionKind.DELETE
        if record.node.task is Task.ROTATE:
            kind = ActionKind.REPLACE if self._method(record) is Replacement.REPLACE else ActionKind.REIMAGE
        self._to_replace.setdefault((kind, record.node.scale_set), {})[record.node.name] = None

    def _method(self, record: NodeRecord) -> Replacement:
        return record.method or self._run.policy.method

    def replace(self, batch: Batch, hold: str) -> None:
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
                record = self._run.records[name]
                if record.state is NodeState.DRAINED:
                    self._run.change(
                        batch, record, NodeState.REPLACING, "drained", self._run.policy.timeouts.replacing, method=record.method
                    )
                self._run.mark_sent(record, batch.now)
        for key in sent:
            del self._to_replace[key]

    def _replacing(self, batch: Batch, record: NodeRecord, seen: NodeObservation, hold: str) -> None:
        if record.node.task is Task.REMOVE:
            if not seen.exists and not seen.operating:
                self._run.change(batch, record, NodeState.REMOVED, "its machine is deleted")
                return
        elif seen.current and seen.replaced_at >= record.since:
            self._run.change(batch, record, NodeState.JOINING, "has a new OS disk", self._run.policy.timeouts.joining)
            return
        if seen.operation_error and not seen.operating and seen.operation_at >= record.since:
            self._fail(batch, record, Verdict.TRANSIENT, f"Azure: {seen.operation_error}")
        elif self._run.is_over(record, batch.now):
            self._fail(batch, record, Verdict.TRANSIENT, "has no new OS disk in time")
        elif not hold and not seen.operating:
            again = record.sent_at + self._run.policy.timeouts.resend
            if batch.now >= again:
                self._queue_replacement(record)
            else:
                self._run.timer(again, record.node.name)

    def _joining(self, batch: Batch, record: NodeRecord, seen: NodeObservation) -> None:
        if seen.exists and seen.ready and seen.booted_at >= record.replaced_from:
            self._run.change(batch, record, NodeState.PREFLIGHT, "joined", self._run.policy.timeouts.preflight)
        elif self._run.is_over(record, batch.now):
            self._fail(batch, record, Verdict.TRANSIENT, "did not join in time")

    def _preflight(self, batch: Batch, record: NodeRecord, seen: NodeObservation) -> None:
        name = record.node.name
        if seen.booted_at < record.replaced_from:
            return
        if seen.verdict is Verdict.PASSED:
            self._run.change(batch, record, NodeState.READY, "passed preflight")
            if seen.cordoned_by == ROTATION:
                batch.act(ActionKind.UNCORDON, (name,), "passed preflight")
                self._run.mark_sent(record, batch.now)
        elif seen.verdict is not Verdict.UNKNOWN:
            self._fail(batch, record, seen.verdict, f"preflight: {seen.verdict.value} fault")
        elif self._run.is_over(record, batch.now):
            self._fail(batch, record, Verdict.TRANSIENT, "has no preflight verdict in time")

    def _fail(self, batch: Batch, record: NodeRecord, fault: Verdict, cause: str) -> None:
        """Retry a node after a fault with a back-off, on other hardware after a hardware fault, or give it up."""
        if fault is Verdict.CONFIGURATION or record.attempt >= self._run.policy.attempts:
            self._run.change(batch, record, NodeState.FAILED, cause, attempt=record.attempt, method=record.method)
            return
        method = Replacement.REPLACE if fault is Verdict.HARDWARE else record.method
        back_off = self._run.policy.timeouts.back_off * 2 ** (record.attempt - 1)
        self._run.change(batch, record, NodeState.DRAINED, cause, back_off, attempt=record.attempt + 1, method=method)


def _is_foreign(seen: NodeObservation) -> bool:
    """Return whether another actor than the rotation has cordoned a node."""
    return seen.cordoned_by not in ("", ROTATION)
