"""Summary of a journal: nodes by state, the last transitions, and the nodes that need an operator, by cause."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lifecycle.rotation.journal import Journal
from lifecycle.rotation.model import IN_ROTATION, NodeState, Transition

NEED_OPERATOR = (NodeState.FAILED, NodeState.BLOCKED)
"""States of a node that only an operator can put back into the run."""


@dataclass(frozen=True)
class CauseRow:
    """Nodes in one state for one cause, in the order of the run."""

    state: NodeState
    cause: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class JournalSummary:
    """State of a run for an operator. states: nodes by state, and by pool. changed: time of the last transition, else the start.

    waiting: nodes that failed or are blocked. last: the last transitions, the latest last.
    """

    states: Mapping[NodeState, int]
    pools: Mapping[str, Mapping[NodeState, int]]
    waiting: tuple[CauseRow, ...]
    last: tuple[Transition, ...]
    changed: float

    @property
    def in_rotation(self) -> int:
        """Nodes that the run has taken out of service and will change further."""
        return sum(count for state, count in self.states.items() if state in IN_ROTATION)


def summarize(journal: Journal, last: int) -> JournalSummary:
    """Return the summary of a journal, with at most `last` transitions."""
    pools: defaultdict[str, Counter[NodeState]] = defaultdict(Counter)
    for node, state in zip(journal.start.nodes, journal.states, strict=True):
        pools[node.pool][state] += 1
    transitions = journal.transitions
    return JournalSummary(
        states=_in_order(Counter(journal.states)),
        pools={pool: _in_order(counts) for pool, counts in pools.items()},
        waiting=tuple(cause_rows(journal)),
        last=tuple(transitions[-last:] if last else ()),
        changed=transitions[-1].at if transitions else journal.start.started,
    )


def cause_rows(journal: Journal) -> Iterator[CauseRow]:
    """Yield the failed and the blocked nodes of a journal by the cause of their last transition, the most frequent cause first."""
    cause_of = {one.node: one.cause for one in journal.transitions}
    for state in NEED_OPERATOR:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for name, now in zip(journal.names, journal.states, strict=True):
            if now is state:
                found[cause_of[name]].append(name)
        rows: Sequence[tuple[str, list[str]]] = sorted(found.items(), key=lambda row: (-len(row[1]), row[0]))
        yield from (CauseRow(state, cause, tuple(nodes)) for cause, nodes in rows)


def _in_order(counts: Counter[NodeState]) -> dict[NodeState, int]:
    """Return the counts in the order of a rotation's states, without zeros."""
    return {state: counts[state] for state in NodeState if counts[state]}
