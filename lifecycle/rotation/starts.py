"""Starts of pending nodes: which units start now, within budgets, rates, calendar, canaries and growth, and why others wait."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from lifecycle.rotation.budget import CLUSTER, DOMAINS, Place, Shortage
from lifecycle.rotation.model import ActionKind, Load, NodeState, Wait
from lifecycle.rotation.pending import SERVICES_FROM, Unit
from lifecycle.rotation.run_state import Batch, RunState

MOST_WAITS = 20
"""Waits that a step returns; explain returns all."""


class Starts:
    """Starts units in order."""

    def __init__(self, run: RunState) -> None:
        self._run = run
        self._is_open = False
        self._known_from, self._known_until = float("inf"), float("-inf")
        """Times between which the calendar is known to be open or closed."""
        self._head = ""
        """Gang that waits for budget."""
        self._try_at = float("inf")

    def start(self, batch: Batch, hold: str) -> None:
        """Start units in order, until a budget, rate, window or canary forbids more."""
        if batch.now >= self._try_at:
            self._run.try_starts, self._try_at = True, float("inf")
        closed = self._closed(batch.now, hold)
        if closed is not None:
            batch.waits.append(closed)
            self._try_again(closed.until)
        elif self._run.try_starts:
            self._run.try_starts = False
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
        nodes = len(self._run.pending)
        if hold:
            self._run.try_starts = True
            return Wait(nodes, hold)
        if self._run.stopped:
            return Wait(nodes, f"stopped: {self._run.stopped}")
        if not self._known_from <= now < self._known_until:
            self._is_open, self._known_until = self._run.policy.calendar.span(now)
            self._known_from = now
            self._run.try_starts = True
        if self._is_open:
            return None
        freeze = self._run.policy.calendar.freeze(now)
        reason = f"frozen: {freeze.reason}" if freeze else "no window is open"
        return Wait(nodes, reason, None if self._known_until == float("inf") else self._known_until)

    def _candidates(self, now: float, reserved: dict[str, str]) -> Iterator[Unit]:
        """Yield units in the order of their start; a gang that waits for budget comes first."""
        head = self._run.pending.unit(self._head) if self._head else None
        if head is None:
            self._head = ""
        else:
            yield head
        yield from self._run.pending.broken()
        if self._run.ledger.free <= 0:
            # Only a start that costs no budget could follow; the next unit shows why no other can.
            yield from islice(self._in_order(now, reserved), 1)
        else:
            yield from self._in_order(now, reserved)

    def _in_order(self, now: float, reserved: dict[str, str]) -> Iterator[Unit]:
        """Yield units that are available: nodes without jobs, low-priority gangs, services, then gangs by their cost."""
        head = self._run.pending.unit(self._head) if self._head else None

        def takes(place: Place) -> bool:
            return self._run.ledger.sets[place.scale_set] < self._run.policy.per_scale_set and reserved.keys().isdisjoint(place.keys)

        yield from self._run.pending.singles((Load.EMPTY, Load.BALLOON, Load.LOW), takes)
        seen: set[str] = set(head.gangs) if head else set()
        services = False
        for gang in list(self._run.pending.gang_ids(now)):
            unit = None if gang in seen else self._run.pending.unit(gang)
            if unit is None:
                continue
            seen.update(unit.gangs)
            if unit.load >= SERVICES_FROM and not services:
                services = True
                yield from self._run.pending.singles((Load.NORMAL, Load.HIGH), takes)
            if DOMAINS not in reserved or all(map(self._run.ledger.is_down, unit.need.sets)):
                yield unit
        if not services:
            yield from self._run.pending.singles((Load.NORMAL, Load.HIGH), takes)

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
        shortages = self._run.ledger.shortages(unit.need, gang=bool(unit.gangs))
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
        policy = self._run.policy
        used = self._run.starts_of_day(now)
        if used and used + nodes > policy.starts_per_day:
            reason = f"{used} of {policy.starts_per_day} starts of this day are used"
            if nodes == 1:
                reserved[CLUSTER] = reason
            return Wait(nodes, reason, policy.calendar.tomorrow(now))
        wait = self._run.starts.wait(nodes, now)
        if wait > 0:
            reason = f"starts are limited to {policy.starts_per_minute} per minute"
            reserved[CLUSTER] = reason
            return Wait(nodes, reason, now + wait)
        return None

    def _drop_head(self, unit: Unit) -> None:
        if self._head in unit.gangs:
            self._head = ""

    def _not_eligible(self, unit: Unit, now: float) -> Wait | None:
        """Return why a unit may not start whatever the budgets are, None if it may."""
        nodes = len(unit.nodes)
        sent_at = max(self._run.records[name].sent_at for name in unit.nodes)
        if now < sent_at + self._run.policy.timeouts.resend:
            # A reading from before the removal would count as the new cordon.
            return Wait(nodes, "the cordon of a cancelled start is being removed", sent_at + self._run.policy.timeouts.resend)
        missing = next((name for name in unit.nodes if not self._run.observed[name].exists), None)
        if missing is not None:
            return Wait(nodes, f"{missing} does not exist")
        cordoned = next((seen for name in unit.nodes if (seen := self._run.observed[name]).cordoned_by), None)
        if cordoned is not None:
            return Wait(nodes, f"{cordoned.name} is cordoned by {cordoned.cordoned_by}")
        if unit.load >= SERVICES_FROM and now < self._run.policy.idle_only_until:
            return Wait(nodes, "nodes with jobs wait until they are idle", self._run.policy.idle_only_until)
        for gang in unit.gangs:
            if gang not in self._run.gangs:
                return Wait(nodes, f"gang {gang} was not read yet")
            if self._run.starting[gang]:
                return Wait(nodes, f"gang {gang} is being drained from other nodes")
            if gang in self._run.interrupted:
                return Wait(nodes, f"gang {gang} was interrupted before; its nodes wait until it ends")
        return None

    def _will_free(self, shortages: list[Shortage]) -> bool:
        """Return whether nodes that are now in rotation will free enough of the cluster's budget."""
        others = self._run.ledger.total - self._run.in_rotation
        cluster = next((one for one in shortages if one.key == CLUSTER), None)
        return self._run.in_rotation > 0 and (cluster is None or cluster.requested + others <= cluster.bound)

    def _not_grown(self, unit: Unit, reserved: dict[str, str]) -> Wait | None:
        """Return why the canaries or the growth of its pools do not allow a unit yet; alone in its pool, any unit may start."""
        for pool, count in unit.need.pools.items():
            progress, window = self._run.pools[pool], self.window(pool)
            if progress.in_rotation and progress.in_rotation + count > window:
                what = "canaries" if progress.good < self._run.policy.canaries else "growth"
                reason = f"{what} of pool {pool}: {progress.in_rotation} of {window} nodes are in rotation"
                if count == 1:
                    reserved[f"growth of pool {pool}"] = reason
                return Wait(len(unit.nodes), reason)
        return None

    def window(self, pool: str) -> int:
        """Return the number of a pool's nodes that may be in rotation, by its verdicts so far."""
        good = self._run.pools[pool].good
        if good < self._run.policy.canaries:
            return self._run.policy.canaries
        return self._run.policy.growth.first + (self._run.policy.growth.factor - 1) * (good - self._run.policy.canaries)

    def _begin(self, batch: Batch, unit: Unit) -> None:
        cost = sum(self._run.gangs[gang].lost_gpu_hours(batch.now) for gang in unit.gangs)
        cause = f"{unit.name}, {cost:.1f} GPU-hours since its checkpoint" if unit.gangs else f"load: {unit.load.name.lower()}"
        self._drop_head(unit)
        for name in unit.nodes:
            self._run.change(batch, self._run.records[name], NodeState.CORDONED, cause, self._run.policy.timeouts.cordon, gangs=unit.gangs)
            self._run.mark_sent(self._run.records[name], batch.now)
        batch.act(ActionKind.CORDON, unit.nodes, cause)

    def give_up(self, batch: Batch) -> None:
        """Block the nodes that are still pending when the run has lasted too long."""
        end = self._run.give_up_from + self._run.policy.give_up_after
        if batch.now < end:
            batch.wake(end)
            return
        for wait, names in self.explain(batch.now):
            for name in names:
                self._run.change(batch, self._run.records[name], NodeState.BLOCKED, f"not started in time: {wait.reason}")

    def explain(self, now: float) -> list[tuple[Wait, tuple[str, ...]]]:
        """Return for all pending nodes why they do not start, grouped by reason, in the order of their start."""
        pending = [name for name, record in self._run.records.items() if record.state is NodeState.PENDING]
        closed = self._closed(now, self._run.not_fresh(now))
        if closed is not None:
            return [(replace(closed, nodes=len(pending)), tuple(pending))]
        found: dict[str, tuple[Wait, list[str]]] = {}
        reserved: dict[str, str] = {}
        explained: set[str] = set()
        head = self._head
        read = [name for name in pending if name in self._run.observed]
        for unit in (*self._candidates(now, {}), *map(self._run.pending.single, read)):
            names = [name for name in unit.nodes if name not in explained]
            if names:
                explained.update(names)
                refusal = self._refusal(unit, now, reserved) or Wait(len(names), "starts next")
                found.setdefault(refusal.reason, (refusal, []))[1].extend(names)
        self._head = head
        unread = tuple(name for name in pending if name not in self._run.observed)
        waits = [(Wait(len(names), wait.reason, wait.until), tuple(names)) for wait, names in found.values()]
        return waits + ([(Wait(len(unread), "was not read yet"), unread)] if unread else [])
