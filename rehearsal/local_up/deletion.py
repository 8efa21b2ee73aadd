"""Deletion of a stack's resources: dependants first, and no protected resource without approval."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.azure.arm_id import parse
from rehearsal.azure.resource import Request
from rehearsal.azure.stack_records import StackRecord, resource_of
from rehearsal.local_up.machine_counts import machine_count
from rehearsal.local_up.request_scheduler import Failure
from rehearsal.local_up.update_state import BlockedDeletion, Update, WorkSpan

NOT_FOUND = ("ResourceNotFound", "ResourceGroupNotFound", "ParentResourceNotFound", "NotFound")


def record_losses(update: Update, records: Iterable[StackRecord], why: str, instead: str) -> None:
    """Record the protected resources that would be deleted, and the machines that would be lost with the others."""
    for record in records:
        found = resource_of(update.scheduler.cloud, record)
        lost = machine_count(found) if found is not None else 0
        name = found.id.name if found is not None else record.name
        if record.protect and not update.allowed.opens(record):
            update.guarded.append(BlockedDeletion(record.type.rpartition(":")[2], name, lost, why, instead))
        elif lost:
            update.losses[name] = lost


class StackDeletion:
    """Deletion of some records of a stack and of their resources, on the scheduler's clock."""

    def __init__(self, update: Update, records: Iterable[StackRecord]) -> None:
        self.update = update
        self._left = {record.urn: record for record in records}
        self._dependants: dict[str, set[str]] = {urn: set() for urn in self._left}
        for record in self._left.values():
            for urn in record.dependencies:
                if urn in self._dependants:
                    self._dependants[urn].add(record.urn)

    def run(self) -> None:
        """Delete all records; a failure leaves its dependencies, which are recorded as skipped."""
        for urn in [urn for urn, dependants in self._dependants.items() if not dependants]:
            self._delete(self._left[urn])
        self.update.scheduler.finish()
        for urn, dependants in self._dependants.items():
            if dependants:
                self.update.skipped[urn] = min(dependants)

    def _delete(self, record: StackRecord) -> None:
        began = self.update.scheduler.cloud.now
        found = resource_of(self.update.scheduler.cloud, record)
        if found is None or record.retain:
            self._remove(record)
            return

        def ended(failure: Failure | None) -> None:
            self.update.spans[record.urn] = WorkSpan(began, self.update.scheduler.cloud.now)
            if failure is not None and failure.code not in NOT_FOUND:
                self.update.failures[record.urn] = failure
            else:
                self._remove(record)

        self.update.scheduler.send(Request("DELETE", parse(record.id), principal=self.update.principal), ended)

    def _remove(self, record: StackRecord) -> None:
        self.update.stack.records.pop(record.urn, None)
        for urn in record.dependencies:
            dependants = self._dependants.get(urn)
            if dependants is not None:
                dependants.discard(record.urn)
                if not dependants:
                    self._delete(self._left[urn])
