"""Snapshot of a model for a diff: the resources of each stack as requested, and their machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from rehearsal.azure.azure_native_ids import AZURE
from rehearsal.azure.azure_native_requests import MAINTAINED
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.resource import Json
from rehearsal.azure.stack_records import StackRecord, resource_of, stacks_of
from rehearsal.local_up.machine_counts import billed_sizes, is_scale_set, machine_count, outdated_count, upgrading_count


@dataclass(frozen=True, slots=True)
class ResourceSnapshot:
    """One resource of a stack: its requested body, its creation time, its machines, and those with an older model.

    upgrading_count has the machines of a rolling upgrade in progress. billed has the machines that Azure bills, by VM size and location.
    missing is set for a recorded resource that does not exist in Azure, for example because someone deleted it by hand.
    """

    stack: str
    record: StackRecord
    requested: Json
    created: float | None
    machine_count: int | None
    outdated_count: int
    billed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    missing: bool = False
    upgrading_count: int = 0


Snapshot = Mapping[str, ResourceSnapshot]
"""The resources of all stacks, by URN."""


class ChangeType(Enum):
    """Type of a change; the value is the sign that `pulumi preview` prints."""

    CREATE = "+"
    UPDATE = "~"
    REPLACE = "+-"
    DELETE = "-"


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """A change of one resource: for an update or replacement the old and new values by path; failed if it did not complete.

    missing is set where a resource does not exist although the stack has a record of it.
    """

    op: ChangeType
    before: ResourceSnapshot | None
    after: ResourceSnapshot | None
    values: Mapping[str, tuple[Any, Any]]
    failed: bool = False
    missing: bool = False

    @property
    def item(self) -> ResourceSnapshot:
        """Return the resource after the change, or before a deletion."""
        found = self.after or self.before
        if found is None:
            raise ValueError("a change has a resource before or after it")
        return found

    @property
    def machine_counts(self) -> tuple[int, int]:
        """Return the machines before and after."""
        return (self.before and self.before.machine_count) or 0, (self.after and self.after.machine_count) or 0

    @property
    def outdated_count(self) -> int:
        """Return the machines that this change leaves on an older model."""
        return (self.after.outdated_count if self.after else 0) - (self.before.outdated_count if self.before and self.after else 0)


def take_snapshot(cloud: Cloud) -> Snapshot:
    """Return the resources of every stack. Bodies are not copied: a later request replaces them and does not change them."""
    return {record.urn: _item(cloud, stack, record) for stack, record in stacks_of(cloud)}


def billed_machines(snapshot: Snapshot) -> Counter[tuple[str, str]]:
    """Return the machines of all resources that Azure bills, by VM size and location."""
    return sum((Counter(item.billed) for item in snapshot.values()), Counter())


def compare_snapshots(before: Snapshot, after: Snapshot, failed: Collection[str] = ()) -> list[ResourceChange]:
    """Return the changes between two snapshots in creation order, deletions last; failed has the URNs of failed resources."""
    made = (_change(before.get(urn), item) for urn, item in after.items())
    gone = [ResourceChange(ChangeType.DELETE, item, None, {}) for urn, item in before.items() if urn not in after]
    found = [*(change for change in made if change is not None), *reversed(gone)]
    return [replace(change, failed=True) if change.item.record.urn in failed else change for change in found]


def _item(cloud: Cloud, stack: str, record: StackRecord) -> ResourceSnapshot:
    found = resource_of(cloud, record)
    if found is None:
        return ResourceSnapshot(stack, record, (record.kept or {}).get("inputs", {}), None, None, 0, missing=record.azure)
    count, outdated, upgrading = (
        (machine_count(found), outdated_count(found), upgrading_count(found)) if is_scale_set(found) else (None, 0, 0)
    )
    return ResourceSnapshot(stack, record, found.sent, found.created, count, outdated, billed_sizes(found), upgrading_count=upgrading)


def _change(before: ResourceSnapshot | None, after: ResourceSnapshot) -> ResourceChange | None:
    if before is None:
        return ResourceChange(ChangeType.CREATE, None, after, {})
    if before.missing or after.missing:
        return _change_of_missing(before, after)
    values = dict(_differences(before.requested, after.requested, "", MAINTAINED.get(after.record.type.removeprefix(AZURE), ())))
    if before.record.id != after.record.id or before.created != after.created:
        return ResourceChange(ChangeType.REPLACE, before, after, values)
    if not values and (before.record.kept or {}).get("outputs") != (after.record.kept or {}).get("outputs"):
        values = {"renewed": (None, None)}
    moved = before.machine_count != after.machine_count or before.outdated_count != after.outdated_count
    return ResourceChange(ChangeType.UPDATE, before, after, values) if values or moved else None


def _change_of_missing(before: ResourceSnapshot, after: ResourceSnapshot) -> ResourceChange | None:
    """Return the change of a resource that is missing before or after; a replacement whose creation failed is missing after it."""
    if before.missing and after.missing:
        return None
    return ResourceChange(ChangeType.CREATE if before.missing else ChangeType.REPLACE, before, after, {}, missing=before.missing)


def _differences(before: Any, after: Any, path: str, either: tuple[str, ...]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the different values with their paths, as azure-native writes them.

    Properties that other resources write (either) count only where both sides have them.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            if key in either and not (key in before and key in after):
                continue
            below = path if key == "properties" else f"{path}.{key}" if path else key
            yield from _differences(before.get(key), after.get(key), below, either)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old, new, f"{path}[{number}]", either)
    elif before != after:
        yield path, (before, after)
