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
    """Continues nodes that have started, one request to Azure per scale set.

    With a hold (the reason why observations are not fresh), it only records what was observed: no time-out counts, and nothing is changed.
    """

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._to_replace: dict[tuple[ActionKind, str], dict[str, None]] = {}
        self._calls = Rate.full(run.policy.calls_per_minute, run.policy.calls_per_minute, run.started)
        self._set_calls: dict[str, Rate] = {}

    def after_restart(self, now: float) -> None:
        """Count the calls of the last minute as used, because the journal does not contain them."""
        self._calls = Rate(self._calls.per_minute, self._calls.capacity, 0.0, now)

    def advance(self, batch: Batch, record: NodeRecord, hold: str) -> None:
        """Continue a node as far as its observation allows."""
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
                    self._drained(batch, record, seen)
                case NodeState.REPLACING:
                    self._replacing(batch, record, seen, hold)
                case NodeState.JOINING:
                    self._joining(batch, record, seen, hold)
                case NodeState.PREFLIGHT:
                    self._preflight(batch, record, seen, hold)
                case NodeState.READY | NodeState.BLOCKED if seen.cordoned_by == ROTATION:
                    self._run.send_again(batch, record, ActionKind.UNCORDON, "has ended")

    def _is_over(self, record: NodeRecord, now: float, hold: str) -> bool:
        """Return whether the time of a node's state is over; with a hold it is not, and the node is looked at again after it."""
        if record.until is None or now < record.until:
            return False
        if hold:
            self._run.held[record.node.name] = None
        return not hold

    # Cordon and drain ------------------------------------------------------------------------------------------------------------------

    def _pending_node(self, batch: Batch, record: NodeRecord, seen: NodeObservation) -> None:
        """End a pending node that another actor has brought to the target or removed; remove a cordon that a cancelled start has left."""
        if record.node.task is Task.REMOVE and not seen.exists and not seen.operating:
            self._run.change(batch, record, NodeState.REMOVED, "was already removed")
        elif record.node.task is Task.ROTATE and seen.current and seen.replaced_at >= self._run.started and not seen.unavailable:
            self._run.change(batch, record, NodeState.READY, "was already on the target")
        elif seen.cordoned_by == ROTATION:
            self._run.send_again(batch, record, ActionKind.UNCORDON, "has not started")

    def _cordoned(self, batch: Batch, record: NodeRecord, hold: str) -> None:
        """Drain a unit when all its nodes are seen cordoned, or cancel its start."""
        run = self._run
        seen = [one for name in record.unit if (one := run.observed.get(name)) is not None]
        foreign = next((one for one in seen if _is_foreign(one)), None)
        if foreign is not None:
            self._cancel(batch, record.unit, f"{foreign.name} is cordoned by {foreign.cordoned_by}")
        elif len(seen) < len(record.unit) or any(one.cordoned_by != ROTATION for one in seen):
            if self._is_over(record, batch.now, hold):
                self._cancel(batch, record.unit, "not all of its nodes could be cordoned in time")
            elif run.observed[record.node.name].cordoned_by != ROTATION:
                run.send_again(batch, record, ActionKind.CORDON, "starts")
        elif hold or not self._jobs_read_since_cordon(record):
            run.held[record.node.name] = None
        else:
            changed = self._changed_gang(record, seen)
            if changed:
                self._cancel(batch, record.unit, changed)
            else:
                # A gang of the start may have ended or moved away meanwhile.
                self._drain(batch, record.unit, tuple(gang for gang in record.gangs if any(gang in one.gangs for one in seen)))

    def _jobs_read_since_cordon(self, record: NodeRecord) -> bool:
        """Return whether jobs were read after all nodes of a unit were seen cordoned: until then, a pod could still be placed on one."""
        read = self._run.freshness
        if read is None:
            return False
        cordoned_at = max(self._run.records[name].cordoned_at for name in record.unit)
        if cordoned_at == float("inf"):
            for name in record.unit:
                one = self._run.records[name]
                one.cordoned_at = min(one.cordoned_at, read.nodes_at)
            cordoned_at = max(self._run.records[name].cordoned_at for name in record.unit)
        return read.jobs_at >= cordoned_at

    def _changed_gang(self, record: NodeRecord, seen: Sequence[NodeObservation]) -> str:
        """Return how the gangs of a unit have changed since its start, "" if they have not."""
        started = sorted({gang for one in seen for gang in one.gangs}.difference(record.gangs))
        if started:
            return f"gang {started[0]} has started on it"
        grown = next(
            (gang for gang in record.gangs if self._run.pending.unit(gang) is not None or self._starts_elsewhere(gang, record)), ""
        )
        return f"gang {grown} has grown to more nodes" if grown else ""

    def _starts_elsewhere(self, gang: str, record: NodeRecord) -> bool:
        """Return whether a gang of a unit also runs on a node that is being cordoned with another unit."""
        known = self._run.gangs.get(gang)
        others = () if known is None else (self._run.records.get(name) for name in known.nodes)
        return any(one is not None and one.state is NodeState.CORDONED and one.unit is not record.unit for one in others)

    def _cancel(self, batch: Batch, names: Sequence[str], cause: str) -> None:
        """Make the nodes of a unit pending again, and remove the rotation's cordons."""
        for name in tuple(names):
            record = self._run.records[name]
            if record.state is NodeState.CORDONED:
                self._run.change(batch, record, NodeState.PENDING, cause)
                self._uncordon(batch, record, cause)

    def _uncordon(self, batch: Batch, record: NodeRecord, cause: str) -> None:
        """Remove the rotation's cordon of a node, unless it is another actor's."""
        seen = self._run.observed.get(record.node.name)
        if seen is None or not _is_foreign(seen):
            batch.act(ActionKind.UNCORDON, (record.node.name,), cause)
            self._run.mark_sent(record, batch.now)

    def _drain(self, batch: Batch, names: Sequence[str], gangs: tuple[str, ...]) -> None:
        """Signal the unit's jobs to write a checkpoint, or evict at once where there is no job to wait for."""
        run = self._run
        alive = [gang for gang in gangs if gang in run.gangs]
        wait = max((run.policy.deadlines.get(run.gangs[gang].load, 0.0) for gang in alive), default=0.0)
        seconds = wait if wait > 0 else run.policy.timeouts.eviction
        for name in names:
            run.change(batch, run.records[name], NodeState.DRAINING, "is cordoned", seconds, evicting=wait <= 0, gangs=gangs)
            run.dirty[name] = None
        if wait > 0:
            batch.act(ActionKind.SIGNAL_CHECKPOINT, names, f"drain of {alive[0]}", until=batch.now + wait)
            for name in names:
                run.records[name].sent_at = batch.now
        else:
            self._evict(batch, names)

    def _evict(self, batch: Batch, names: Iterable[str]) -> None:
        with_pods = [name for name in names if (seen := self._run.observed.get(name)) is None or seen.pods]
        if with_pods:
            batch.act(ActionKind.EVICT, with_pods, "drain")
        for name in with_pods:
            self._run.mark_sent(self._run.records[name], batch.now)

    def _draining(self, batch: Batch, record: NodeRecord, seen: NodeObservation, hold: str) -> None:
        run = self._run
        if seen.pods == 0:
            run.change(batch, record, NodeState.DRAINED, "has no pods")
        elif not record.evicting:
            self._wait_for_checkpoint(batch, record, hold)
        elif self._is_over(record, batch.now, hold):
            if seen.ready:
                run.change(batch, record, NodeState.BLOCKED, f"{seen.pods} pods could not be evicted in time")
                self._uncordon(batch, record, "could not be drained")
            else:
                # No pod of a dead kubelet can end; replacing the OS disk ends them all.
                run.change(batch, record, NodeState.DRAINED, "its kubelet does not report, so that its pods cannot end")
        elif hold:
            run.held[record.node.name] = None
        else:
            run.send_again(batch, record, ActionKind.EVICT, "drain")

    def _wait_for_checkpoint(self, batch: Batch, record: NodeRecord, hold: str) -> None:
        """Evict all nodes of a unit when its jobs have written a checkpoint or ended, or when the deadline has passed."""
        run = self._run
        cause = self._end_of_wait(record, batch.now)
        if hold:
            run.held[record.node.name] = None
        elif cause:
            unit = [one for name in record.unit if (one := run.records[name]).unit is record.unit]
            waiting = [one for one in unit if one.state is NodeState.DRAINING and not one.evicting]
            for one in waiting:
                run.change(batch, one, NodeState.DRAINING, cause, run.policy.timeouts.eviction, evicting=True)
            self._evict(batch, [one.node.name for one in waiting])
        elif record.sent_at == float("-inf"):
            # Replayed from a journal: the signal may not have been sent.
            batch.act(ActionKind.SIGNAL_CHECKPOINT, (record.node.name,), "drain", until=record.until)
            record.sent_at = batch.now

    def _end_of_wait(self, record: NodeRecord, now: float) -> str:
        """Return why the wait for a checkpoint is over, "" if it is not."""
        if record.until is not None and now >= record.until:
            return "the deadline of its checkpoint has passed"
        alive = [self._run.gangs[gang] for gang in record.gangs if gang in self._run.gangs]
        if not alive:
            return "its gang has ended"
        return "its gang has written a checkpoint" if all(gang.checkpoint_at > record.since for gang in alive) else ""

    # Replacement -----------------------------------------------------------------------------------------------------------------------

    def _drained(self, batch: Batch, record: NodeRecord, seen: NodeObservation) -> None:
        if _is_in_service(seen):
            self._run.change(batch, record, NodeState.PENDING, "is in service again, and must be drained again")
        elif record.until is None or batch.now >= record.until:
            self._queue_replacement(record)

    def _queue_replacement(self, record: NodeRecord) -> None:
        kind = ActionKind.DELETE
        if record.node.task is Task.ROTATE:
            replaces = (record.method or self._run.policy.method) is Replacement.REPLACE
            kind = ActionKind.REPLACE if replaces else ActionKind.REIMAGE
        self._to_replace.setdefault((kind, record.node.scale_set), {})[record.node.name] = None

    def replace(self, batch: Batch, hold: str) -> None:
        """Send one request per scale set for its drained nodes, as the call rates allow."""
        if not self._to_replace or hold:
            return
        for key in list(self._to_replace):
            kind, scale_set = key
            records = [one for name in self._to_replace[key] if self._takes_request(one := self._run.records[name], batch.now)]
            wait = self._wait_for_calls(kind, scale_set, batch.now) if records else 0.0
            if wait > 0:
                batch.wake(batch.now + wait)
                continue
            del self._to_replace[key]
            for record in records:
                if record.state is NodeState.DRAINED:
                    self._run.change(batch, record, NodeState.REPLACING, "drained", self._run.policy.timeouts.replacing)
                self._run.mark_sent(record, batch.now)
            if records:
                batch.act(kind, (record.node.name for record in records), "drained", scale_set)

    def _takes_request(self, record: NodeRecord, now: float) -> bool:
        """Return whether a queued node still needs a request: it may have changed since it was queued."""
        if record.state is NodeState.DRAINED:
            return record.until is None or now >= record.until
        seen = self._run.observed.get(record.node.name)
        # A ready machine with pods is in service: never replace it, whatever the times of different clocks suggest.
        return record.state is NodeState.REPLACING and seen is not None and not seen.operating and not (seen.ready and seen.pods)

    def _wait_for_calls(self, kind: ActionKind, scale_set: str, now: float) -> float:
        """Take the calls of a request, or return the seconds until they are available."""
        per_set = self._set_calls.get(scale_set)
        if per_set is None:
            per_set = self._set_calls[scale_set] = Rate.full(CALLS_PER_SET[0], CALLS_PER_SET[1], now)
        wait = max(self._calls.wait(CALLS[kind], now), per_set.wait(1, now))
        if wait == 0:
            self._calls.take(CALLS[kind], now)
            per_set.take(1, now)
        return wait

    def _replacing(self, batch: Batch, record: NodeRecord, seen: NodeObservation, hold: str) -> None:
        run = self._run
        if record.node.task is Task.REMOVE:
            if not seen.exists and not seen.operating:
                run.change(batch, record, NodeState.REMOVED, "its machine is deleted")
                return
        elif seen.current and seen.replaced_at >= record.since:
            run.change(batch, record, NodeState.JOINING, "has a new OS disk", run.policy.timeouts.joining)
            return
        if seen.operation_error and not seen.operating and seen.operation_at >= record.since:
            self._fail(batch, record, Verdict.TRANSIENT, f"Azure: {seen.operation_error}")
        elif self._is_over(record, batch.now, hold):
            what = "its machine was not deleted in time" if record.node.task is Task.REMOVE else "has no new OS disk in time"
            self._fail(batch, record, Verdict.TRANSIENT, what)
        elif not seen.operating:
            again = record.sent_at + run.policy.timeouts.resend
            if hold:
                run.held[record.node.name] = None
            elif batch.now >= again:
                self._queue_replacement(record)
            else:
                run.timer(again, record.node.name)

    def _joining(self, batch: Batch, record: NodeRecord, seen: NodeObservation, hold: str) -> None:
        if seen.exists and seen.ready and _has_new_boot(record, seen):
            self._run.change(batch, record, NodeState.PREFLIGHT, "joined", self._run.policy.timeouts.preflight)
        elif self._is_over(record, batch.now, hold):
            self._fail(batch, record, Verdict.TRANSIENT, "did not join in time")

    def _preflight(self, batch: Batch, record: NodeRecord, seen: NodeObservation, hold: str) -> None:
        verdict = seen.verdict if _has_new_boot(record, seen) else Verdict.UNKNOWN
        if verdict is Verdict.PASSED:
            self._run.change(batch, record, NodeState.READY, "passed preflight")
            if seen.cordoned_by == ROTATION:
                self._uncordon(batch, record, "passed preflight")
        elif verdict is not Verdict.UNKNOWN:
            self._fail(batch, record, verdict, f"preflight: {verdict.value} fault")
        elif self._is_over(record, batch.now, hold):
            self._fail(batch, record, Verdict.TRANSIENT, "has no preflight verdict in time")

    def _fail(self, batch: Batch, record: NodeRecord, fault: Verdict, cause: str) -> None:
        """Retry a node after a fault with a back-off, on other hardware after a hardware fault, or give it up."""
        if fault is Verdict.CONFIGURATION or record.attempt >= self._run.policy.attempts:
            self._run.change(batch, record, NodeState.FAILED, cause)
            return
        method = Replacement.REPLACE if fault is Verdict.HARDWARE else record.method
        back_off = self._run.policy.timeouts.back_off * 2 ** (record.attempt - 1)
        self._run.change(batch, record, NodeState.DRAINED, cause, back_off, attempt=record.attempt + 1, method=method)


def _has_new_boot(record: NodeRecord, seen: NodeObservation) -> bool:
    """Return whether a node's present boot is from the OS disk that the run has requested."""
    return seen.booted_at >= max(record.replaced_from, seen.replaced_at)


def _is_in_service(seen: NodeObservation) -> bool:
    """Return whether a machine runs pods, or may get some at any time: its cordon was removed, or a late verdict has removed its taint."""
    return seen.exists and seen.ready and (seen.pods > 0 or (not seen.unavailable and seen.verdict is Verdict.PASSED))


def _is_foreign(seen: NodeObservation) -> bool:
    """Return whether another actor than the rotation has cordoned a node."""
    return seen.cordoned_by not in ("", ROTATION)
