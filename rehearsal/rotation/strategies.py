"""Strategies that a rotation is compared with: barrier waves, and node after node in the order of their names.

Both run the production core for the lifecycle of a node, and have the same budgets, canaries and growth. Only the order of starts differs.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from lifecycle.rotation.model import Action, Freshness, Gang, Load, NodeObservation, NodeState, RunNode, Step, Transition, Wait
from lifecycle.rotation.policy import Growth, Policy
from lifecycle.rotation.rotation import Rotation

UNLIMITED = 1_000_000


def _without_growth(policy: Policy) -> Policy:
    """Return a policy without canaries and growth, and without a stop: the strategy itself applies the former."""
    return replace(policy, canaries=0, growth=Growth(first=UNLIMITED), failed_share=1.0)


class _Windows:
    """Nodes of each pool that may be in rotation, by the pool's good verdicts, as in the production core."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._good: Counter[str] = Counter()

    def note(self, pool: str, to: NodeState) -> None:
        """Count a node that is ready."""
        self._good[pool] += to is NodeState.READY

    def of(self, pool: str) -> int:
        """Return the nodes of a pool that may be in rotation."""
        good, policy = self._good[pool], self._policy
        if good < policy.canaries:
            return policy.canaries
        return policy.growth.first + (policy.growth.factor - 1) * (good - policy.canaries)


class BarrierWaves:
    """Waves of nodes: a wave starts when the one before it has ended completely. Gangs start as a whole, nodes without jobs first."""

    def __init__(self, nodes: Sequence[RunNode], policy: Policy, started: float) -> None:
        self._policy, self._started = policy, started
        self._pending = {node.name: node for node in nodes}
        self._pool_of = {node.name: node.pool for node in nodes}
        self._windows = _Windows(policy)
        self._seen: dict[str, NodeObservation] = {}
        self._gangs: dict[str, Gang] = {}
        self._freshness: Freshness | None = None
        self._wave: Rotation | None = None
        self.waves: list[int] = []
        """Nodes of each wave so far."""

    def observe(
        self,
        nodes: Iterable[NodeObservation] = (),
        gangs: Iterable[Gang] = (),
        ended_gangs: Iterable[str] = (),
        freshness: Freshness | None = None,
    ) -> None:
        """Report what changed."""
        nodes, gangs, ended_gangs = list(nodes), list(gangs), list(ended_gangs)
        self._seen.update((one.name, one) for one in nodes)
        self._gangs.update((one.id, one) for one in gangs)
        for gang in ended_gangs:
            self._gangs.pop(gang, None)
        self._freshness = freshness or self._freshness
        if self._wave is not None:
            self._wave.observe(nodes, gangs, ended_gangs, freshness)

    def step(self, now: float) -> Step:
        """Return the decisions at a time: those of the present wave, and of the next one if it has ended."""
        transitions: list[Transition] = []
        actions: list[Action] = []
        while True:
            waits: tuple[Wait, ...]
            if self._wave is None and not self._begin():
                waits = (Wait(len(self._pending), "no gang that fits is pending"),) if self._pending else ()
                return Step(tuple(transitions), tuple(actions), waits, None, "", not self._pending)
            step = self._step_wave(now)
            transitions += step.transitions
            actions += step.actions
            if not step.finished:
                waits = step.waits or (Wait(len(self._pending), "the last wave has not ended"),)
                return replace(step, transitions=tuple(transitions), actions=tuple(actions), waits=waits if self._pending else step.waits)
            self._wave = None

    def _step_wave(self, now: float) -> Step:
        assert self._wave is not None  # noqa: S101 (step begins a wave first)
        step = self._wave.step(now)
        for one in step.transitions:
            self._windows.note(self._pool_of[one.node], one.to)
        return step

    def _begin(self) -> bool:
        """Begin the next wave; return False if no node can be in it."""
        wave = self._next_wave()
        if not wave:
            return False
        self.waves.append(len(wave))
        for node in wave:
            del self._pending[node.name]
        self._wave = Rotation(wave, _without_growth(self._policy), self._started)
        self._wave.observe(self._seen.values(), self._gangs.values(), (), self._freshness)
        return True

    def _next_wave(self) -> list[RunNode]:
        """Return the nodes of the next wave: units in order, as long as the budgets of the cluster, pools and scale sets have space."""
        policy, wave = self._policy, []
        pools: Counter[str] = Counter()
        sets: Counter[str] = Counter()
        teams: Counter[str] = Counter()
        space = policy.machines - sum(one.unavailable for one in self._seen.values())
        for unit in self._units():
            sizes = Counter(node.pool for node in unit)
            owners = Counter(self._seen[node.name].team for node in unit)
            added = Counter(node.scale_set for node in unit)
            fits = (
                len(unit) <= space
                and all(
                    pools[pool] + size <= min(self._windows.of(pool), policy.pools.get(pool, UNLIMITED)) for pool, size in sizes.items()
                )
                and all(teams[team] + size <= policy.teams.get(team, UNLIMITED) for team, size in owners.items())
                and self._sets_have_space(sets, added, gang=len(unit) > 1)
            )
            if fits:
                wave += unit
                pools += sizes
                teams += owners
                sets += added
                space -= len(unit)
            if space <= 0:
                break
        return wave

    def _sets_have_space(self, sets: Counter[str], added: Counter[str], *, gang: bool) -> bool:
        bound = self._policy.per_scale_set
        if not gang:
            return all(sets[name] < bound for name in added)
        down = sum(1 for name in sets | added if sets[name] + added[name] > bound)
        return down <= self._policy.scale_sets_at_once

    def _units(self) -> Iterator[list[RunNode]]:
        """Yield the pending units: nodes without jobs, services, then gangs by the work that an interruption loses."""
        gangs: defaultdict[str, list[RunNode]] = defaultdict(list)
        single: defaultdict[Load, list[RunNode]] = defaultdict(list)
        for name, node in self._pending.items():
            seen = self._seen[name]
            if seen.gangs:
                gangs[seen.gangs[0]].append(node)
            else:
                single[seen.load].append(node)
        for load in sorted(single):
            for node in single[load]:
                yield [node]
        yield from sorted(gangs.values(), key=len)


