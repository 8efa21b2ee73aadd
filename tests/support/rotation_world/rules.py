"""Rules for each step of a rotation, computed from the journal and the readings alone, without the decision core's own counts."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from components.spec.tenancy import Replacement
from lifecycle.rotation.calendar import Calendar
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
)
from lifecycle.rotation.policy import Policy

PENDING, CORDONED, DRAINING, DRAINED = NodeState.PENDING, NodeState.CORDONED, NodeState.DRAINING, NodeState.DRAINED
REPLACEMENTS = frozenset({ActionKind.REIMAGE, ActionKind.REPLACE, ActionKind.DELETE})
AFTER_REQUEST = frozenset({NodeState.REPLACING, NodeState.JOINING, NodeState.PREFLIGHT})
RELEASED = frozenset({NodeState.PENDING, NodeState.READY, NodeState.BLOCKED})
MINUTE = 60.0


class Violation(AssertionError):  # noqa: N818
    """A rule that a history has broken."""

    def __init__(self, rule: str, text: str) -> None:
        super().__init__(f"{rule}: {text}")
        self.rule = rule


def is_open(calendar: Calendar, now: float) -> bool:
    """Return whether a calendar allows starts, by looking at each window of the days around now."""
    zone = ZoneInfo(calendar.time_zone)
    today = datetime.fromtimestamp(now, zone).date()
    if any(one.first <= today <= one.last for one in calendar.freezes):
        return False
    days = [today - timedelta(days=number) for number in range(3)]
    begins = [
        (datetime.combine(day, window.opens, zone).astimezone(UTC).timestamp(), window.hours)
        for window in calendar.windows
        for day in days
        if day.weekday() in window.weekdays
    ]
    return not calendar.windows or any(begin <= now < begin + hours * 3_600.0 for begin, hours in begins)


class Rules:
    """What a run has journaled, what its decision core has read, and the rules for its next step."""

    def __init__(self, nodes: Iterable[RunNode], policy: Policy, started: float) -> None:
        self.nodes = {one.name: one for one in nodes}
        self.policy, self.started = policy, started
        self.states = dict.fromkeys(self.nodes, PENDING)
        self.last: dict[str, Transition] = {}
        self.requests = Counter[str]()
        self.hardware: set[str] = set()
        self.interrupted: set[str] = set()
        self.good = Counter[str]()
        self.verdicts: list[tuple[str, bool]] = []
        self._counted_from = 0
        self._latest = started
        self._starts: list[tuple[float, int]] = []
        self._days = Counter[date]()
        self.largest = 1
        self._zone = ZoneInfo(policy.calendar.time_zone)
        self.restart()

    # Readings --------------------------------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Forget what a process that ended has read."""
        self.known: dict[str, NodeObservation] = {}
        self.known_gangs: dict[str, Gang] = {}
        self.freshness: Freshness | None = None
        self.sent: dict[str, float] = {}
        self._counted_from = 0

    def resume(self) -> None:
        """Forget the verdicts before an operator resumed the run."""
        self._counted_from = len(self.verdicts)

    def forget_rates(self, now: float) -> None:
        """Forget the times of earlier starts, because the clock was set to a time."""
        self._starts = [(now, 0)]

    def read(self, nodes: Iterable[NodeObservation], gangs: Iterable[Gang], ended: Iterable[str], freshness: Freshness) -> None:
        """Note what the decision core is told."""
        self.known.update((one.name, one) for one in nodes)
        for name in ended:
            self.known_gangs.pop(name, None)
        self.known_gangs.update((one.id, one) for one in gangs)
        self.freshness = freshness

    def hold(self, now: float) -> bool:
        """Return whether readings are stale, incomplete or throttled."""
        read = self.freshness
        if read is None or read.incomplete or now < read.throttled_until:
            return True
        return now - min(read.nodes_at, read.jobs_at, read.azure_at) > self.policy.timeouts.fresh

    # Counts ----------------------------------------------------------------------------------------------------------------------------

    def in_rotation(self) -> int:
        """Return the number of nodes in rotation."""
        return sum(1 for state in self.states.values() if state in IN_ROTATION)

    def unavailable(self) -> set[str]:
        """Return the machines that are unavailable or in rotation, without those that the run has removed."""
        found = {name for name, one in self.known.items() if not (one.exists and one.ready) or one.cordoned_by}
        found -= {name for name, state in self.states.items() if state is NodeState.REMOVED}
        return found | {name for name, state in self.states.items() if state in IN_ROTATION}

    def _place(self, name: str) -> tuple[str, str, str]:
        one = self.known.get(name)
        if one is None:
            return self.nodes[name].scale_set, self.nodes[name].pool, ""
        return one.scale_set, one.pool, one.team

    def exceeded(self, names: list[str], gang: bool) -> str:
        """Return the budget that a start of nodes would exceed, "" if none."""
        policy, down = self.policy, self.unavailable()
        added = [name for name in names if name not in down]
        if not added:
            return ""
        if len(down) + len(added) > policy.machines:
            return "cluster"
        before = [Counter(place) for place in zip(*map(self._place, down), strict=True)] or [Counter[str]()] * 3
        after = [Counter(place) for place in zip(*map(self._place, [*down, *added]), strict=True)]
        for which, bounds in ((1, policy.pools), (2, policy.teams)):
            for key, bound in bounds.items():
                if after[which][key] > max(bound, before[which][key]):
                    return key
        bound = policy.per_scale_set
        if not gang:
            return next((key for key, count in after[0].items() if count > max(bound, before[0][key])), "")
        below = sum(1 for count in before[0].values() if count > bound)
        now_below = sum(1 for count in after[0].values() if count > bound)
        return "scale sets at once" if now_below > max(below, policy.scale_sets_at_once) else ""

    def not_grown(self, names: list[str]) -> str:
        """Return the pool whose canaries or growth do not allow a start, "" if none."""
        pools = Counter(self.nodes[name].pool for name in names)
        for pool, count in pools.items():
            good, policy = self.good[pool], self.policy
            canaries = good < policy.canaries
            window = policy.canaries if canaries else policy.growth.first + (policy.growth.factor - 1) * (good - policy.canaries)
            busy = sum(1 for name, state in self.states.items() if state in IN_ROTATION and self.nodes[name].pool == pool)
            if busy and busy + count > window:
                return pool
        return ""

    def must_stop(self) -> bool:
        """Return whether verdicts forbid further starts."""
        counted = self.verdicts[self._counted_from :]
        failed = sum(1 for _, good in deque(counted, self.policy.failed_of) if not good)
        of_pool = Counter(pool for pool, good in counted if not good)
        canaries = any(self.good[pool] < self.policy.canaries < count for pool, count in of_pool.items())
        return canaries or failed > self.policy.failed_share * self.policy.failed_of

    def unit_of(self, name: str, states: frozenset[NodeState] = frozenset({PENDING})) -> set[str]:
        """Return the run's nodes in some states that share gangs with a node, directly or through other gangs."""
        unit, left = {name}, [name]
        while left:
            gangs = set(self._gangs(left.pop()))
            for other, state in self.states.items():
                if other not in unit and state in states and not gangs.isdisjoint(self._gangs(other)):
                    unit.add(other)
                    left.append(other)
        return unit

    def _gangs(self, name: str) -> tuple[str, ...]:
        one = self.known.get(name)
        return one.gangs if one is not None else ()

    # Steps -----------------------------------------------------------------------------------------------------------------------------

    def check(self, now: float, step: Step) -> None:
        """Check a step and note its transitions; raise Violation."""
        hold = self.hold(now)
        self._latest = max(self._latest, now)
        unit: list[Transition] = []
        drains: list[str] = []
        cancelled: set[str] = set()
        for one in step.transitions:
            if unit and (one.to is not CORDONED or not one.gangs or unit[-1].gangs != one.gangs):
                self._check_start(now, unit, hold, step.stopped)
                unit = []
            self._check_next(one)
            if one.to is CORDONED:
                unit.append(one)
                continue
            if one.to is DRAINING and self.states[one.node] is CORDONED:
                drains.append(one.node)
            if one.to is PENDING:
                cancelled.add(one.node)
                self._cancel_start(one.node)
            self._check_change(now, one, hold)
            self.note(one)
        if unit:
            self._check_start(now, unit, hold, step.stopped)
        self._check_drains(drains)
        for action in step.actions:
            self._check_action(now, action, cancelled)
        if step.finished != all(state in ENDED for state in self.states.values()):
            raise Violation("finished", f"the step says finished={step.finished}, and the states are {self.states}")
        if not hold:
            self._check_repeated(now)
            self._check_idle(now, step.stopped)

    def _check_next(self, one: Transition) -> None:
        if one.node not in self.nodes:
            raise Violation("transition", f"{one.node} is not in the run")
        if one.to not in NEXT_STATES[self.states[one.node]]:
            raise Violation("transition", f"{one.node} changed from {self.states[one.node]} to {one.to}")

    def note(self, one: Transition) -> None:
        """Apply a journaled transition."""
        before, name = self.states[one.node], one.node
        pool = self.nodes[name].pool
        self.states[name], self.last[name] = one.to, one
        if one.to is PENDING or (one.to is DRAINED and before is NodeState.FAILED):
            self.requests[name] = 0
        elif one.to is NodeState.REPLACING:
            self.requests[name] += 1
        elif one.to is NodeState.READY and before is NodeState.PREFLIGHT:
            self.good[pool] += 1
            self.verdicts.append((pool, True))
        elif before in AFTER_REQUEST and one.to in (DRAINED, NodeState.FAILED):
            self.verdicts.append((pool, False))

    def _check_change(  # noqa: C901 (one case per state)
        self, now: float, one: Transition, hold: bool
    ) -> None:
        before, name = self.states[one.node], one.node
        if one.to in (PENDING, NodeState.BLOCKED) and name not in self.known:
            return
        seen = self.known[name]
        if hold and ("in time" in one.cause and "not started" not in one.cause):
            raise Violation("time-out on old input", f"{name}: {one.cause}")
        if hold and (one.to is NodeState.REPLACING or (one.to is DRAINING)):
            raise Violation("change on old input", f"{name} became {one.to}")
        match one.to:
            case NodeState.REPLACING:
                until = self.last[name].until
                if until is not None and now < until:
                    raise Violation("back-off", f"{name} was requested {until - now:.0f} s before the end of its back-off")
            case NodeState.READY:
                target = seen.current and seen.replaced_at >= self.started
                passed = seen.verdict is Verdict.PASSED and seen.booted_at >= seen.replaced_at
                if not (target and (passed if before is NodeState.PREFLIGHT else not seen.unavailable)):
                    raise Violation("ready", f"{name} became ready from {before} on {seen}")
            case NodeState.JOINING:
                if not seen.current or seen.replaced_at < self.last[name].at:
                    raise Violation("joining", f"{name} became joining on {seen}")
            case NodeState.REMOVED:
                if seen.exists or self.nodes[name].task is not Task.REMOVE:
                    raise Violation("removed", f"{name} became removed on {seen}")
            case NodeState.DRAINED if before in AFTER_REQUEST:
                self._check_retry(one, seen)
            case NodeState.FAILED:
                if one.cause.startswith("preflight: configuration") or self.requests[name] == self.policy.attempts:
                    return
                raise Violation("attempts", f"{name} failed after {self.requests[name]} of {self.policy.attempts} attempts: {one.cause}")
            case NodeState.DRAINED:
                dead = not seen.ready and one.at >= (self.last[name].until or one.at)
                if seen.pods and not dead:
                    raise Violation("drained", f"{name} is drained with {seen.pods} pods")
            case NodeState.DRAINING:
                self._check_eviction(now, one, before)
            case NodeState.BLOCKED if before is PENDING and now < self.started + self.policy.give_up_after:
                raise Violation("gave up", f"{name}: {one.cause}")

    def _check_retry(self, one: Transition, seen: NodeObservation) -> None:
        attempts = self.requests[one.node]
        if attempts >= self.policy.attempts or one.attempt != attempts + 1:
            raise Violation("attempts", f"{one.node} is at attempt {one.attempt} after {attempts} of {self.policy.attempts}")
        if one.until is None or one.until - one.at != self.policy.timeouts.back_off * 2 ** (attempts - 1):
            raise Violation("back-off", f"{one.node} waits until {one.until} from {one.at} after {attempts} attempts")
        if seen.verdict is Verdict.CONFIGURATION and one.cause.startswith("preflight"):
            raise Violation("configuration", f"{one.node} is repeated after a configuration fault")
        if seen.verdict is Verdict.HARDWARE and one.cause.startswith("preflight"):
            self.hardware.add(one.node)

    def _check_eviction(self, now: float, one: Transition, before: NodeState) -> None:
        """Check that jobs get a checkpoint signal, and their deadline or a written checkpoint before eviction."""
        if not one.evicting:
            return
        gangs = [self.known_gangs[gang] for gang in self._gangs(one.node) if gang in self.known_gangs]
        if before is CORDONED:
            if any(self.policy.deadlines.get(gang.load, 0.0) for gang in gangs):
                raise Violation("checkpoint", f"{one.node} is evicted without a signal")
            return
        last = self.last[one.node]
        if any(gang.checkpoint_at <= last.at for gang in gangs) and last.until is not None and now < last.until:
            raise Violation("checkpoint", f"{one.node} is evicted before its deadline")

    def _check_drains(self, names: list[str]) -> None:
        gangs = {gang for name in names for gang in self._gangs(name)}
        if twice := gangs & self.interrupted:
            raise Violation("interrupted twice", f"{min(twice)}, by the drain of {names}")
        starting = frozenset({PENDING, CORDONED})
        left = [name for name, state in self.states.items() if state in starting and not gangs.isdisjoint(self._gangs(name))]
        if left:
            raise Violation("gang in part", f"{left} run gangs of {names}, which drain without them")
        self.interrupted |= gangs

    # Starts ----------------------------------------------------------------------------------------------------------------------------

    def _check_start(self, now: float, unit: list[Transition], hold: bool, stopped: str) -> None:
        names = [one.node for one in unit]
        if hold:
            raise Violation("start on old input", f"{names}, {self.freshness}")
        if stopped or self.must_stop():
            raise Violation("start after a stop", f"{names}: {stopped}")
        if not is_open(self.policy.calendar, now):
            raise Violation("start outside windows", f"{names} at {datetime.fromtimestamp(now, self._zone)}")
        if reason := self.not_eligible(names, now):
            raise Violation("not eligible", f"{names}: {reason}")
        wanted = self.unit_of(names[0])
        if wanted != set(names):
            raise Violation("gang in part", f"{names} start without {wanted.difference(names)}")
        gang = bool(self._gangs(names[0]))
        if gang != bool(unit[0].gangs):
            raise Violation("gang in part", f"{names} start with gangs {unit[0].gangs}")
        if budget := self.exceeded(names, gang):
            raise Violation("budget", f"{names} exceed {budget}: {sorted(self.unavailable())} are unavailable")
        if pool := self.not_grown(names):
            raise Violation("growth", f"{names} exceed the canaries or growth of {pool}")
        self._check_rates(now, len(names))
        for one in unit:
            self.note(one)

    def _cancel_start(self, name: str) -> None:
        """Count a cancelled start not as one of its day."""
        if self.states[name] is CORDONED:
            self._days[datetime.fromtimestamp(self.last[name].at, self._zone).date()] -= 1

    def not_eligible(self, names: Iterable[str], now: float) -> str:
        """Return why nodes may not start whatever the budgets are, "" if they may."""
        for name in names:
            one = self.known.get(name)
            if one is None or one.cordoned_by or not one.exists:
                return f"{name} is unknown, cordoned or does not exist"
            if one.load >= Load.NORMAL and now < self.policy.idle_only_until:
                return f"{name} is not idle"
            for gang in one.gangs:
                if gang in self.interrupted or gang not in self.known_gangs:
                    return f"gang {gang} is unknown or was interrupted"
        return ""

    def _check_rates(self, now: float, count: int) -> None:
        self.largest = max(self.largest, count)
        self._starts.append((now, count))
        rate, total = self.policy.starts_per_minute, 0
        for at, number in reversed(self._starts):
            total += number
            if total > rate * (now - at) / MINUTE + max(rate, self.largest) + 0.001:
                raise Violation("starts per minute", f"{total} in {now - at:.0f} s, with {rate} per minute")
        day = datetime.fromtimestamp(now, self._zone).date()
        if self._days[day] and self._days[day] + count > self.policy.starts_per_day:
            raise Violation("starts per day", f"{self._days[day]} and {count}, with {self.policy.starts_per_day} per day")
        self._days[day] += count

    def _check_idle(self, now: float, stopped: str) -> None:
        """Check that a unit starts that can, if no node is in rotation."""
        if stopped or now >= self.started + self.policy.give_up_after or self.in_rotation():
            return
        if now < self._latest or not is_open(self.policy.calendar, now):
            # After the clock was set back, rates wait for at most a minute more from when they are next used.
            return
        today = self._days[datetime.fromtimestamp(now, self._zone).date()]
        spare = MINUTE * (len(self.nodes) + 1) / self.policy.starts_per_minute
        if self._starts and now - self._starts[-1][0] < spare + MINUTE:
            return
        if any(now < at + self.policy.timeouts.resend for name, at in self.sent.items() if self.states.get(name) is PENDING):
            return
        down = self.unavailable()
        for name, state in self.states.items():
            if state is not PENDING or name not in self.known:
                continue
            unit = sorted(self.unit_of(name))
            if today and today + len(unit) > self.policy.starts_per_day:
                continue
            if down.isdisjoint(unit) and not self.not_eligible(unit, now) and not self.exceeded(unit, bool(self._gangs(name))):
                raise Violation("starved", f"{unit} could start, and nothing is in rotation")

    # Actions ---------------------------------------------------------------------------------------------------------------------------

    def _check_action(self, now: float, action: Action, cancelled: set[str]) -> None:
        for name in action.nodes:
            state, seen, kind = self.states[name], self.known.get(name), action.kind
            self.sent[name] = now
            if seen is None:
                # A restarted process has not read it yet.
                if kind not in (ActionKind.UNCORDON, ActionKind.EVICT) or state not in RELEASED | {DRAINING}:
                    raise Violation("action", f"{kind} of {name}, which is {state} and was not read")
                continue
            foreign = seen.cordoned_by not in ("", ROTATION)
            if kind is ActionKind.UNCORDON:
                good = not foreign and (state in RELEASED or (name in cancelled and state in (CORDONED, NodeState.REMOVED)))
            elif kind is ActionKind.CORDON:
                good = state is CORDONED and not foreign
            elif kind in REPLACEMENTS:
                good = state is NodeState.REPLACING and not (seen.pods and seen.ready) and kind is self._replacement(name)
            elif kind is ActionKind.SIGNAL_CHECKPOINT:
                good = state is DRAINING or (state in IN_ROTATION and not seen.pods)
            else:
                good = state is DRAINING and self.last[name].evicting
            if not good:
                raise Violation("action", f"{kind} of {name}, which is {state}, and read as {seen}")

    def _replacement(self, name: str) -> ActionKind:
        if self.nodes[name].task is Task.REMOVE:
            return ActionKind.DELETE
        other = name in self.hardware or self.policy.method is Replacement.REPLACE
        return ActionKind.REPLACE if other else ActionKind.REIMAGE

    def _check_repeated(self, now: float) -> None:
        """Check that no action without a visible effect, and no time-out, is forgotten."""
        resend = self.policy.timeouts.resend
        few_calls = self.policy.calls_per_minute < 100
        for name, state in self.states.items():
            seen, last = self.known.get(name), self.last.get(name)
            if seen is None:
                continue
            waits = (state is NodeState.REPLACING and not few_calls and not seen.operating) or (
                (state is CORDONED and not seen.cordoned_by)
                or (state is DRAINING and last is not None and last.evicting and seen.pods > 0)
                or (state in RELEASED and seen.cordoned_by == ROTATION)
            )
            if waits and now >= self.sent.get(name, float("-inf")) + resend:
                raise Violation("not repeated", f"the action on {name}, which is {state}, was last sent at {self.sent.get(name)}")
            overdue = last is not None and last.until is not None and now >= last.until and state in IN_ROTATION
            if overdue and not (few_calls and state is DRAINED):
                raise Violation("overdue", f"{name} is still {state}")
