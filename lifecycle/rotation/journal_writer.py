"""Writer of a journal: no action of a run starts before the record that announces it is durable.

The rule, and why a run survives the end of its process at any point:
1. A step's transitions are appended, in one record, while this process holds the run's lease and the journal's.
2. Only then are the step's actions carried out, and each only while both leases are held.
3. The next process replays the journal. A record that was not confirmed has no actions. Of a confirmed record, any number of actions may
   have taken effect: the decision core observes the nodes and repeats an action that had no effect. Actions are idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lifecycle.rotation.journal import Journal, RunStart, read_journal
from lifecycle.rotation.journal_errors import JournalCorruptError, JournalEmptyError, JournalOrderError
from lifecycle.rotation.journal_records import (
    FinishRecord,
    Record,
    RecordError,
    ResumeRecord,
    RetryRecord,
    RunRecord,
    StepRecord,
    StopRecord,
    columns,
    encode,
    node_groups,
)
from lifecycle.rotation.journal_store import JournalStore
from lifecycle.rotation.model import Action, Step, Transition


class HeldLease(Protocol):
    """Lease that allows one run per cluster."""

    def check_held(self) -> None:
        """Raise a GpufleetError if this process no longer holds the lease."""
        ...


def run_record(start: RunStart) -> RunRecord:
    """Return the first record of a run."""
    return RunRecord(
        seq=0,
        run_id=start.run_id,
        cluster=start.cluster,
        region=start.region,
        at=start.started,
        actor=start.actor,
        targets=dict(start.targets),
        policy=start.policy,
        nodes=node_groups(start.nodes),
    )


class JournalWriter:
    """The run of this process: its journal, and the only way to carry out actions."""

    def __init__(self, store: JournalStore, lease: HeldLease, journal: Journal) -> None:
        self._store, self._lease, self.journal = store, lease, journal

    @classmethod
    def start(cls, store: JournalStore, lease: HeldLease, start: RunStart) -> JournalWriter:
        """Write the run record into a new journal, or into one whose first record was not completed."""
        try:
            first = read_journal(store).start
        except JournalEmptyError:
            store.discard_after(0)
        else:
            raise JournalOrderError(f"{store.name} contains run {first.run_id} already")
        try:
            journal = Journal(start)
        except RecordError as error:
            raise JournalOrderError(str(error)) from None
        writer = cls(store, lease, journal)
        writer._append([run_record(start)])
        return writer

    @classmethod
    def proceed(cls, store: JournalStore, lease: HeldLease, cluster: str) -> JournalWriter:
        """Continue the run of a journal, whose incomplete last record is removed; JournalCorruptError if it is not of the cluster."""
        journal = read_journal(store)
        if journal.start.cluster != cluster:
            reason = f"it is a run of cluster {journal.start.cluster}, not of {cluster}"
            raise JournalCorruptError(store.place(0), 0, reason, "Name a journal of this cluster")
        lease.check_held()
        if journal.dropped:
            store.discard_after(journal.length)
        return cls(store, lease, journal)

    def carry_out(self, step: Step, at: float, execute: Callable[[Action], None]) -> None:
        """Append a step at a time in seconds since 1970, then execute its actions in order.

        A step that stops or finishes the run adds the record of that. A step without either appends nothing: its actions repeat earlier
        ones, which the journal contains.
        """
        records: list[Record] = []
        if step.transitions:
            records.append(StepRecord(seq=self._next(records), **self._columns(step.transitions, at)))
        if step.stopped and step.stopped != self.journal.stopped:
            records.append(StopRecord(seq=self._next(records), at=at, actor="rotation", reason=step.stopped))
        if step.finished and (records or not self.journal.finished):
            records.append(FinishRecord(seq=self._next(records), at=at))
        self._write(records)
        for action in step.actions:
            self._check_held()
            execute(action)

    def stop(self, at: float, actor: str, reason: str) -> None:
        """Record that an operator stopped the run: no more nodes start."""
        self._write([StopRecord(seq=self.journal.records, at=at, actor=actor, reason=reason)])

    def resume(self, at: float, actor: str, reason: str = "") -> None:
        """Record that an operator continued the run."""
        self._write([ResumeRecord(seq=self.journal.records, at=at, actor=actor, reason=reason)])

    def retry(self, at: float, actor: str, transitions: Sequence[Transition]) -> None:
        """Record that an operator put failed or blocked nodes back into the run."""
        self._write([RetryRecord(seq=self.journal.records, actor=actor, **self._columns(transitions, at))])

    def close(self) -> None:
        """Let another process write the journal."""
        self._store.close()

    def _next(self, records: Sequence[Record]) -> int:
        return self.journal.records + len(records)

    def _columns(self, transitions: Sequence[Transition], at: float) -> dict[str, Any]:
        unknown = [one.node for one in transitions if one.node not in self.journal.index]
        if unknown:
            raise JournalOrderError(f"node {unknown[0]} is not in the run")
        return columns(transitions, at, self.journal.index)

    def _write(self, records: Sequence[Record]) -> None:
        """Append records after applying them to the journal, so that nothing is written that a reader would reject."""
        try:
            for record in records:
                self.journal.apply(record)
        except RecordError as error:
            raise JournalOrderError(str(error)) from None
        self._append(records)

    def _append(self, records: Sequence[Record]) -> None:
        self._check_held()
        if records:
            self._store.append(b"".join(map(encode, records)))
            # The append may have lasted long.
            self._check_held()

    def _check_held(self) -> None:
        self._lease.check_held()
        self._store.check_held()
