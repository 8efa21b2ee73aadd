"""Decision core of a rotation: what starts, continues, is repeated or given up, from the journal, observations, policy and time.

It does no input or output and reads no clock. A caller reports observations, calls step, appends the step's transitions to the journal, and
then carries out its actions. Actions are idempotent: an action without a visible effect is returned again, also in a new process that
replays the journal, so that a crash between journal and action loses nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lifecycle.rotation.model import Action, Freshness, Gang, NodeObservation, NodeState, RunNode, Step, Transition, Wait
from lifecycle.rotation.node_progress import NodeProgress
from lifecycle.rotation.policy import Policy
from lifecycle.rotation.run_state import Batch, InvalidTransitionError, RunState
from lifecycle.rotation.starts import Starts

__all__ = ["InvalidTransitionError", "Rotation"]


class Rotation:
    """One run over some nodes of a cluster, which started at a time."""

    def __init__(self, nodes: Sequence[RunNode], policy: Policy, started: float) -> None:
        self.run = RunState(nodes, policy, started)
        self._progress = NodeProgress(self.run)
        self._starts = Starts(self.run)

    def replay(self, transitions: Iterable[Transition]) -> None:
        """Apply the transitions of a journal, oldest first; raise InvalidTransitionError."""
        self._progress.after_restart(self.run.replay(transitions))

    def stop(self, reason: str) -> None:
        """Start no more nodes; those in rotation continue."""
        self.run.stopped = reason

    def resume(self) -> None:
        """Start nodes again after a stop; verdicts before it no longer count."""
        self.run.resume()

    def retry(self, now: float, actor: str) -> tuple[Transition, ...]:
        """Return transitions, already applied, that make failed nodes drained and blocked nodes pending again, for another attempt."""
        batch = Batch(now)
        for record in self.run.records.values():
            if record.state is NodeState.BLOCKED:
                self.run.change(batch, record, NodeState.PENDING, "retried", actor=actor)
            elif record.state is NodeState.FAILED:
                self.run.change(batch, record, NodeState.DRAINED, "retried", actor=actor, attempt=1)
                self.run.dirty[record.node.name] = None
        return tuple(batch.transitions)

    def observe(
        self,
        nodes: Iterable[NodeObservation] = (),
        gangs: Iterable[Gang] = (),
        ended_gangs: Iterable[str] = (),
        freshness: Freshness | None = None,
    ) -> None:
        """Report what changed: machines of the whole cluster, gangs, gangs that ended, and how fresh and complete the readings are.

        A process reports all machines first. A machine of the run that its reading lacks is reported with exists=False: no time-out counts
        for a node in rotation that was never reported.
        """
        self.run.observe(nodes, gangs, ended_gangs, freshness)

    def step(self, now: float) -> Step:
        """Return the decisions at a time, already applied to this state.

        Append the transitions to the journal before carrying out the actions. If that fails, discard this object and replay the journal.
        """
        batch, run = Batch(now), self.run
        run.wake(now)
        hold = run.not_fresh(now)
        if not hold:
            run.dirty.update(run.held)
            run.held.clear()
        elif run.freshness is not None and run.is_throttled(now):
            batch.wake(run.freshness.throttled_until)
        while run.dirty:
            name = next(iter(run.dirty))
            del run.dirty[name]
            record = run.records.get(name)
            if record is not None:
                self._progress.advance(batch, record, hold)
        self._progress.replace(batch, hold)
        run.check_stop()
        if run.pending_nodes:
            self._starts.start(batch, hold)
            self._starts.give_up(batch)
        batch.wake(run.next_timer())
        actions = tuple(
            Action(kind, tuple(names), reason, scale_set, until) for (kind, reason, scale_set, until), names in batch.actions.items()
        )
        next_at = None if batch.next_at == float("inf") else batch.next_at
        return Step(tuple(batch.transitions), actions, tuple(batch.waits), next_at, run.stopped, run.open == 0)

    def window(self, pool: str) -> int:
        """Return the number of a pool's nodes that may be in rotation, by its verdicts so far."""
        return self._starts.window(pool)

    def explain(self, now: float) -> list[tuple[Wait, tuple[str, ...]]]:
        """Return for all pending nodes why they do not start, grouped by reason, in the order of their start."""
        return self._starts.explain(now)
