"""Lower bound of a rotation's duration: no order of starts under the same policy can be faster.

The bound takes from a simulated rotation only what no order changes: the seconds that each node is out of service. It is the largest of
several bounds; each of them ignores the limits of the others.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from lifecycle.rotation.calendar import Calendar
from lifecycle.rotation.model import Load
from lifecycle.rotation.policy import Policy
from rehearsal.rotation.population import Population

CALLS_PER_SET = 2
"""Requests to Azure that the machines of a scale set need at least, all of them in one operation."""


@dataclass(frozen=True, slots=True)
class NodeWork:
    """Seconds that one node is out of service. released: seconds from the start before which it cannot start, such as its job's end."""

    name: str
    scale_set: str
    pool: str
    team: str
    seconds: float
    gang: str = ""
    load: Load = Load.EMPTY
    released: float = 0.0


@dataclass(frozen=True)
class LowerBound:
    """Seconds from the start of a rotation to its end, at least. parts: each bound by its reason."""

    parts: Mapping[str, float]

    @property
    def seconds(self) -> float:
        """The largest bound."""
        return max(self.parts.values(), default=0.0)

    @property
    def reason(self) -> str:
        """Reason of the largest bound."""
        return max(self.parts, key=lambda part: self.parts[part], default="")


def node_work(population: Population, work: Mapping[str, float], policy: Policy) -> list[NodeWork]:
    """Return the work of a population's nodes from the seconds by node name.

    A gang that exceeds the budget of the cluster, its pool or its team, or that takes more scale sets down than the policy allows, starts
    when its job has ended.
    """
    job_of = {number: job for job in population.jobs for number in job.machines}
    released = {}
    for job in population.jobs:
        machines = [population.machines[number] for number in job.machines]
        down = sum(1 for count in Counter(one.scale_set for one in machines).values() if count > policy.per_scale_set)
        pools, teams = Counter(one.pool for one in machines), Counter(one.team for one in machines)
        exceeds = len(machines) > policy.machines or _exceed(pools, policy.pools) or _exceed(teams, policy.teams)
        if exceeds or down > policy.scale_sets_at_once:
            released[job.id] = job.remaining
    rows = []
    for number, machine in enumerate(population.machines):
        if machine.name in work:
            place = machine.name, machine.scale_set, machine.pool, machine.team, work[machine.name]
            if number not in job_of:
                rows.append(NodeWork(*place, load=machine.load))
                continue
            job = job_of[number]
            after = released.get(job.id, 0.0)
            # A gang that starts when its job has ended is not a gang then.
            rows.append(NodeWork(*place, gang="" if after else job.id, load=job.load, released=after))
    return rows


def _exceed(counts: Mapping[str, int], bounds: Mapping[str, int]) -> bool:
    return any(count > bounds.get(name, count) for name, count in counts.items())


def lower_bound(nodes: Sequence[NodeWork], policy: Policy, started: float) -> LowerBound:
    """Return the lower bound of the duration of a rotation of nodes that starts at a time, in seconds since 1970.

    It is infinite if the calendar never opens. A unit of nodes larger than its pool's window is taken to wait until the window has grown.
    """
    if not nodes:
        return LowerBound({})
    spans = _Spans(policy.calendar, started)
    by_pool, by_team = _groups(nodes, "pool"), _groups(nodes, "team")
    by_set = _groups([one for one in nodes if not one.gang], "scale_set")
    ramps = {pool: _ramp(rows, policy) for pool, rows in by_pool.items()}
    parts = {"cluster": spans.time(nodes, policy.machines, _together(ramps.values(), policy.machines))}
    for pool, rows in by_pool.items():
        parts[f"pool {pool}"] = spans.time(rows, _pool_bound(pool, policy), ramps[pool])
    for team, rows in by_team.items():
        if team in policy.teams:
            parts[f"team {team}"] = spans.time(rows, min(policy.machines, policy.teams[team]))
    parts["scale set"] = max((spans.time(rows, policy.per_scale_set) for rows in by_set.values()), default=0.0)
    parts["scale sets at once"] = spans.wait + _down_seconds(nodes, policy.per_scale_set) / policy.scale_sets_at_once
    parts["longest node"] = spans.wait + max(_longest(rows, policy) for rows in by_pool.values())
    parts["wait for jobs"] = _after_wait(nodes, policy, started)
    parts["starts per minute"] = spans.wait + _starts_per_minute(nodes, policy)
    parts["starts per day"] = _starts_per_day(nodes, policy, started)
    calls = CALLS_PER_SET * len({one.scale_set for one in nodes})
    parts["calls to Azure"] = spans.wait + max(0.0, (calls / policy.calls_per_minute - 1) * 60)
    return LowerBound(parts)


