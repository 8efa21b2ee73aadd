"""The cluster of one history: executes actions slowly, twice or not at all, and lets machines, jobs and other actors change."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from lifecycle.rotation.model import ROTATION, Action, ActionKind, Freshness, Gang, Load, NodeObservation, RunNode, Task, Verdict
from tests.support.rotation_world.machines import Job, Machine
from tests.support.rotation_world.rules import Violation
from tests.support.rotation_world.scenario import CALM_AFTER, DAY, HOUR, STARTED, Scenario

OTHER_OWNERS = ("health", "operator")
AT_LEAST_EVERY = 60.0
"""Longest time until a change is read, outside an outage."""


class World:
    """Machines, jobs, and the events that wait for their time. now is the time of Kubernetes and Azure."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.random = Random(scenario.seed)  # noqa: S311
        self.now = STARTED
        self.machines: dict[str, Machine] = {}
        self.jobs: dict[str, Job] = {}
        self.changed_machines: dict[str, None] = {}
        self.changed_jobs: dict[str, None] = {}
        self.ended_jobs: dict[str, None] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._busy_until: dict[str, float] = {}
        self.replacing_since: dict[str, float] = {}
        self.executor = 0
        self._build()

    @property
    def calm(self) -> bool:
        """Return whether the adversary does nothing more."""
        return self.now >= STARTED + CALM_AFTER

    def run_nodes(self) -> tuple[RunNode, ...]:
        """Return the nodes of the run."""
        return tuple(
            RunNode(one.name, one.scale_set, one.pool, "older image", one.task) for one in self.machines.values() if one.task is not None
        )

    # Time ------------------------------------------------------------------------------------------------------------------------------

    def at(self, when: float, event: Callable[[], None]) -> None:
        """Let something happen at a time."""
        self._number += 1
        heapq.heappush(self._events, (when, self._number, event))

    def after(self, low: float, high: float, event: Callable[[], None]) -> None:
        """Let something happen after a random number of seconds."""
        self.at(self.now + self.random.uniform(low, high), event)

    def next_event(self) -> float:
        """Return the time of the next event, infinite without one."""
        return self._events[0][0] if self._events else float("inf")

    def advance(self, until: float) -> None:
        """Let everything happen until a time."""
        while self._events and self._events[0][0] <= until:
            when, _, event = heapq.heappop(self._events)
            self.now = max(self.now, when)
            event()
        self.now = max(self.now, until)

    # The fleet -------------------------------------------------------------------------------------------------------------------------

    def _build(self) -> None:
        one, random = self.scenario, self.random
        for number in range(one.nodes + one.others):
            scale_set = random.randrange(one.sets)
            task = None if number >= one.nodes else Task.REMOVE if number < one.removed else Task.ROTATE
            machine = Machine(f"n{number}", f"s{scale_set}", f"p{scale_set % one.pools}", self._team(), task)
            machine.replaced_at = machine.booted_at = STARTED - DAY
            for _ in range(4):
                machine.outcomes.append(random.choice(FAULTS) if random.randrange(10) < one.faults else "good")
            machine.stuck = random.randrange(20) < one.faults
            self.machines[machine.name] = machine
        for number in range(one.gangs):
            self._start_job(f"g{number}", random.randint(1, 5))
        for _ in range(one.services):
            self._start_service()
        for _ in range(one.chaos):
            self.at(STARTED + random.uniform(0, 0.7 * CALM_AFTER) * random.random(), random.choice(self._troubles()))
        self.changed_machines.update(dict.fromkeys(self.machines))

    def _team(self) -> str:
        return f"t{self.random.randrange(self.scenario.teams)}" if self.scenario.teams else ""

    def _touch(self, machine: Machine) -> None:
        self.changed_machines[machine.name] = None

    def _free(self) -> list[Machine]:
        return [one for one in self.machines.values() if one.takes_pods()]

    def _start_job(self, name: str, size: int) -> None:
        """Start a gang on free machines, now and then on some that run another gang."""
        free = [one for one in self._free() if not one.gangs or self.random.random() < 0.15]
        if not free or name in self.jobs:
            return
        self.random.shuffle(free)
        random = self.random
        job = Job(name, random.choice((Load.LOW, Load.NORMAL, Load.HIGH)), checkpoint_at=self.now - random.uniform(0, HOUR))
        job.writes, job.restarts = random.random() < 0.6, random.random() < 0.8
        self._place(job, free[:size])

    def _place(self, job: Job, machines: list[Machine]) -> None:
        self.jobs[job.id] = job
        job.starts += 1
        job.nodes = [one.name for one in machines]
        self.changed_jobs[job.id] = None
        self.ended_jobs.pop(job.id, None)
        for one in machines:
            one.gangs.append(job.id)
            self._touch(one)

    def _end_job(self, job: Job) -> None:
        for name in job.nodes:
            machine = self.machines[name]
            machine.gangs.remove(job.id)
            self._touch(machine)
        del self.jobs[job.id]
        self.changed_jobs.pop(job.id, None)
        self.ended_jobs[job.id] = None

    def _restart(self, job: Job, size: int) -> None:
        """Start a job again on other free machines, under its name."""
        free = [one for one in self._free() if not one.gangs]
        if job.id not in self.jobs and free and not self.calm:
            job.checkpoint_at = self.now
            self._place(job, free[: max(1, size)])

    def _start_service(self, machine: Machine | None = None) -> None:
        free = [one for one in self._free() if not one.gangs]
        if machine is not None or free:
            machine = machine or self.random.choice(free)
            machine.pods, machine.load = self.random.randint(1, 2), self.random.choice((Load.BALLOON, Load.LOW, Load.NORMAL, Load.HIGH))
            self._touch(machine)

    # Other actors ----------------------------------------------------------------------------------------------------------------------

    def _troubles(self) -> tuple[Callable[[], None], ...]:
        cordon, uncommon = self._foreign_cordon, (self._external_replacement, self._override, self._vanish, self._reboot)
        jobs = (self._move_job, self._grow_job, self._end_any_job, self._new_job, self._start_service)
        return (cordon, cordon, self._break, self._break, *jobs, *uncommon)

    def _calm_at(self) -> float:
        """Return a random time before the calm."""
        return self.random.uniform(self.now, max(self.now, STARTED + 0.95 * CALM_AFTER))

    def _any(self) -> Machine:
        return self.random.choice(list(self.machines.values()))

    def _foreign_cordon(self) -> None:
        self._cordon_for_others(self._any())

    def _cordon_for_others(self, machine: Machine) -> None:
        owner = self.random.choice(OTHER_OWNERS)

        def end() -> None:
            if machine.cordon == owner:
                machine.cordon = ""
                self._touch(machine)

        if machine.exists and not machine.cordon:
            machine.cordon = owner
            self._touch(machine)
            self.at(self._calm_at(), end)

    def _override(self) -> None:
        """Another actor takes over a cordon of the rotation, and keeps it."""
        own = [one for one in self.machines.values() if one.cordon == ROTATION]
        if own:
            machine = self.random.choice(own)
            machine.cordon = "operator"
            self._touch(machine)

    def _break(self) -> None:
        machine = self._any()

        def mend() -> None:
            machine.ready = True
            self._touch(machine)

        if machine.ready and not machine.operating:
            machine.ready, machine.died = False, True
            self._touch(machine)
            self.at(self._calm_at(), mend)

    def _reboot(self) -> None:
        machine = self._any()
        if machine.exists and machine.ready and not machine.operating:
            machine.booted_at = self.now
            self._touch(machine)

    def _vanish(self) -> None:
        """Delete a machine outside the run for good, or one of the run until Azure replaces it."""
        machine = self._any()
        if not machine.exists or machine.operating or machine.gangs or machine.pods or machine.cordon:
            return
        machine.exists = False
        self._touch(machine)

        def back() -> None:
            if not machine.exists and not machine.operating:
                machine.exists, machine.ready = True, True
                machine.booted_at = machine.replaced_at = self.now
                self._touch(machine)

        if machine.task is not Task.REMOVE:
            self.at(self._calm_at(), back)

    def _external_replacement(self) -> None:
        """Another actor brings an idle machine to the target."""
        machine = self._any()
        if machine.exists and machine.ready and not (machine.operating or machine.gangs or machine.pods or machine.cordon):
            machine.current, machine.replaced_at, machine.booted_at = True, self.now, self.now
            self._touch(machine)

    def _any_job(self) -> Job | None:
        return self.random.choice(list(self.jobs.values())) if self.jobs else None

    def _move_job(self, job: Job | None = None) -> None:
        job = job or self._any_job()
        if job is not None:
            size = len(job.nodes)
            self._end_job(job)
            self._restart(job, size)

    def _grow_job(self, job: Job | None = None) -> None:
        job = job or self._any_job()
        free = [one for one in self._free() if job is not None and job.id not in one.gangs]
        if job is not None and free:
            machine = self.random.choice(free)
            job.nodes.append(machine.name)
            machine.gangs.append(job.id)
            self.changed_jobs[job.id] = None
            self._touch(machine)

    def _end_any_job(self) -> None:
        job = self._any_job()
        if job is not None:
            self._end_job(job)

    def _new_job(self) -> None:
        self._start_job(f"g{self.random.randrange(100, 999)}", self.random.randint(1, 4))

    # Actions ---------------------------------------------------------------------------------------------------------------------------

    def carry_out(self, actions: tuple[Action, ...]) -> None:
        """Carry out actions, each node's in order: late, twice, or not at all before the calm; those of a dead process may be lost."""
        executor = self.executor
        for action in actions:
            if not self.calm and self.random.randrange(10) < self.scenario.lost:
                continue
            delay = self.random.uniform(0, 35.0 * self.scenario.slow + 1.0)
            times = 2 if not self.calm and self.random.randrange(8) == 0 else 1
            for name in action.nodes:
                when = max(self.now + delay, self._busy_until.get(name, 0.0))
                self._busy_until[name] = when
                self.at(when, partial(self._execute, action, name, times, executor))

    def _execute(self, action: Action, name: str, times: int, executor: int) -> None:
        if executor != self.executor and self.random.random() < 0.6:
            return
        machine = self.machines[name]
        for _ in range(times):
            match action.kind:
                case ActionKind.CORDON:
                    self._race(machine)
                    if machine.exists and not machine.cordon:
                        machine.cordon = ROTATION
                        self._touch(machine)
                case ActionKind.UNCORDON:
                    if machine.cordon == ROTATION:
                        machine.cordon = ""
                        self._touch(machine)
                case ActionKind.SIGNAL_CHECKPOINT:
                    self._signal(machine)
                case ActionKind.EVICT:
                    self._evict(machine)
                case _:
                    self._replace(machine, action.kind)

    def _race(self, machine: Machine) -> None:
        """Let other actors change a machine, or its jobs, in the moment before it is cordoned."""
        if self.calm or machine.cordon or self.random.randrange(8) >= self.scenario.races:
            return
        match self.random.randrange(4):
            case 0:
                self._cordon_for_others(machine)
            case 1 if machine.gangs:
                self._grow_job(self.jobs[machine.gangs[0]])
            case 2 if machine.gangs:
                self._move_job(self.jobs[machine.gangs[0]])
            case 3 if machine.takes_pods():
                self._start_service(machine)

    def _signal(self, machine: Machine) -> None:
        for name in machine.gangs:
            job = self.jobs[name]

            if job.writes:
                self.after(30, 900, partial(self._write_checkpoint, job))

    def _write_checkpoint(self, job: Job) -> None:
        if self.jobs.get(job.id) is job:
            job.checkpoint_at = self.now
            self.changed_jobs[job.id] = None

    def _evict(self, machine: Machine) -> None:
        if machine.stuck and not self.calm:
            return
        for name in machine.gangs:
            self.after(0, 60, partial(self._kill, self.jobs[name], self.jobs[name].starts))

        def leave() -> None:
            machine.pods, machine.load = 0, Load.EMPTY
            self._touch(machine)

        if machine.pods:
            self.after(0, 300, leave)

    def _kill(self, job: Job, start: int) -> None:
        """End a gang as a whole because one of its pods was evicted; it may start again elsewhere."""
        if self.jobs.get(job.id) is not job or job.starts != start:
            return
        job.hits += 1
        if job.hits > 1:
            raise Violation("interrupted twice", f"{job.id} was evicted a second time")
        size = len(job.nodes)
        self._end_job(job)
        if job.restarts:
            self.after(1, 120, lambda: self._restart(job, size))

    def _replace(self, machine: Machine, kind: ActionKind) -> None:
        if machine.operating or not (machine.exists or kind is ActionKind.REPLACE):
            return
        if machine.current and machine.replaced_at >= self.replacing_since.get(machine.name, 0.0):
            return
        if (machine.pods or machine.gangs) and not machine.died:
            raise Violation("replaced under pods", f"{kind} of {machine.name}, which runs {machine.pods} pods and {machine.gangs}")
        if machine.verdict is Verdict.PASSED and machine.takes_pods():
            raise Violation("replaced in service", f"{kind} of {machine.name}, which is in service")
        outcome = machine.outcomes.pop(0) if machine.outcomes else "good"
        machine.operating, machine.error, machine.ready = True, "", False
        machine.verdict = Verdict.UNKNOWN
        machine.pods, machine.load, machine.died = 0, Load.EMPTY, False
        for name in tuple(machine.gangs):
            self._end_job(self.jobs[name])
        self._touch(machine)
        if kind is ActionKind.DELETE:
            self.after(20, 300, lambda: self._delete(machine, outcome))
            return
        if kind is ActionKind.REPLACE:
            machine.exists, machine.cordon = False, ""
        self.after(5, self.random.choice((10, 60, 900)), lambda: self._boot(machine, kind, outcome))

    def _delete(self, machine: Machine, outcome: str) -> None:
        machine.operating = False
        if outcome == "error":
            machine.error, machine.error_at = "Conflict", self.now
        else:
            machine.exists, machine.cordon = False, ""
        self._touch(machine)

    def _boot(self, machine: Machine, kind: ActionKind, outcome: str) -> None:
        machine.operating = False
        self._touch(machine)
        if outcome == "error":
            machine.error, machine.error_at = "OverconstrainedZonalAllocationRequest", self.now
            machine.ready = kind is ActionKind.REIMAGE
            return
        if kind is ActionKind.REPLACE:
            machine.exists = True
        machine.replaced_at, machine.current, machine.tainted = self.now, True, True
        if outcome == "lost":
            return

        def join() -> None:
            machine.ready, machine.booted_at = True, self.now
            self._touch(machine)
            self.after(60, 600, verdict)

        def verdict() -> None:
            machine.verdict = Verdict(outcome) if outcome != "good" else Verdict.PASSED
            machine.tainted = machine.verdict is not Verdict.PASSED
            self._touch(machine)

        self.after(10, 300, join)

    # Readings --------------------------------------------------------------------------------------------------------------------------

    def reading(self, machines: list[str], jobs: list[str]) -> tuple[list[NodeObservation], list[Gang]]:
        """Return observations of some machines and jobs as they are now."""
        nodes = [self.machines[name].observation(self.jobs) for name in machines]
        return nodes, [self.jobs[name].observation() for name in jobs if name in self.jobs]

    def fresh(self, clock: float) -> Freshness:
        """Return the freshness of a complete reading at a time of the process's clock."""
        age = self.random.uniform(0, 20)
        return Freshness(clock - age, clock - age, clock - age)

    def incomplete(self, clock: float) -> Freshness:
        """Return the freshness of a reading of which a part is missing."""
        return replace(self.fresh(clock), incomplete="12 of 13 pages of nodes")


FAULTS = ("transient", "transient", "hardware", "configuration", "error", "lost")
"""Results of a replacement that failed: a verdict, an error of Azure, or a machine that never joins."""
