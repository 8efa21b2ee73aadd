"""A run of a few nodes that a test drives step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lifecycle.rotation.model import (
    ROTATION,
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
)
from lifecycle.rotation.policy import Growth, Policy
from lifecycle.rotation.rotation import Rotation

STARTED = 1_790_000_000.0


def policy(**changes: Any) -> Policy:
    """Return a policy that allows everything that a test does not restrict."""
    deadlines = {Load.NORMAL: 600.0, Load.HIGH: 1_800.0}
    free = Policy(machines=9, per_scale_set=9, scale_sets_at_once=9, deadlines=deadlines, canaries=0, growth=Growth(9, 2), failed_share=1.0)
    return replace(free, **changes)


class DrivenRun:
    """A run over n0, n1 and so on, in scale sets s0 and s1 by turns, with its journal."""

    def __init__(self, count: int = 1, task: Task = Task.ROTATE, **changes: Any) -> None:
        self.now, self.policy = STARTED, policy(**changes)
        self.nodes = tuple(RunNode(f"n{number}", f"s{number % 2}", "gpu", "older image", task) for number in range(count))
        self.seen = {one.name: NodeObservation(one.name, one.scale_set, one.pool) for one in self.nodes}
        self.gangs: dict[str, Gang] = {}
        self.journal: list[Transition] = []
        self.rotation = Rotation(self.nodes, self.policy, STARTED)
        self._news: dict[str, None] = dict.fromkeys(self.seen)

    def see(self, *names: str, **changes: Any) -> None:
        """Change what the next reading shows of nodes."""
        for name in names:
            self.seen[name] = replace(self.seen[name], **changes)
            self._news[name] = None

    def run_gang(self, gang: str, *names: str, load: Load = Load.NORMAL) -> None:
        """Let a gang run on nodes, each with one pod of it."""
        self.gangs[gang] = Gang(gang, names, load, 8, self.now)
        for name in names:
            gangs = (*self.seen[name].gangs, gang)
            self.see(name, gangs=gangs, load=max(load, self.seen[name].load), pods=len(gangs))

    def step(self, seconds: float = 0.0, freshness: Freshness | None = None, ended: Sequence[str] = ()) -> Step:
        """Let time pass, report what changed, and record the step's transitions."""
        self.now += seconds
        fresh = freshness or Freshness(self.now, self.now, self.now)
        self.rotation.observe([self.seen[name] for name in self._news], self.gangs.values(), ended, fresh)
        self._news.clear()
        step = self.rotation.step(self.now)
        self.journal += step.transitions
        return step

    def crash(self) -> None:
        """Go on in a new process, which has the journal and reads everything anew."""
        self.rotation = Rotation(self.nodes, self.policy, STARTED)
        self.rotation.replay(self.journal)
        self._news.update(dict.fromkeys(self.seen))

    def state(self, name: str = "n0") -> NodeState:
        """Return the last state of a node in the journal."""
        return next((one.to for one in reversed(self.journal) if one.node == name), NodeState.PENDING)

    def last(self, name: str = "n0") -> Transition:
        """Return the last transition of a node."""
        return next(one for one in reversed(self.journal) if one.node == name)

    def bring_to(self, state: NodeState, name: str = "n0") -> Step:
        """Bring a node without pods to a state, as a healthy machine does."""
        step = self.step()
        if state in (NodeState.PENDING, NodeState.CORDONED):
            return step
        self.see(name, cordoned_by=ROTATION, pods=int(state is NodeState.DRAINING), load=Load.EMPTY)
        step = self.step(5)
        if state in (NodeState.DRAINING, NodeState.DRAINED, NodeState.REPLACING):
            return step
        self.see(name, current=True, replaced_at=self.now + 60, ready=False)
        step = self.step(60)
        if state is NodeState.JOINING:
            return step
        self.see(name, ready=True, booted_at=self.now + 60)
        return self.step(60)


def kinds(step: Step) -> list[tuple[ActionKind, tuple[str, ...]]]:
    """Return the actions of a step with their nodes."""
    return [(one.kind, one.nodes) for one in step.actions]