def _groups(nodes: Iterable[NodeWork], attribute: str) -> dict[str, list[NodeWork]]:
    found: defaultdict[str, list[NodeWork]] = defaultdict(list)
    for one in nodes:
        found[getattr(one, attribute)].append(one)
    return found


def _pool_bound(pool: str, policy: Policy) -> int:
    return min(policy.machines, policy.pools.get(pool, policy.machines))


def _ramp(rows: Sequence[NodeWork], policy: Policy) -> list[int]:
    """Return the most nodes of a pool that can be in rotation in each second, until these are as many as its budget.

    Of n nodes with a verdict at a time t, all but k - 1 took at least as long as the k-th fastest one, d, and have started by t - d. So n
    is at most k - 1 more than the number of nodes that can have started by then: those with a verdict, and the window that these give.
    """
    bound = min(_pool_bound(rows[0].pool, policy), len(rows))
    durations = sorted(math.floor(one.seconds) for one in rows)[: bound + 1]
    smallest = min(Counter(one.gang or one.name for one in rows).values())
    windows = list(itertools.accumulate((max(smallest, _window(good, policy)) for good in range(len(rows) + 1)), max))
    can_start = list(itertools.accumulate((good + window for good, window in enumerate(windows)), max))
    verdicts: list[int] = []
    while True:
        best = len(rows)
        for rank, seconds in enumerate(durations):
            since = len(verdicts) - seconds
            if seconds > 0:
                best = min(best, rank + (can_start[verdicts[since]] if since >= 0 else 0))
            if since < 0:
                break
        if windows[best] >= bound or best == len(rows):
            return [windows[good] for good in verdicts]
        verdicts.append(best)


def _window(good: int, policy: Policy) -> int:
    """Return the nodes of a pool that may be in rotation after a number of good verdicts."""
    if good < policy.canaries:
        return policy.canaries
    return policy.growth.first + (policy.growth.factor - 1) * (good - policy.canaries)


def _together(ramps: Iterable[Sequence[int]], budget: int) -> list[int]:
    """Return the sum of the pools' ramps in each second, until it is as large as the budget; after its end, a pool may use all of it."""
    sums = map(sum, itertools.zip_longest(*ramps, fillvalue=budget))
    return list(itertools.takewhile(lambda usable: usable < budget, sums))


class _Spans:
    """Times at which starts are allowed, from the start of a run; wait: seconds until the first of them."""

    def __init__(self, calendar: Calendar, started: float) -> None:
        self._calendar, self._started = calendar, started
        is_open, changes = calendar.span(started)
        self.wait = 0.0 if is_open else changes - started

    def time(self, rows: Sequence[NodeWork], budget: int, ramp: Sequence[int] = ()) -> float:
        """Return the seconds after which the work of nodes can be done, at most budget of them at once, and at most ramp[s] in second s.

        While no start is allowed, the nodes in rotation at the close go on: at most budget of them, and not the same at each close.
        """
        left = sum(one.seconds for one in rows)
        longest = sorted((one.seconds for one in rows), reverse=True)
        now, second, closes = self._started + self.wait, 0, 0
        while math.isfinite(now):
            _, until = self._calendar.span(now)
            while second < len(ramp) and now < until:
                usable = min(budget, ramp[second])
                length = min(1.0, until - now)
                if left <= usable * length:
                    return now + left / usable - self._started
                left, now, second = left - usable * length, now + length, second + 1
            if left <= budget * (until - now):
                return now + left / budget - self._started
            left -= budget * (until - now)
            is_open, opens = self._calendar.span(until)
            if is_open:
                now = until
                continue
            after = _seconds_of_rest(left, longest[:budget], opens - until)
            if after is not None:
                return until + after - self._started
            left -= sum(longest[closes * budget : (closes + 1) * budget])
            closes += 1
            now = opens
            if left <= 0:
                break
        return now - self._started


