"""Tree of the changes of one operation on Pulumi's engine, in the form of the local up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.azure.azure_native_ids import AZURE, GROUP_PATHS, PLACEHOLDER, SCOPE_PATHS
from rehearsal.azure.stack_records import StackRecord
from rehearsal.local_up.diff_text import CREATED_AGAIN, DONE, PLANNED, change_lines
from rehearsal.local_up.snapshot import ChangeType, ResourceChange, ResourceSnapshot
from rehearsal.local_up.update_state import SCALE_SET
from rehearsal.pulumi_cli.events import REPLACEMENT_STEPS, STACK, UNCHANGED, Json, OperationTimeline, ResourceStep

OPS: Mapping[str, ChangeType] = {
    "create": ChangeType.CREATE,
    "import": ChangeType.CREATE,
    "update": ChangeType.UPDATE,
    "replace": ChangeType.REPLACE,
    "delete": ChangeType.DELETE,
}
REFRESH_WORDS: Mapping[ChangeType, str] = {
    ChangeType.CREATE: "found",
    ChangeType.UPDATE: "changed by hand",
    ChangeType.REPLACE: "replaced by hand",
    ChangeType.DELETE: "gone",
}
CREATED_ON_UP = "up creates it again"
KEY = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')
REPLACE_MARK = " (forces replacement)"
UNKNOWN_GROUP = "unknown"


def tree_of_changes(timeline: OperationTimeline, *, everything: bool) -> list[str]:
    """Return the changes of one operation as a tree; with everything=True, each resource separately with its values."""
    steps = {step.urn: step for step in timeline.begun.values()} | timeline.ended
    items = {urn: _item(timeline.stack, step) for urn, step in steps.items() if step.type != STACK}
    found = [change for step in timeline.changed() if (change := _change(timeline, step, items[step.urn])) is not None]
    begun = (timeline.begun[urn] for urn in timeline.begun if urn in timeline.failed and urn not in timeline.ended)
    found += [change for step in begun if (change := _change(timeline, step, items[step.urn])) is not None]
    again = CREATED_ON_UP if timeline.verb == "refresh" else CREATED_AGAIN[timeline.verb == "preview"]
    return change_lines(found, items, items, everything=everything, missing=again)


def count_line(timeline: OperationTimeline) -> str:
    """Return the totals of an operation as `pulumi` counts them: with components, providers and the stack itself."""
    words = {"preview": PLANNED, "refresh": REFRESH_WORDS}.get(timeline.verb, DONE)
    counts = [f"{sign.value} {timeline.changes[op]:,} {words[sign]}" for op, sign in OPS.items() if timeline.changes.get(op)]
    counts += [f"{len(timeline.failed):,} failed"] if timeline.failed else []
    same = timeline.changes.get("same", 0)
    return ", ".join([*counts, f"{same:,} unchanged"])


def value_at(properties: Any, path: str) -> Any:
    """Return the value at a path of the engine (`sku.capacity`, `rules[0].name`, `tags["a.b"]`); None where there is none."""
    for quoted, index, name in KEY.findall(path):
        if index:
            properties = properties[int(index)] if isinstance(properties, list) and int(index) < len(properties) else None
        else:
            properties = properties.get(quoted or name) if isinstance(properties, Mapping) else None
    return properties


def _change(timeline: OperationTimeline, step: ResourceStep, item: ResourceSnapshot) -> ResourceChange | None:
    op = OPS.get(REPLACEMENT_STEPS.get(step.op, step.op))
    if op is None or step.op in UNCHANGED:
        return None
    before = None if op is ChangeType.CREATE else _item(timeline.stack, step, old=True)
    values = dict(_values(timeline, step)) if op in (ChangeType.UPDATE, ChangeType.REPLACE) else {}
    after, missing = None if op is ChangeType.DELETE else item, op is ChangeType.DELETE and timeline.verb == "refresh"
    return ResourceChange(op, before, after, values, failed=step.urn in timeline.failed, missing=missing)


def _values(timeline: OperationTimeline, step: ResourceStep) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the changed values by path, with a mark on those that force a replacement.

    For a refresh these are the recorded and the actual values.
    """
    part = "outputs" if timeline.verb == "refresh" else "inputs"
    old, new = step.old.get(part) or {}, step.new.get(part) or {}
    for path, kind in sorted(step.paths.items()):
        forces = kind.endswith("-replace") or path in step.keys
        yield f"{path}{REPLACE_MARK if forces else ''}", (value_at(old, path), value_at(new, path))
    for key in sorted(set(step.keys or step.diffs) - {re.split(r"[.\[]", path)[0] for path in step.paths}):
        yield f"{key}{REPLACE_MARK if key in step.keys else ''}", (old.get(key), new.get(key))


def _item(stack: str, step: ResourceStep, *, old: bool = False) -> ResourceSnapshot:
    state = (step.old if old else step.state) or step.state
    inputs = state.get("inputs") or {}
    record = StackRecord(
        urn=step.urn,
        type=step.type,
        parent=None if STACK in state.get("parent", "").rpartition("::")[0].rpartition("$")[2] else state.get("parent") or None,
        id=_id(step, state, inputs),
        protect=bool(state.get("protect")),
    )
    capacity = (inputs.get("sku") or {}).get("capacity") if step.type.rpartition(":")[2] == SCALE_SET else None
    return ResourceSnapshot(stack, record, inputs, None, capacity if isinstance(capacity, int) else None, 0)


def _id(step: ResourceStep, state: Json, inputs: Json) -> str:
    """Return the resource's id; for a planned resource one of the same shape, from the known names; "" for a component."""
    if not state.get("custom"):
        return ""
    if not step.type.startswith(AZURE):
        return state.get("id") or step.name
    if str(state.get("id") or "").startswith("/"):
        return str(state["id"])
    resource_type = step.type.removeprefix(AZURE)
    path = (
        GROUP_PATHS.get(resource_type)
        or SCOPE_PATHS.get(resource_type, ("", f"Microsoft.Resources/{resource_type.rpartition(':')[2]}/{{name}}"))[1]
    )
    names = {key: value if isinstance(value := inputs.get(key), str) else step.name for key in PLACEHOLDER.findall(path)}
    return f"/subscriptions/{UNKNOWN_GROUP}/resourceGroups/{UNKNOWN_GROUP}/providers/{path.format_map(names)}"
