"""Journal of a rotation: the state of a run, read from its records, and the rules that records obey."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from lifecycle.rotation.garbage_collection import paused_collection
from lifecycle.rotation.journal_errors import JournalCorruptError, JournalEmptyError
from lifecycle.rotation.journal_records import (
    SCHEMA_VERSION,
    FinishRecord,
    Record,
    RecordError,
    ResumeRecord,
    RetryRecord,
    RunRecord,
    StepRecord,
    StopRecord,
    Target,
    decode,
    run_nodes,
    transitions_of,
)
from lifecycle.rotation.journal_store import ReadableJournal
from lifecycle.rotation.model import NEXT_STATES, NodeState, RunNode, Transition
from lifecycle.rotation.policy import Policy

RETRIED_STATES = frozenset({NodeState.FAILED, NodeState.BLOCKED})
"""States that only a retry record may leave."""
RESTORE = "Restore the journal from a backup; without one, start a new run, which selects every node that is not on its pinned image"
UPGRADE = "Continue the run with the gpufleet version that started it, or with a newer one"


@dataclass(frozen=True)
class RunStart:
    """Content of a run's first record: targets, policy and nodes; started is in seconds since 1970."""

    run_id: str
    cluster: str
    region: str
    started: float
    actor: str
    targets: Mapping[str, Target]
    policy: Policy
    nodes: tuple[RunNode, ...]


@dataclass
class Journal:
    """State of a run after the records so far.

    transitions: all of them, in order. stopped: reason of the stop in force, "" without one. resumed_after: number of transitions before
    the last resume; a caller that replays them resumes the core there. finished: every node has ended. records: their number. length:
    their bytes. dropped: bytes of an incomplete last record, which are not part of the journal.
    """

    start: RunStart
    transitions: list[Transition] = field(default_factory=list)
    stopped: str = ""
    resumed_after: int = 0
    finished: bool = False
    records: int = 1
    length: int = 0
    dropped: int = 0

    def __post_init__(self) -> None:
        self.names = tuple(node.name for node in self.start.nodes)
        self.index = {name: number for number, name in enumerate(self.names)}
        if len(self.index) != len(self.names):
            twice = next(name for number, name in enumerate(self.names) if self.index[name] != number)
            raise RecordError(f"node {twice} is twice in the run")
        self.states = [NodeState.PENDING] * len(self.names)

    def apply(self, record: Record) -> None:
        """Add a record; RecordError if the rules do not allow it here, after which the journal must not be used."""
        if record.seq != self.records:
            raise RecordError(f"its sequence number is {record.seq}, but {self.records} follows: records are missing, repeated or mixed")
        if self.finished and not isinstance(record, RetryRecord):
            raise RecordError(f"a {record.kind} record follows the end of the run")
        match record:
            case StepRecord() | RetryRecord():
                self._apply_transitions(record)
                self.finished = False
            case StopRecord():
                self.stopped = record.reason
            case ResumeRecord():
                self.stopped, self.resumed_after = "", len(self.transitions)
            case FinishRecord():
                self.finished = True
            case RunRecord():
                raise RecordError("a second run record")
        self.records += 1

    def _apply_transitions(self, record: StepRecord | RetryRecord) -> None:
        transitions = transitions_of(record, self.names)
        states, retry = self.states, isinstance(record, RetryRecord)
        for node, to in zip(record.nodes, record.to, strict=True):
            state = states[node]
            if to not in NEXT_STATES[state] or (state in RETRIED_STATES) != retry:
                raise RecordError(f"node {self.names[node]} cannot go from {state} to {to} in a {record.kind} record")
            states[node] = to
        self.transitions += transitions


def read_journal(store: ReadableJournal) -> Journal:
    """Return the state of a run from its journal.

    An incomplete last record is dropped: its append was not confirmed, so that no action followed it. JournalEmptyError without a complete
    record; JournalCorruptError for every other fault.
    """
    data = store.read()
    lines, dropped = _complete_lines(data)
    if not lines:
        raise JournalEmptyError(store.name)
    number = at = 0
    try:
        with paused_collection():
            journal = _first(lines[0])
            for line in lines[1:]:
                number, at = number + 1, at + len(lines[number]) + 1
                journal.apply(decode(line))
    except RecordError as error:
        remedy = UPGRADE if _other_version(lines[0]) else RESTORE
        raise JournalCorruptError(store.place(at), number, str(error), remedy) from None
    journal.length, journal.dropped = len(data) - dropped, dropped
    return journal


def _complete_lines(data: bytes) -> tuple[list[bytes], int]:
    """Return the lines that end with a line feed, and the number of bytes behind them.

    A power failure can leave zero bytes where a block of the last append was not written; JSON has none, so that such a line counts as
    incomplete.
    """
    *lines, _ = data.split(b"\n")
    if lines and b"\0" in lines[-1]:
        lines.pop()
    return lines, len(data) - sum(map(len, lines)) - len(lines)


def _first(line: bytes) -> Journal:
    """Return the journal that begins with a run record."""
    version = _other_version(line)
    if version is not None:
        raise RecordError(f"its schema version is {version}, but this program reads version {SCHEMA_VERSION}")
    record = decode(line)
    if not isinstance(record, RunRecord) or record.seq != 0:
        raise RecordError("the journal does not begin with a run record of number 0")
    return Journal(
        RunStart(record.run_id, record.cluster, record.region, record.at, record.actor, record.targets, record.policy, run_nodes(record))
    )


def _other_version(line: bytes) -> object:
    """Return the schema version of a run record if this program does not read it, else None."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    version = document.get("schema_version", SCHEMA_VERSION) if isinstance(document, dict) else SCHEMA_VERSION
    return None if version == SCHEMA_VERSION else version