def _seconds_of_rest(work: float, longest: Sequence[float], most: float) -> float | None:
    """Return the seconds in which the nodes that are in rotation at a close can do work; None if these are more than most."""
    low, high = 0.0, min(most, longest[0])
    if sum(min(high, one) for one in longest) < work:
        return None
    while high - low > 0.5:
        middle = (low + high) / 2
        low, high = (low, middle) if sum(min(middle, one) for one in longest) >= work else (middle, high)
    return low


def _down_seconds(nodes: Iterable[NodeWork], per_scale_set: int) -> float:
    """Return the sum over scale sets of the seconds in which a gang takes each of them below its own budget.

    With n nodes of a gang out of service, the set is below it until n - per_scale_set of them are back.
    """
    gangs: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for one in nodes:
        if one.gang:
            gangs[one.scale_set, one.gang].append(one.seconds)
    down: dict[str, float] = {}
    for (scale_set, _), seconds in gangs.items():
        if len(seconds) > per_scale_set:
            back = sorted(seconds)[len(seconds) - per_scale_set - 1]
            down[scale_set] = max(down.get(scale_set, 0.0), back)
    return sum(down.values())


def _longest(rows: Sequence[NodeWork], policy: Policy) -> float:
    """Return the seconds of a pool's longest node; a single canary comes before it, or it is the canary, and others come after it."""
    seconds = sorted(one.seconds for one in rows)
    one_by_one = policy.canaries == 1 and len(rows) > 1 and any(not one.gang for one in rows)
    return seconds[-1] + (seconds[0] if one_by_one else 0.0)


def _after_wait(nodes: Iterable[NodeWork], policy: Policy, started: float) -> float:
    """Return the seconds until the nodes have ended that wait for a date or for the end of a job."""
    wait = max(0.0, policy.idle_only_until - started)
    busy = [one.seconds for one in nodes if one.load >= Load.NORMAL] if wait else []
    released = max((one.released + one.seconds for one in nodes if one.released), default=0.0)
    return max(released, wait + max(*busy, sum(busy) / policy.machines)) if busy else released


def _largest_unit(nodes: Iterable[NodeWork]) -> int:
    return max(Counter(one.gang for one in nodes if one.gang).values(), default=1)


def _starts_per_minute(nodes: Sequence[NodeWork], policy: Policy) -> float:
    """Return the seconds until all nodes can have started and the last one ends. A minute's starts may be made at once at the beginning,
    and a gang of more than them as well."""
    rate = policy.starts_per_minute
    beyond = len(nodes) - max(rate, _largest_unit(nodes))
    return max(0, beyond) * 60 / rate + min(one.seconds for one in nodes)


def _starts_per_day(nodes: Sequence[NodeWork], policy: Policy, started: float) -> float:
    """Return the seconds until the first start of the last day that the starts need. A gang of more than a day's starts has its own day."""
    days = math.ceil(len(nodes) / max(policy.starts_per_day, _largest_unit(nodes))) - 1
    if not days:
        return 0.0
    midnight = policy.calendar.midnight(policy.calendar.day(started) + timedelta(days=days))
    return midnight - started + min(one.seconds for one in nodes)
