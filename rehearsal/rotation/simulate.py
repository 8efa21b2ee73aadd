"""Simulation of one rotation: runs a strategy against a modelled fleet until every node has ended, and collects figures."""

from __future__ import annotations

import re
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from lifecycle.rotation.model import ENDED, IN_ROTATION, Freshness, Gang, NodeObservation, NodeState, RunNode, Step, Transition
from rehearsal.rotation.modelled_fleet import Changes, Losses, ModelledFleet

SAMPLE_SECONDS = 60
"""Seconds between two rows of a timeline."""
LONGEST_DAYS = 60
"""Days after which a simulation that has not finished is wrong."""
_NAMES = re.compile(r"\b(gang|pool|team) [\w.-]+|[\w.-]*\d[\w.-]*%?")
_IN_ROTATION = tuple(IN_ROTATION)
COLUMNS = (*NodeState, "unavailable", "starts", "lost_gpu_hours")
"""Columns of a timeline: nodes of the run by state, unavailable machines, starts since the last row, and GPU-hours lost so far."""


class StalledError(RuntimeError):
    """A simulated rotation that cannot finish."""


class Strategy(Protocol):
    """What a simulation runs: the production core's Rotation, or a strategy that it is compared with."""

    def observe(
        self,
        nodes: Iterable[NodeObservation] = (),
        gangs: Iterable[Gang] = (),
        ended_gangs: Iterable[str] = (),
        freshness: Freshness | None = None,
    ) -> None:
        """Report what changed."""

    def step(self, now: float) -> Step:
        """Return the decisions at a time."""


@dataclass(slots=True)
class Timeline:
    """Rows of a rotation's course at whole multiples of SAMPLE_SECONDS from its start; a column contains numbers (COLUMNS)."""

    started: float
    columns: dict[str, array[float]] = field(default_factory=lambda: {name: array("f") for name in COLUMNS})

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.columns["starts"])


@dataclass(slots=True)
class Outcome:
    """Result of one simulated rotation. Times are in seconds since 1970.

    finished: time of the last node's end. states: nodes by final state. pools: time of each pool's last end. most_unavailable: machines.
    unused: seconds of budget that no unavailable machine used, by the reason why no further node started. work: seconds of each
    machine out of service that no scheduling avoids. gangs: of each node, those that its first start interrupted. started_at: first start.
    """

    started: float
    finished: float
    states: Counter[NodeState]
    pools: dict[str, float]
    timeline: Timeline
    losses: Losses
    most_unavailable: int
    unused: dict[str, float]
    work: dict[str, float]
    started_at: dict[str, float]
    transitions: int
    steps: int
    calls: tuple[int, int]
    stopped: str

    @property
    def seconds(self) -> float:
        """Seconds from the start to the end."""
        return self.finished - self.started


def simulate(
    strategy: Strategy,
    nodes: Sequence[RunNode],
    fleet: ModelledFleet,
    started: float,
    budget: int,
    journal: Callable[[Step], None] = lambda _: None,
) -> Outcome:
    """Run a strategy until it has finished; journal receives every step before its actions are carried out.

    A strategy that stops ends with pending nodes. Raises StalledError if it does not finish within LONGEST_DAYS, or if nothing can happen
    any more.
    """
    return _Simulation(strategy, nodes, fleet, started, budget, journal).run()


