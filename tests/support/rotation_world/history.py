"""One history: a run of the decision core in an adversarial world, with crashes, checked after each step."""

from __future__ import annotations

from dataclasses import dataclass

from lifecycle.rotation.model import ENDED, IN_ROTATION, ROTATION, NodeState, Step, Transition
from lifecycle.rotation.rotation import Rotation
from tests.support.rotation_world.rules import Rules, Violation
from tests.support.rotation_world.scenario import CALM_AFTER, DAY, GIVE_UP_AFTER, HOUR, STARTED, Scenario
from tests.support.rotation_world.world import AT_LEAST_EVERY, World

MOST_STEPS = 5_000
"""Steps of one history, of which most need a hundred."""
OUTAGES = ("silent", "incomplete", "throttled", "old")


@dataclass(frozen=True)
class Outcome:
    """Figures of a history: steps, transitions, starts, crashes, and nodes by their last state."""

    steps: int
    transitions: int
    starts: int
    crashes: int
    ended: dict[NodeState, int]


class History:
    """One run: the decision core, its journal, its readings, and the rules."""

    def __init__(self, scenario: Scenario, core: type[Rotation] = Rotation) -> None:
        self.scenario, self.core = scenario, core
        self.world = World(scenario)
        self.random = self.world.random
        self.policy = scenario.policy()
        self.rules = Rules(self.world.run_nodes(), self.policy, STARTED)
        self.journal: list[Transition] = []
        self.steps = self.crashes = 0
        self._clock_error = 0.0
        """Seconds by which the process's clock is ahead."""
        self._read_by = self._paused_until = STARTED
        self._crash_next = ""
        self._partial_next = False
        self._resume_at = float("inf")
        self._outages = [self._outage() for _ in range(scenario.outages)]
        self._later = [STARTED + self.random.uniform(0, CALM_AFTER) for _ in range(scenario.crashes)]
        for at in self._later:
            self.world.at(at, self._disturb)
        for begin, end, _ in self._outages:
            self.world.at(begin, lambda: None)
            self.world.at(end, self._read_soon)
        self.rotation = self._process()

    def _outage(self) -> tuple[float, float, str]:
        begin = STARTED + self.random.uniform(0, 0.5 * CALM_AFTER) * self.random.random()
        return begin, begin + self.random.uniform(60, 2 * HOUR), self.random.choice(OUTAGES)

    def _disturb(self) -> None:
        """End the process now or in its next step, set its clock, let an operator retry, or stop it for a while."""
        kind = self.random.choice(("now", "before journal", "after journal", "after journal", "clock", "pause", "retry"))
        if kind == "clock":
            # Never ahead: then a replacement seems to be older than its request.
            self._clock_error = self.random.choice((-HOUR, -300.0, 0.0))
            self.rules.forget_rates(self._clock())
        elif kind == "pause":
            self._paused_until = self.world.now + self.random.uniform(60, 4 * HOUR)
        elif kind == "retry":
            self._retry()
        elif kind == "now":
            self._crash()
        else:
            self._crash_next = kind

    def _process(self) -> Rotation:
        rotation = self.core(self.world.run_nodes(), self.policy, STARTED)
        rotation.replay(self.journal)
        return rotation

    def _crash(self) -> None:
        """Discard the process, and begin another one from the journal, which reads the whole cluster anew."""
        self.crashes += 1
        self._crash_next = ""
        self.world.executor += 1
        self.rotation = self._process()
        self.rules.restart()
        self.world.changed_machines.update(dict.fromkeys(self.world.machines))
        self.world.changed_jobs.update(dict.fromkeys(self.world.jobs))
        self._partial_next = self.random.random() < 0.5
        self._read_soon()

    def _retry(self) -> None:
        transitions = self.rotation.retry(self._clock(), "operator")
        self.journal += transitions
        for one in transitions:
            self.rules.note(one)

    def _clock(self) -> float:
        return self.world.now + self._clock_error

    def _read_soon(self) -> None:
        self._read_by = min(self._read_by, self.world.now + self.random.uniform(0, 30))

    # Steps -----------------------------------------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Run until each node has ended and no cordon of the rotation is left on a node in service; raise Violation."""
        next_at: float | None = STARTED
        while True:
            self._advance(next_at)
            self._read()
            step = self.rotation.step(self._clock())
            self.steps += 1
            if self.steps > MOST_STEPS or self.world.now > STARTED + GIVE_UP_AFTER + DAY:
                raise Violation("endless", f"{self.steps} steps, {(self.world.now - STARTED) / DAY:.1f} days: {self.rules.states}")
            next_at = step.next_at
            if self._crash_next == "before journal":
                self._crash()
                continue
            self._take(step)
            if self.steps % 16 == 0:
                self._check_explanation()
            if self._crash_next:
                self._crash()
                continue
            self.world.carry_out(step.actions)
            if step.finished and self._settled():
                return self._outcome()

    def _take(self, step: Step) -> None:
        now = self._clock()
        self.rules.check(now, step)
        self.journal += step.transitions
        for one in step.transitions:
            if one.to is NodeState.REPLACING:
                self.world.replacing_since[one.node] = self.world.now
            self._check_given_up(one)
        if step.next_at is not None and step.next_at <= now:
            raise Violation("next step", f"at {step.next_at}, which is not after {now}")
        if step.stopped and self._resume_at == float("inf"):
            self._resume_at = self.world.now + self.random.uniform(60, 2 * HOUR)
            self.world.at(self._resume_at, self._resume)

    def _resume(self) -> None:
        self._resume_at = float("inf")
        self.rotation.resume()
        self.rules.resume()

    def _advance(self, next_at: float | None) -> None:
        """Let time pass until something happens, a reading is due, or the decision core has work."""
        world = self.world
        wanted = float("inf") if next_at is None else next_at - self._clock_error
        if world.changed_machines or world.changed_jobs or world.ended_jobs:
            wanted = min(wanted, max(self._read_by, world.now + 1.0))
        when = min(world.next_event(), wanted)
        if when == float("inf"):
            raise Violation("endless", f"nothing wakes the run: {self.rules.states}")
        had = len(world.changed_machines) + len(world.changed_jobs) + len(world.ended_jobs)
        # A little later, so that several events come together.
        world.advance(max(world.now, when) + self.random.choice((0.0, 0.0, 2.0, 15.0)))
        world.advance(max(world.now, self._paused_until))
        if not had and (world.changed_machines or world.changed_jobs or world.ended_jobs):
            self._read_by = world.now + self.random.choice((0.0, 0.0, 10.0, AT_LEAST_EVERY))

    # Readings --------------------------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Report what has changed, as far as an outage allows."""
        world, now = self.world, self._clock()
        outage = next((kind for begin, end, kind in self._outages if begin <= world.now < end), "")
        changed = bool(world.changed_machines or world.changed_jobs or world.ended_jobs)
        if outage == "silent" or (changed and world.now < self._read_by):
            return
        freshness = world.fresh(now)
        machines, jobs, ended = list(world.changed_machines), list(world.changed_jobs), list(world.ended_jobs)
        if outage in ("incomplete", "old") or self._partial_next:
            machines = [name for name in machines if self.random.random() < 0.5]
            jobs, ended = [], []
            freshness = world.incomplete(now)
            if outage == "old" and self.rules.freshness is not None and not self.rules.freshness.incomplete:
                freshness = self.rules.freshness
                machines = []
            if self._partial_next:
                world.at(world.now + 20.0, self._read_soon)
            self._partial_next = False
        elif outage == "throttled":
            freshness = type(freshness)(now, now, now, throttled_until=now + 60.0)
        nodes, gangs = world.reading(machines, jobs)
        for name in machines:
            del world.changed_machines[name]
        for name in jobs:
            del world.changed_jobs[name]
        for name in ended:
            del world.ended_jobs[name]
        self.rotation.observe(nodes, gangs, ended, freshness)
        self.rules.read(nodes, gangs, ended, freshness)

    # Ends ------------------------------------------------------------------------------------------------------------------------------

    def _settled(self) -> bool:
        world, states = self.world, self.rules.states
        left = [one for one in world.machines.values() if one.cordon == ROTATION and states.get(one.name) is not NodeState.FAILED]
        return not left

    def _check_given_up(self, one: Transition) -> None:
        """Check that only nodes that could not start since the calm began are given up."""
        if one.to is not NodeState.BLOCKED or not one.cause.startswith("not started in time"):
            return
        rules, unit = self.rules, sorted(self.rules.unit_of(one.node, frozenset({NodeState.PENDING, NodeState.BLOCKED})))
        names = [name for name in unit if rules.states[name] in (NodeState.PENDING, NodeState.BLOCKED)]
        if one.cause.endswith("starts next"):
            raise Violation("starved", f"{one.node} was given up although it could start")
        if rules.not_eligible(names, self._clock()) or rules.must_stop():
            return
        if not rules.exceeded(names, bool(rules.known[one.node].gangs)):
            raise Violation("starved", f"{names} fit the budget, but were given up: {one.cause}")

    def _check_explanation(self) -> None:
        """Check that each pending node that was read is explained once, with a reason."""
        groups = self.rotation.explain(self._clock())
        names = [name for _, group in groups for name in group]
        pending = [name for name, state in self.rules.states.items() if state is NodeState.PENDING]
        if sorted(names) != sorted(pending) or any(wait.nodes != len(group) for wait, group in groups):
            raise Violation("explain", f"{names} are explained, and {pending} are pending")
        if any(not wait.reason or wait.reason.endswith("gang ") for wait, _ in groups):
            raise Violation("explain", f"a reason is empty: {groups}")

    def _outcome(self) -> Outcome:
        states = list(self.rules.states.values())
        if any(state not in ENDED for state in states) or any(state in IN_ROTATION for state in states):
            raise Violation("lost", f"finished with {self.rules.states}")
        self._check_replay()
        starts = sum(1 for one in self.journal if one.to is NodeState.CORDONED)
        return Outcome(self.steps, len(self.journal), starts, self.crashes, {one: states.count(one) for one in ENDED})

    def _check_replay(self) -> None:
        """Check that the journal alone leads to the same end."""
        again = self._process()
        again.observe(*self.world.reading(list(self.world.machines), list(self.world.jobs)), (), self.world.fresh(self._clock()))
        step = again.step(self._clock())
        if not step.finished or step.transitions:
            raise Violation("replay", f"a replayed run continues with {step.transitions}")


def run_history(scenario: Scenario, core: type[Rotation] = Rotation) -> Outcome:
    """Run a history of a decision core; raise Violation with the scenario, so that it can be repeated."""
    history = History(scenario, core)
    try:
        return history.run()
    except Violation as error:
        raise Violation(error.rule, f"{error} [step {history.steps}, {scenario}]") from None
