"""Modelled fleet of a simulated rotation: machines, jobs and Azure in virtual time, which carry out a rotation's actions.

A full model of Azure and a control plane would take minutes for 7,500 machines. This fleet has the same durations, call rates and faults,
and one object per machine. Times are whole seconds since 1970.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from lifecycle.rotation.model import ROTATION, Action, ActionKind, Gang, Load, NodeObservation, Verdict
from rehearsal.azure.durations import DEFAULTS, Duration, OperationName
from rehearsal.azure.scenario import Throttling
from rehearsal.rotation.azure_calls import AzureCalls, Call
from rehearsal.rotation.draws import Draws
from rehearsal.rotation.population import Conditions, Job, Machine, Population

OPERATION_ERROR = "InternalExecutionError"
"""Error code of an operation that fails once: "An internal execution error occurred. Please retry later."."""
HARDWARE, FLAKY_CHECK, FLAKY_OPERATION = "hardware", "flaky check", "flaky operation"
"""Faults of a machine: until it is replaced; in its first checks; in its first operation."""


@dataclass(slots=True)
class Changes:
    """What has changed since the last reading: nodes, gangs that run, and ids of gangs that do not run any more."""

    nodes: list[NodeObservation] = field(default_factory=list)
    gangs: list[Gang] = field(default_factory=list)
    ended_gangs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Losses:
    """Work lost to the rotation: GPU-hours since the last checkpoint, GPU-hours of waiting gangs, and interruptions by gang."""

    work: float = 0.0
    waiting: float = 0.0
    interruptions: dict[str, int] = field(default_factory=dict)

    @property
    def gpu_hours(self) -> float:
        """GPU-hours in total."""
        return self.work + self.waiting


class FleetMachine:
    """State of one machine. attempt counts its operations; operating: one runs; busy: one runs, waits for Azure, or the machine boots.

    signalled_at, deadline and evicted_at: of the present drain, None before. gone: the rotation has given it up.
    """

    __slots__ = (
        "attempt", "booted_at", "busy", "cordoned_by", "current", "deadline", "error", "error_at", "evicted_at", "exists", "fault",
        "gone", "index", "job", "load", "operating", "pods", "ready", "replaced_at", "row", "signalled_at", "verdict",
    )  # fmt: skip

    def __init__(self, index: int, row: Machine) -> None:
        self.index = index
        self.row = row
        self.job: FleetJob | None = None
        self.load, self.pods = row.load, row.pods
        self.exists, self.ready, self.current = True, True, False
        self.busy = self.operating = self.gone = False
        self.signalled_at: int | None = None
        self.evicted_at: int | None = None
        self.deadline = math.inf
        self.cordoned_by, self.error, self.fault = "", "", ""
        self.attempt = self.replaced_at = self.booted_at = self.error_at = 0
        self.verdict = Verdict.PASSED

    @property
    def available(self) -> bool:
        """Return True if pods can start on the machine."""
        return self.exists and self.ready and not self.cordoned_by

    def observation(self) -> NodeObservation:
        """Return the machine as a rotation reads it."""
        row, job = self.row, self.job
        running = job is not None and job.running
        return NodeObservation(
            name=row.name,
            scale_set=row.scale_set,
            pool=row.pool,
            team=row.team,
            exists=self.exists,
            ready=self.ready,
            cordoned_by=self.cordoned_by,
            load=job.load if job is not None and running else self.load,
            gangs=(job.id,) if job is not None and running else (),
            pods=job.pods if job is not None and running else self.pods,
            replaced_at=float(self.replaced_at),
            booted_at=float(self.booted_at),
            current=self.current,
            operating=self.operating,
            operation_error=self.error,
            operation_at=float(self.error_at),
            verdict=self.verdict,
        )


class FleetJob:
    """State of one gang and of its successors on the same machines; away counts its machines on which no pod can start.

    remaining: seconds of work at the last start. leaves: it has a checkpoint signal, and will end when the checkpoint is written.
    run: counts its starts and ends, so that events of an earlier one are recognized. interrupted: by the rotation, and waits.
    """

    __slots__ = (
        "away", "checkpoint_at", "every", "gpus", "index", "interrupted", "leaves", "load", "machines", "number", "pods", "remaining",
        "row", "run", "running", "since",
    )  # fmt: skip

    def __init__(self, index: int, row: Job, pods: int, now: int) -> None:
        self.index, self.row, self.pods = index, row, pods
        self.machines: tuple[FleetMachine, ...] = ()
        self.load, self.gpus, self.every = row.load, row.gpus, row.checkpoint_every
        self.checkpoint_at = now - row.checkpoint_age
        self.remaining, self.since = row.remaining, now
        self.number = self.run = self.away = 0
        self.running, self.interrupted, self.leaves = True, False, False

    @property
    def id(self) -> str:
        """Id of the gang; a successor has another one."""
        return f"{self.row.id}.{self.number}" if self.number else self.row.id

    @property
    def gpus_in_all(self) -> int:
        """GPUs of all its machines."""
        return self.gpus * len(self.machines)

    def gang(self) -> Gang:
        """Return the gang as a rotation reads it."""
        return Gang(self.id, tuple(one.row.name for one in self.machines), self.load, self.gpus, self.checkpoint_at)


class ModelledFleet:
    """Machines, jobs and Azure of one cluster. work contains each machine's seconds out of service, without waits for the rotation."""

    def __init__(
        self,
        population: Population,
        conditions: Conditions,
        started: int,
        throttling: Throttling | None = None,
        durations: Mapping[OperationName, Duration] = DEFAULTS,
    ) -> None:
        self._figures = population.figures
        self._conditions = conditions
        self._durations = durations
        self._draws = Draws(population.seed)
        self._now = started
        self._order = itertools.count()
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._changed: dict[int, None] = {}
        self._changed_gangs: dict[int, FleetJob] = {}
        self._ended_gangs: list[str] = []
        self._calls = AzureCalls(throttling or Throttling())
        self._sending = False
        self._continued_at = 0
        self.losses = Losses()
        self.machines = [FleetMachine(index, row) for index, row in enumerate(population.machines)]
        self.work = [0.0] * len(self.machines)
        self.unavailable = 0
        self._by_name = {one.row.name: one for one in self.machines}
        self.jobs = [self._job(index, row) for index, row in enumerate(population.jobs)]
        for machine in self.machines:
            machine.fault = self._fault(machine.index)

    def _job(self, index: int, row: Job) -> FleetJob:
        job = FleetJob(index, row, self._figures.pods.gang, self._now)
        job.machines = tuple(self.machines[number] for number in row.machines)
        for machine in job.machines:
            machine.job = job
        self._plan_run(job)
        return job

    def _fault(self, index: int) -> str:
        """Return the fault of a machine, "" without one."""
        conditions = self._conditions
        if self._draws.uniform("failing", index) >= conditions.failing_share:
            return ""
        if self._draws.uniform("hardware", index) < conditions.hardware_share:
            return HARDWARE
        return FLAKY_CHECK if self._draws.uniform("flaky", index) < 0.5 else FLAKY_OPERATION

    def all(self) -> Changes:
        """Return every machine and every gang, as a first complete reading."""
        running = [job.gang() for job in self.jobs if job.running]
        return Changes([machine.observation() for machine in self.machines], running, [])

    @property
    def throttled_until(self) -> float:
        """Time until which Azure refuses calls, 0 if it accepts them."""
        return float(self._calls.throttled_until) if self._calls.throttled_until > self._now else 0.0

    @property
    def calls(self) -> tuple[int, int]:
        """Calls that Azure has accepted and refused."""
        return self._calls.accepted, self._calls.refused

    @property
    def next_at(self) -> int | None:
        """Time of the next event, None if none lies ahead."""
        return self._events[0][0] if self._events else None

    def advance(self, now: float) -> Changes:
        """Carry out the events up to a time; return what has changed, which is nothing most of the time."""
        while self._events and self._events[0][0] <= now:
            at, _, event = heapq.heappop(self._events)
            self._now = at
            event()
        self._now = max(self._now, math.floor(now))
        if not (self._changed or self._changed_gangs or self._ended_gangs):
            return _NOTHING
        machines = self.machines
        started = [job.gang() for job in self._changed_gangs.values() if job.running]
        changes = Changes([machines[index].observation() for index in self._changed], started, self._ended_gangs)
        self._changed, self._changed_gangs, self._ended_gangs = {}, {}, []
        return changes

    def carry_out(self, actions: Iterable[Action]) -> None:
        """Begin actions; their effects become visible with later changes. An action without effect on a machine leaves it as it is."""
        for action in actions:
            machines = [self._by_name[name] for name in action.nodes]
            match action.kind:
                case ActionKind.CORDON:
                    self._after_request(lambda machine: self._set_cordon(machine, ROTATION), machines)
                case ActionKind.UNCORDON:
                    self._after_request(lambda machine: self._set_cordon(machine, ""), machines)
                case ActionKind.SIGNAL_CHECKPOINT:
                    for machine in machines:
                        self._signal(machine, action.until)
                case ActionKind.EVICT:
                    for machine in machines:
                        self._evict(machine)
                case _:
                    self._operate(action.kind, action.scale_set, [one for one in machines if not one.busy])

    def take_out(self, names: Iterable[str]) -> None:
        """Let machines be out of service from the beginning to the end; their gangs run without them."""
        for name in names:
            machine = self._by_name.get(name)
            if machine is not None and machine.available:
                machine.ready, machine.gone = False, True
                self.unavailable += 1

    def give_up(self, name: str) -> None:
        """Let a machine's gang run without it: the rotation has ended with the machine out of service, and the scheduler has others."""
        machine = self._by_name[name]
        if not machine.gone:
            machine.gone = True
            if machine.job is not None and not machine.available:
                machine.job.away -= 1
                self._restart_if_complete(machine.job)

    def account_waiting(self, until: float) -> None:
        """Add the waiting of the gangs that are interrupted at the end."""
        for job in self.jobs:
            if job.interrupted:
                self.losses.waiting += (until - job.since) * job.gpus_in_all / 3_600

    # Events

    def _at(self, at: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (max(math.ceil(at), self._now), next(self._order), event))

    def _after_request(self, change: Callable[[FleetMachine], None], machines: Sequence[FleetMachine]) -> None:
        seconds = self._figures.request_seconds

        def apply() -> None:
            for machine in machines:
                change(machine)

        for machine in machines:
            self.work[machine.index] += seconds
        self._at(self._now + seconds, apply)

    def _update(self, machine: FleetMachine, available_before: bool) -> None:
        """Note a change of a machine, and count it and its gang's machines that are away."""
        self._changed[machine.index] = None
        available = machine.available
        if available == available_before:
            return
        self.unavailable += -1 if available else 1
        job = machine.job
        if job is not None and not machine.gone:
            job.away += -1 if available else 1
            if available:
                self._restart_if_complete(job)

    def _set_cordon(self, machine: FleetMachine, owner: str) -> None:
        before = machine.available
        if machine.cordoned_by != owner:
            machine.cordoned_by = owner
            if not owner:
                machine.signalled_at, machine.evicted_at, machine.deadline = None, None, math.inf
            self._update(machine, before)

    # Jobs

    def _signal(self, machine: FleetMachine, until: float | None) -> None:
        """Request a checkpoint of the machine's pods: those that honour it end before the deadline."""
        if machine.signalled_at is not None:
            return
        machine.signalled_at, machine.deadline = self._now, math.inf if until is None else until
        job = machine.job
        if job is not None and job.running:
            if not job.leaves and self._honours("honours", job.index, job.number):
                job.leaves = True
                seconds = self._draws.seconds(self._conditions.checkpoint, "checkpoint", job.index, job.number)
                self._at(self._now + seconds, partial(self._end_after_signal, job, job.run))
        elif machine.load is not Load.EMPTY and not machine.row.serving and self._honours("honours pods", machine.index):
            seconds = self._draws.seconds(self._conditions.checkpoint, "checkpoint of pods", machine.index)
            self._at(self._now + seconds, partial(self._remove_pods, machine))

    def _honours(self, name: str, item: int, attempt: int = 0) -> bool:
        return self._draws.uniform(name, item, attempt) < self._conditions.honours_signal

    def _evict(self, machine: FleetMachine) -> None:
        """Evict the machine's pods. The other pods of a gang end too, as those of an MPI job do."""
        if machine.evicted_at is not None:
            return
        machine.evicted_at = self._now
        figures, job = self._figures.eviction, machine.job
        if job is not None and job.running:
            self._at(self._now + figures.pod_seconds, partial(self._end_evicted, job, job.run))
        elif machine.row.serving:
            self._at(self._now + self._draws.seconds(figures.services, "service", machine.index), partial(self._remove_pods, machine))
        elif machine.load is not Load.EMPTY:
            seconds = figures.balloon_seconds if machine.load is Load.BALLOON else figures.pod_seconds
            self._at(self._now + seconds, partial(self._remove_pods, machine))

    def _remove_pods(self, machine: FleetMachine) -> None:
        machine.load, machine.pods = Load.EMPTY, 0
        self._changed[machine.index] = None
        self._count_drain(machine)

    def _count_drain(self, machine: FleetMachine) -> None:
        """Count the time in which a machine's pods left as work, but not an eviction later than the deadline."""
        began = machine.evicted_at if machine.signalled_at is None else machine.signalled_at
        if began is not None:
            late = 0.0 if machine.evicted_at is None else max(0.0, machine.evicted_at - max(machine.deadline, began))
            self.work[machine.index] += self._now - began - late
            machine.signalled_at, machine.evicted_at, machine.deadline = None, None, math.inf

    def _end_after_signal(self, job: FleetJob, run: int) -> None:
        """End a job that has written its checkpoint: it loses no work."""
        if run == job.run:
            job.checkpoint_at = self._now
            self._interrupt(job)

    def _end_evicted(self, job: FleetJob, run: int) -> None:
        if run == job.run:
            self._interrupt(job)

    def _interrupt(self, job: FleetJob) -> None:
        """Stop a job for the rotation: it waits until all its machines are back, and repeats what it did after its last checkpoint."""
        lost = self._now - job.checkpoint_at
        self.losses.work += lost * job.gpus_in_all / 3_600
        self.losses.interruptions[job.id] = self.losses.interruptions.get(job.id, 0) + 1
        job.remaining = max(1.0, job.remaining - (self._now - job.since)) + lost
        job.interrupted = True
        self._stop(job)
        self._restart_if_complete(job)

    def _stop(self, job: FleetJob) -> None:
        job.running, job.since, job.leaves = False, self._now, False
        job.run += 1
        self._ended_gangs.append(job.id)
        self._changed_gangs.pop(job.index, None)
        for machine in job.machines:
            self._changed[machine.index] = None
            self._count_drain(machine)

    def _plan_run(self, job: FleetJob) -> None:
        """Plan the end and the next checkpoint of a job that runs."""
        self._at(self._now + job.remaining, partial(self._end, job, job.run))
        self._at(job.checkpoint_at + job.every, partial(self._checkpoint, job, job.run))

    def _checkpoint(self, job: FleetJob, run: int) -> None:
        """Write a checkpoint of a job that runs, as it does at intervals."""
        if run == job.run:
            job.checkpoint_at = self._now
            self._changed_gangs[job.index] = job
            self._at(self._now + job.every, partial(self._checkpoint, job, run))

    def _end(self, job: FleetJob, run: int) -> None:
        """End a job that is done; after a while the next one starts on its machines."""
        if run != job.run:
            return
        self._stop(job)
        job.number += 1
        figures = self._figures.gangs
        job.remaining = self._draws.seconds(figures.run_time, "run time", job.index, job.number)
        wait = self._draws.seconds(figures.queue, "queue", job.index, job.number)
        self._at(self._now + wait, partial(self._start, job, job.run))

    def _restart_if_complete(self, job: FleetJob) -> None:
        if job.away == 0 and not job.running:
            self._at(self._now + self._figures.request_seconds, partial(self._start, job, job.run))

    def _start(self, job: FleetJob, run: int) -> None:
        """Start a job on all its machines, unless one is away or it has started already."""
        if run != job.run or job.running or job.away:
            return
        if job.interrupted:
            self.losses.waiting += (self._now - job.since) * job.gpus_in_all / 3_600
        job.run += 1
        job.running, job.interrupted, job.since = True, False, self._now
        job.checkpoint_at = self._now
        self._changed_gangs[job.index] = job
        if job.id in self._ended_gangs:
            self._ended_gangs.remove(job.id)
        for machine in job.machines:
            self._changed[machine.index] = None
        self._plan_run(job)

    # Azure

    def _operate(self, kind: ActionKind, scale_set: str, machines: Sequence[FleetMachine]) -> None:
        """Send the requests for machines of a scale set; they are busy until the operation ends.

        A reimage needs two: the first applies the scale set's new model to the instances.
        """
        if not machines:
            return
        for machine in machines:
            machine.busy = True
            machine.attempt += 1
        if kind is ActionKind.REIMAGE:
            self._send("manualupgrade", scale_set, lambda: self._send("reimage", scale_set, lambda: self._reimage(machines)))
        else:
            self._send("delete", scale_set, lambda: self._delete(machines, kind is ActionKind.REPLACE))

    def _send(self, verb: str, scale_set: str, accepted: Callable[[], None]) -> None:
        """Send a request now, or after those that wait. An accepted request may send another one, which is then the last."""
        self._calls.add(Call(verb, scale_set, accepted))
        if not self._sending:
            self._continue_calls()

    def _continue_calls(self) -> None:
        self._sending = True
        again = self._calls.send(self._now)
        self._sending = False
        if again is not None and again != self._continued_at:
            self._continued_at = again
            self._at(again, self._continue_calls)

    def _take(self, machine: FleetMachine, name: OperationName) -> int:
        """Return the seconds of an operation on a machine, and count them as work."""
        seconds = self._draws.seconds(self._durations[name], name, machine.index, machine.attempt)
        self.work[machine.index] += seconds
        return seconds

    def _leave(self, machine: FleetMachine) -> None:
        """Begin an operation that takes a machine out of service."""
        before = machine.available
        machine.operating, machine.ready, machine.current = True, False, False
        machine.error, machine.verdict = "", Verdict.UNKNOWN
        self._update(machine, before)

    def _reimage(self, machines: Sequence[FleetMachine]) -> None:
        for machine in machines:
            self._leave(machine)
            self._at(self._now + self._take(machine, "vm.reimage"), partial(self._written, machine))

    def _delete(self, machines: Sequence[FleetMachine], renew: bool) -> None:
        for machine in machines:
            self._leave(machine)
            self._at(self._now + self._take(machine, "vm.delete"), partial(self._deleted, machine, renew))

    def _deleted(self, machine: FleetMachine, renew: bool) -> None:
        """Remove a machine; to renew it, restore the scale set's capacity, which gives it other hardware."""
        machine.exists, machine.operating = False, renew
        self._changed[machine.index] = None
        if renew:
            if machine.fault == HARDWARE:
                machine.fault = ""
            self._send("update", machine.row.scale_set, partial(self._create, machine))

    def _create(self, machine: FleetMachine) -> None:
        self._at(self._now + self._take(machine, "vm.create"), partial(self._written, machine))

    def _written(self, machine: FleetMachine) -> None:
        """End an operation that wrote the machine's disk, or fail it; then the machine boots and joins."""
        machine.exists, machine.operating = True, False
        self._changed[machine.index] = None
        if machine.fault == FLAKY_OPERATION:
            machine.fault, machine.error, machine.error_at, machine.busy = "", OPERATION_ERROR, self._now, False
            return
        machine.replaced_at, machine.current = self._now, True
        boot = self._take(machine, "vm.boot")
        spread = self._draws.uniform("join", machine.index, machine.attempt) * machine.row.join_seconds
        join = math.ceil(spread + self._figures.kubelet_seconds)
        self.work[machine.index] += join
        self._at(self._now + boot + join, partial(self._join, machine, self._now + boot))

    def _join(self, machine: FleetMachine, booted_at: int) -> None:
        """Let a machine join the cluster on the target image, and check it."""
        before = machine.available
        machine.booted_at, machine.ready, machine.busy = booted_at, True, False
        self._update(machine, before)
        least, most = self._figures.preflight_minutes
        share = self._draws.uniform("preflight", machine.index, machine.attempt)
        seconds = math.ceil(60 * (least + (most - least) * share))
        self.work[machine.index] += seconds
        self._at(self._now + seconds, partial(self._check, machine, machine.attempt))

    def _check(self, machine: FleetMachine, attempt: int) -> None:
        """Give the verdict of a boot."""
        if attempt != machine.attempt:
            return
        self._changed[machine.index] = None
        if machine.fault == HARDWARE:
            machine.verdict = Verdict.HARDWARE
        elif machine.fault == FLAKY_CHECK:
            machine.fault, machine.verdict = "", Verdict.TRANSIENT
        else:
            machine.verdict = Verdict.PASSED


_NOTHING = Changes()
