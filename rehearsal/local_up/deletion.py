"""Decides what of a stack goes, in which order, and what of it may not: nothing goes before everything that depends on it has gone."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.azure.arm_id import parse
from rehearsal.azure.resource import Request
from rehearsal.azure.stack_records import StackRecord, resource_of
from rehearsal.local_up.machine_counts import machine_count
from rehearsal.local_up.request_scheduler import Failure
from rehearsal.local_up.update import BlockedDeletion, Update, WorkSpan

GONE = ("ResourceNotFound", "ResourceGroupNotFound", "ParentResourceNotFound", "NotFound")


def record_losses(update: Update, going: Iterable[StackRecord], why: str, instead: str) -> None:
    """Note each protected resource that would go, why, and what to do instead; and the machines that would go with what may go."""
    for record in going:
        found = resource_of(update.caller.cloud, record)
        lost = machine_count(found) if found is not None else 0
        name = found.id.name if found is not None else record.name
        if record.protect and not update.allowed.opens(record):
            update.guarded.append(BlockedDeletion(record.type.rpartition(":")[2], name, lost, why, instead))
        elif lost:
            update.losses[name] = lost


class StackDeletion:
    """Deletes records of a stack and what they stand for; run by the caller's time."""

    def __init__(self, update: Update, going: Iterable[StackRecord]) -> None:
        self.update = update
        self._left = {record.urn: record for record in going}
        self._held_by: dict[str, set[str]] = {urn: set() for urn in self._left}
        for record in self._left.values():
            for urn in record.dependencies:
                if urn in self._held_by:
                    self._held_by[urn].add(record.urn)

    def run(self) -> None:
        """Delete everything that can be deleted; what fails keeps what it depends on, and both are told."""
        for urn in [urn for urn, holders in self._held_by.items() if not holders]:
            self._delete(self._left[urn])
        self.update.caller.finish()
        for urn, holders in self._held_by.items():
            if holders:
                self.update.skipped[urn] = min(holders)

    def _delete(self, record: StackRecord) -> None:
        began = self.update.caller.cloud.now
        found = resource_of(self.update.caller.cloud, record)
        if found is None or record.retain:
            self._gone(record)
            return

        def ended(failure: Failure | None) -> None:
            self.update.spans[record.urn] = WorkSpan(began, self.update.caller.cloud.now)
            if failure is not None and failure.code not in GONE:
                self.update.failures[record.urn] = failure
            else:
                self._gone(record)

        self.update.caller.send(Request("DELETE", parse(record.id), principal=self.update.principal), ended)

    def _gone(self, record: StackRecord) -> None:
        self.update.stack.records.pop(record.urn, None)
        for urn in record.dependencies:
            holders = self._held_by.get(urn)
            if holders is not None:
                holders.discard(record.urn)
                if not holders:
                    self._delete(self._left[urn])
