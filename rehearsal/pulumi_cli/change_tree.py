"""Decides how the steps of an engine are drawn: as the same tree of changes that an update in process has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from rehearsal.azure.azure_native_ids import AZURE, PLACEHOLDER
from rehearsal.azure.azure_native_paths import GROUP_PATHS, SCOPE_PATHS
from rehearsal.azure.stack_records import Record
from rehearsal.local_up.diff_text import DONE, PLANNED, tree_lines
from rehearsal.local_up.snapshot import Change, Item, Op
from rehearsal.local_up.update import SCALE_SET
from rehearsal.pulumi_cli.events import REPLACEMENT_STEPS, STACK, UNCHANGED, Json, OperationTimeline, ResourceStep

OPS: Mapping[str, Op] = {"create": Op.CREATE, "import": Op.CREATE, "update": Op.UPDATE, "replace": Op.REPLACE, "delete": Op.DELETE}
REFRESH_WORDS: Mapping[Op, str] = {Op.CREATE: "found", Op.UPDATE: "changed by hand", Op.REPLACE: "made anew by hand", Op.DELETE: "gone"}
KEY = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')
REPLACE_MARK = " (must be made anew)"
UNKNOWN_GROUP = "unknown"


def tree_of_changes(course: OperationTimeline, *, everything: bool) -> list[str]:
    """The changes of one operation as a tree; with everything each resource by itself with its values."""
    steps = {step.urn: step for step in course.begun.values()} | course.ended
    items = {urn: _item(course.stack, step) for urn, step in steps.items() if step.type != STACK}
    found = [change for step in course.changed() if (change := _change(course, step, items[step.urn])) is not None]
    begun = (course.begun[urn] for urn in course.begun if urn in course.failed and urn not in course.ended)
    found += [change for step in begun if (change := _change(course, step, items[step.urn])) is not None]
    return tree_lines(found, items, items, everything=everything)


def count_line(course: OperationTimeline) -> str:
    """What the operation came to, as `pulumi` counts it: the stack itself is one of them."""
    words = {"preview": PLANNED, "refresh": REFRESH_WORDS}.get(course.verb, DONE)
    told = [f"{sign.value} {course.changes[op]:,} {words[sign]}" for op, sign in OPS.items() if course.changes.get(op)]
    told += [f"{len(course.failed):,} failed"] if course.failed else []
    same = course.changes.get("same", 0)
    return ", ".join([*told, f"{same:,} unchanged"])


def value_at(properties: Any, path: str) -> Any:
    """The value at a path as the engine writes it (`sku.capacity`, `rules[0].name`, `tags["a.b"]`); None where there is none."""
    for quoted, index, name in KEY.findall(path):
        if index:
            properties = properties[int(index)] if isinstance(properties, list) and int(index) < len(properties) else None
        else:
            properties = properties.get(quoted or name) if isinstance(properties, Mapping) else None
    return properties


def _change(course: OperationTimeline, step: ResourceStep, item: Item) -> Change | None:
    op = OPS.get(REPLACEMENT_STEPS.get(step.op, step.op))
    if op is None or step.op in UNCHANGED:
        return None
    before = None if op is Op.CREATE else _item(course.stack, step, old=True)
    values = dict(_values(course, step)) if op in (Op.UPDATE, Op.REPLACE) else {}
    return Change(op, before, None if op is Op.DELETE else item, values, failed=step.urn in course.failed)


def _values(course: OperationTimeline, step: ResourceStep) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """What differs, by path, with a word at what forces a replacement; of a refresh, what was found instead of what was known."""
    part = "outputs" if course.verb == "refresh" else "inputs"
    old, new = step.old.get(part) or {}, step.new.get(part) or {}
    for path, kind in sorted(step.paths.items()):
        forces = kind.endswith("-replace") or path in step.keys
        yield f"{path}{REPLACE_MARK if forces else ''}", _without_common_prefix(value_at(old, path), value_at(new, path))
    for key in sorted(set(step.keys or step.diffs) - {re.split(r"[.\[]", path)[0] for path in step.paths}):
        yield f"{key}{REPLACE_MARK if key in step.keys else ''}", (old.get(key), new.get(key))


def _without_common_prefix(old: Any, new: Any) -> tuple[Any, Any]:
    """Two values, less the parts of a path that both begin with: ids of Azure's differ at their ends, which no line has room for."""
    if not (isinstance(old, str) and isinstance(new, str)):
        return old, new
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    kept = old[:same].rpartition("/")[0]
    return (f"…{old.removeprefix(kept)}", f"…{new.removeprefix(kept)}") if kept else (old, new)


def _item(stack: str, step: ResourceStep, *, old: bool = False) -> Item:
    state = (step.old if old else step.state) or step.state
    inputs = state.get("inputs") or {}
    record = Record(
        urn=step.urn,
        type=step.type,
        parent=None if STACK in state.get("parent", "").rpartition("::")[0].rpartition("$")[2] else state.get("parent") or None,
        id=_id(step, state, inputs),
        protect=bool(state.get("protect")),
    )
    capacity = (inputs.get("sku") or {}).get("capacity") if step.type.rpartition(":")[2] == SCALE_SET else None
    return Item(stack, record, inputs, None, capacity if isinstance(capacity, int) else None, 0)


def _id(step: ResourceStep, state: Json, inputs: Json) -> str:
    """The resource's id; of what is planned one of the same shape, by the names that are known; empty for a component."""
    if not state.get("custom"):
        return ""
    if not step.type.startswith(AZURE):
        return state.get("id") or step.name
    if str(state.get("id") or "").startswith("/"):
        return str(state["id"])
    kind = step.type.removeprefix(AZURE)
    path = GROUP_PATHS.get(kind) or SCOPE_PATHS.get(kind, ("", f"Microsoft.Resources/{kind.rpartition(':')[2]}/{{name}}"))[1]
    names = {key: value if isinstance(value := inputs.get(key), str) else step.name for key in PLACEHOLDER.findall(path)}
    return f"/subscriptions/{UNKNOWN_GROUP}/resourceGroups/{UNKNOWN_GROUP}/providers/{path.format_map(names)}"
