"""Decides what of a model a person compares before and after an update: what each stack has, as it was asked for, and its machines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from rehearsal.azure.azure_native_calls import MAINTAINED
from rehearsal.azure.azure_native_ids import AZURE
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.resource import Json
from rehearsal.azure.stack_records import Record, resource_of, stacks_of
from rehearsal.local_up.machine_counts import behind, is_scale_set, machines


@dataclass(frozen=True, slots=True)
class Item:
    """One resource of a stack: what it was asked to be, the moment since which it exists, its machines, and those of an older model."""

    stack: str
    record: Record
    asked: Json
    since: float | None
    machines: int | None
    behind: int


Picture = Mapping[str, Item]
"""Everything that all stacks have, by URN."""


class Op(Enum):
    """What becomes of a resource, by the sign that `pulumi preview` gives it."""

    CREATE = "+"
    UPDATE = "~"
    REPLACE = "+-"
    DELETE = "-"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one resource: values by path, before and after, where it is updated or replaced; failed where that was begun only."""

    op: Op
    before: Item | None
    after: Item | None
    values: Mapping[str, tuple[Any, Any]]
    failed: bool = False

    @property
    def item(self) -> Item:
        """The resource as it is now, or as it was last."""
        found = self.after or self.before
        if found is None:
            raise ValueError("a change of nothing")
        return found

    @property
    def machines(self) -> tuple[int, int]:
        """Machines before and after."""
        return (self.before and self.before.machines) or 0, (self.after and self.after.machines) or 0

    @property
    def behind(self) -> int:
        """Machines that this left on an older model."""
        return (self.after.behind if self.after else 0) - (self.before.behind if self.before and self.after else 0)


def picture(cloud: Cloud) -> Picture:
    """What every stack has now. Bodies are Azure's own, which a later request replaces and never changes."""
    return {record.urn: _item(cloud, stack, record) for stack, record in stacks_of(cloud)}


def changes(before: Picture, after: Picture, failed: Collection[str] = ()) -> list[Change]:
    """What differs between two pictures, in the order of making, what goes last; failed are the URNs of what did not end well."""
    made = (_change(before.get(urn), item) for urn, item in after.items())
    gone = [Change(Op.DELETE, item, None, {}) for urn, item in before.items() if urn not in after]
    found = [*(change for change in made if change is not None), *reversed(gone)]
    return [replace(change, failed=True) if change.item.record.urn in failed else change for change in found]


def _item(cloud: Cloud, stack: str, record: Record) -> Item:
    found = resource_of(cloud, record)
    if found is None:
        return Item(stack, record, (record.kept or {}).get("inputs", {}), None, None, 0)
    has_machines = is_scale_set(found)
    return Item(stack, record, found.sent, found.created, machines(found) if has_machines else None, behind(found) if has_machines else 0)


def _change(before: Item | None, after: Item) -> Change | None:
    if before is None:
        return Change(Op.CREATE, None, after, {})
    values = dict(_differences(before.asked, after.asked, "", MAINTAINED.get(after.record.type.removeprefix(AZURE), ())))
    if before.record.id != after.record.id or before.since != after.since:
        return Change(Op.REPLACE, before, after, values)
    if not values and (before.record.kept or {}).get("outputs") != (after.record.kept or {}).get("outputs"):
        values = {"renewed": (None, None)}
    moved = before.machines != after.machines or before.behind != after.behind
    return Change(Op.UPDATE, before, after, values) if values or moved else None


def _differences(before: Any, after: Any, path: str, either: tuple[str, ...]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Values that differ, by the path at which they do, as azure-native writes it.

    What other resources may write (either) counts only where both sides have it.
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