class NodeOrder:
    """Nodes in the order of their names, each drained on its own, whatever runs on its neighbours.

    signals: a node's job gets a checkpoint signal and its deadline, as in the production core; otherwise it is evicted at once, as kubectl
    drain does.
    """

    def __init__(self, nodes: Sequence[RunNode], policy: Policy, started: float, *, signals: bool = True) -> None:
        self._policy, self._started, self._signals = policy, started, signals
        self._alone = _without_growth(policy)
        self._queues: defaultdict[str, deque[RunNode]] = defaultdict(deque)
        for node in sorted(nodes, key=lambda node: (node.scale_set, node.name)):
            self._queues[node.scale_set].append(node)
        self._node_of = {node.name: node for node in nodes}
        self._pending = self._left = len(nodes)
        self._windows = _Windows(policy)
        self._seen: dict[str, NodeObservation] = {}
        self._gangs: dict[str, Gang] = {}
        self._freshness: Freshness | None = None
        self._runs: dict[str, Rotation] = {}
        self._out: set[str] = set()
        self._sets: Counter[str] = Counter()
        self._pools: Counter[str] = Counter()
        self._dirty: dict[str, None] = {}
        self._timers: list[tuple[float, str]] = []
        self._started_at: deque[float] = deque()

    def observe(
        self,
        nodes: Iterable[NodeObservation] = (),
        gangs: Iterable[Gang] = (),
        ended_gangs: Iterable[str] = (),
        freshness: Freshness | None = None,
    ) -> None:
        """Report what changed."""
        self._freshness = freshness or self._freshness
        for one in nodes:
            self._seen[one.name] = one
            if one.name in self._runs:
                self._runs[one.name].observe((self._view(one),))
                self._dirty[one.name] = None
        for gang in gangs:
            self._gangs[gang.id] = gang
            for name in gang.nodes:
                if name in self._runs:
                    self._runs[name].observe(gangs=self._parts(name))
                    self._dirty[name] = None
        for ended in ended_gangs:
            gone = self._gangs.pop(ended, None)
            for name in () if gone is None else gone.nodes:
                if name in self._runs:
                    self._runs[name].observe(ended_gangs=(ended,))
                    self._dirty[name] = None

    def _view(self, seen: NodeObservation) -> NodeObservation:
        return seen if self._signals or not seen.gangs else replace(seen, gangs=())

    def _parts(self, name: str) -> list[Gang]:
        """Return the gangs of a node as if it were their only one."""
        gangs = (self._gangs[gang] for gang in self._seen[name].gangs if gang in self._gangs) if self._signals else ()
        return [replace(gang, nodes=(name,)) for gang in gangs]

    def step(self, now: float) -> Step:
        """Return the decisions at a time."""
        transitions: list[Transition] = []
        actions: list[Action] = []
        while self._timers and self._timers[0][0] <= now:
            self._dirty[heapq.heappop(self._timers)[1]] = None
        self._advance_dirty(now, transitions, actions)
        wait = self._start(now)
        self._advance_dirty(now, transitions, actions)
        times = [at for at in (self._timers[0][0] if self._timers else None, wait.until if wait else None) if at is not None]
        return Step(tuple(transitions), tuple(actions), (wait,) if wait else (), min(times, default=None), "", self._left == 0)

    def _advance_dirty(self, now: float, transitions: list[Transition], actions: list[Action]) -> None:
        for name in list(self._dirty):
            if name in self._runs:
                self._advance(name, now, transitions, actions)
        self._dirty.clear()

    def _advance(self, name: str, now: float, transitions: list[Transition], actions: list[Action]) -> None:
        """Take a node's step; forget the node when it has ended."""
        run = self._runs[name]
        run.observe(freshness=self._freshness)
        step = run.step(now)
        transitions += step.transitions
        actions += step.actions
        for one in step.transitions:
            self._windows.note(self._node_of[name].pool, one.to)
            if one.to in (NodeState.READY, NodeState.REMOVED):
                self._count(name, -1)
        if step.finished:
            self._left -= 1
            del self._runs[name]
        elif step.next_at is not None:
            heapq.heappush(self._timers, (step.next_at, name))

    def _count(self, name: str, change: int) -> None:
        node = self._node_of[name]
        (self._out.add if change > 0 else self._out.discard)(name)
        self._sets[node.scale_set] += change
        self._pools[node.pool] += change

    def _start(self, now: float) -> Wait | None:
        """Start the first pending nodes that the budgets allow; return why others wait."""
        is_open, changes = self._policy.calendar.span(now)
        if not is_open:
            return Wait(self._pending, "no window is open", changes)
        while self._started_at and self._started_at[0] <= now - 60:
            self._started_at.popleft()
        wait: Wait | None = None
        for queue in self._queues.values():
            while queue:
                wait = self._refusal(queue[0])
                if wait is not None:
                    break
                self._begin(queue.popleft(), now)
            if len(self._out) >= self._policy.machines:
                break
        return wait

    def _refusal(self, node: RunNode) -> Wait | None:
        policy = self._policy
        if len(self._out) >= policy.machines:
            return Wait(self._pending, "cluster has no budget left")
        if self._pools[node.pool] >= min(self._windows.of(node.pool), policy.pools.get(node.pool, UNLIMITED)):
            return Wait(self._pending, f"growth of pool {node.pool}")
        if self._sets[node.scale_set] >= policy.per_scale_set:
            return Wait(self._pending, "scale set has no budget left")
        if len(self._started_at) >= policy.starts_per_minute:
            return Wait(self._pending, f"starts are limited to {policy.starts_per_minute} per minute", self._started_at[0] + 60)
        return None

    def _begin(self, node: RunNode, now: float) -> None:
        run = Rotation([node], self._alone, self._started)
        run.observe((self._view(self._seen[node.name]),), self._parts(node.name), (), self._freshness)
        self._runs[node.name] = run
        self._pending -= 1
        self._count(node.name, 1)
        self._dirty[node.name] = None
        self._started_at.append(now)