class _Simulation:
    """State of a simulation between two steps."""

    def __init__(
        self,
        strategy: Strategy,
        nodes: Sequence[RunNode],
        fleet: ModelledFleet,
        started: float,
        budget: int,
        journal: Callable[[Step], None],
    ) -> None:
        self._strategy, self._fleet, self._budget, self._journal = strategy, fleet, budget, journal
        self._pool_of = {node.name: node.pool for node in nodes}
        self._state = dict.fromkeys(self._pool_of, NodeState.PENDING)
        self._counts: Counter[NodeState] = Counter({NodeState.PENDING: len(self._state)})
        self._timeline = Timeline(started)
        self._outcome = Outcome(started, started, self._counts, {}, self._timeline, fleet.losses, 0, {}, {}, {}, 0, 0, (0, 0), "")
        self._back_offs: dict[str, float] = defaultdict(float)
        self._starts = 0
        self._reason = ""

    def run(self) -> Outcome:
        """Run to the end."""
        fleet, strategy, outcome = self._fleet, self._strategy, self._outcome
        now = outcome.started
        changes = fleet.all()
        strategy.observe(changes.nodes, changes.gangs, changes.ended_gangs, self._freshness(now))
        while True:
            step = strategy.step(now)
            self._record(step, now)
            if step.finished or (step.stopped and not self._in_rotation()):
                return self._finish(now)
            fleet.carry_out(step.actions)
            now, changes = self._next(step, now)
            strategy.observe(changes.nodes, changes.gangs, changes.ended_gangs, self._freshness(now))

    def _next(self, step: Step, now: float) -> tuple[float, Changes]:
        """Let time pass until something changes or the step's time has come; return the time and the changes."""
        fleet = self._fleet
        while True:
            times = [at for at in (fleet.next_at, step.next_at) if at is not None]
            if not times:
                raise StalledError(self._stalled(now, "nothing can change any more"))
            at = max(now, min(times))
            if at - self._outcome.started > LONGEST_DAYS * 86_400:
                raise StalledError(self._stalled(now, f"has not finished after {LONGEST_DAYS} days"))
            self._pass(now, at)
            now = at
            changes = fleet.advance(now)
            if changes.nodes or changes.gangs or changes.ended_gangs or (step.next_at is not None and now >= step.next_at):
                return now, changes

    def _freshness(self, now: float) -> Freshness:
        return Freshness(now, now, now, throttled_until=self._fleet.throttled_until)

    def _in_rotation(self) -> int:
        return sum(self._counts[state] for state in _IN_ROTATION)

    def _stalled(self, now: float, what: str) -> str:
        counts = ", ".join(f"{number} {state}" for state, number in self._counts.items() if number)
        why = f"; the last reason is: {self._reason}" if self._reason else ""
        return f"the simulated rotation {what} after {(now - self._outcome.started) / 3_600:.1f} h ({counts}){why}"

    def _record(self, step: Step, now: float) -> None:
        """Count a step's transitions, and give them to the journal."""
        if step.transitions:
            self._journal(step)
        outcome, counts, states = self._outcome, self._counts, self._state
        outcome.steps += 1
        outcome.transitions += len(step.transitions)
        for one in step.transitions:
            counts[states[one.node]] -= 1
            counts[one.to] += 1
            states[one.node] = one.to
            self._note(one, now)
        outcome.most_unavailable = max(outcome.most_unavailable, self._in_rotation(), self._fleet.unavailable)
        outcome.stopped = step.stopped
        if step.waits:
            self._reason = _NAMES.sub(lambda found: found[1] or "N", step.waits[0].reason)
        elif not counts[NodeState.PENDING]:
            self._reason = "no node is pending"

    def _note(self, one: Transition, now: float) -> None:
        outcome = self._outcome
        if one.to is NodeState.CORDONED:
            self._starts += 1
            outcome.started_at.setdefault(one.node, now)
        elif one.to is NodeState.DRAINED and one.until is not None:
            self._back_offs[one.node] += one.until - one.at
        elif one.to in ENDED:
            outcome.pools[self._pool_of[one.node]] = now
            if one.to in (NodeState.FAILED, NodeState.BLOCKED):
                self._fleet.give_up(one.node)

    def _pass(self, before: float, now: float) -> None:
        """Add the time between two steps to the unused budget and to the timeline."""
        if now <= before:
            return
        used = max(self._fleet.unavailable, self._in_rotation())
        unused = self._outcome.unused
        unused[self._reason] = unused.get(self._reason, 0.0) + max(0, self._budget - used) * (now - before)
        started = self._outcome.started
        for _ in range(self._timeline.rows, int((now - started) // SAMPLE_SECONDS) + 1):
            self._sample(used)

    def _sample(self, used: int) -> None:
        columns = self._timeline.columns
        for state in NodeState:
            columns[state].append(self._counts[state])
        columns["unavailable"].append(used)
        columns["starts"].append(self._starts)
        columns["lost_gpu_hours"].append(self._fleet.losses.gpu_hours)
        self._starts = 0

    def _finish(self, now: float) -> Outcome:
        outcome, fleet = self._outcome, self._fleet
        outcome.finished = max(outcome.pools.values(), default=outcome.started)
        fleet.account_waiting(now)
        outcome.calls = fleet.calls
        names = (machine.row.name for machine in fleet.machines)
        outcome.work = {name: work + self._back_offs[name] for name, work in zip(names, fleet.work, strict=True)}
        outcome.unused = dict(sorted(outcome.unused.items(), key=lambda item: -item[1]))
        self._sample(fleet.unavailable)
        return outcome
