"""Text of changes, as `pulumi preview` prints them: a tree by component, equal lines merged, and the changed files of machines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehearsal.azure.arm_id import parse
from rehearsal.local_up.boot_file_diff import CUSTOM_DATA, CustomDataChange, boot_file_lines
from rehearsal.local_up.snapshot import ChangeType, ResourceChange, ResourceSnapshot, Snapshot
from rehearsal.local_up.value_text import value_lines

SCREEN_LINES = 34
"""Lines of a tree on one screen, without the lines above and below it."""
PATHS_SHOWN, TYPES_SHOWN = 3, 4
FILE_ROOM = 12
"""Lines for the changed files of machines below a tree that fills the screen."""
OUT_OF_DATE = "they have their old model and image until they are reimaged or replaced, which no gpufleet command does yet"
ROLLING = "Azure upgrades them in batches, without another command"
SECRET_TYPES = ("azure-native:keyvault:Secret", "kubernetes:core/v1:Secret", "pulumi-python:dynamic")
"""Types whose values are secret."""
DONE = {ChangeType.CREATE: "created", ChangeType.UPDATE: "updated", ChangeType.REPLACE: "replaced", ChangeType.DELETE: "deleted"}
PLANNED = {ChangeType.CREATE: "to create", ChangeType.UPDATE: "to update", ChangeType.REPLACE: "to replace", ChangeType.DELETE: "to delete"}
CREATED_AGAIN = {True: "would be created again", False: "created again"}
"""What happens to a missing resource, by whether the change is only planned."""


@dataclass
class TreeNode:
    """A component or stack in the tree, with its own changes and its child nodes."""

    label: str
    sign: str = " "
    changes: list[ResourceChange] = field(default_factory=list)
    below: dict[str, TreeNode] = field(default_factory=dict)

    def all_changes(self) -> Iterator[ResourceChange]:
        """Yield the changes of the node and of all nodes below it."""
        yield from self.changes
        for node in self.below.values():
            yield from node.all_changes()


def change_lines(
    changes: Sequence[ResourceChange], before: Snapshot, after: Snapshot, *, everything: bool = False, missing: str = CREATED_AGAIN[True]
) -> list[str]:
    """Return the changes as a tree, followed by the changed files in custom data; missing is as for tree_lines."""
    tree = tree_lines(changes, before, after, everything=everything, missing=missing)
    files = boot_file_lines(list(_custom_data(changes)), max(SCREEN_LINES - len(tree), FILE_ROOM), everything=everything)
    return [*tree, *files]


def tree_lines(
    changes: Sequence[ResourceChange], before: Snapshot, after: Snapshot, *, everything: bool = False, missing: str = CREATED_AGAIN[True]
) -> list[str]:
    """Return the changes as a tree: each resource with its values if everything is set, otherwise at most one screen.

    missing is the text on what happens to a missing resource.
    """
    root = _tree(changes, {**before, **after})
    if everything:
        return [line for node in root.below.values() for line in _whole(node, 0, missing)]
    opened = _opened(root)
    return [line for node in root.below.values() for line in _lines(node, 0, opened, missing)]


def _custom_data(changes: Iterable[ResourceChange]) -> Iterator[CustomDataChange]:
    """Yield the changed custom data of machines."""
    for change in changes:
        for path, (old, new) in change.values.items():
            if _is_custom_data(path, old, new):
                yield CustomDataChange(_word(change.item), _resource_name(change.item), old or "", new or "")


def _is_custom_data(path: str, old: Any, new: Any) -> bool:
    """Return whether a value is custom data; on one side it can be absent."""
    return path.partition(" ")[0].endswith(CUSTOM_DATA) and isinstance(old, str | None) and isinstance(new, str | None)


def _opened(root: TreeNode) -> set[int]:
    """Return the ids of the nodes to expand: level by level, those with most changes first, while the screen has room."""
    opened: set[int] = set()
    level, room = list(root.below.values()), SCREEN_LINES - len(root.below)
    while level:
        deeper: list[TreeNode] = []
        for node in sorted(level, key=lambda one: -sum(1 for _ in one.all_changes())):
            inside = len(_groups(node.changes)) + len(node.below)
            if inside <= room:
                room -= inside
                opened.add(id(node))
                deeper += node.below.values()
        level = deeper
    return opened


def count_line(changes: Sequence[ResourceChange], after: Snapshot, words: Mapping[ChangeType, str], failed: int = 0) -> str:
    """Return the numbers of changed, failed and unchanged resources."""
    named = [change for change in changes if change.item.record.id]
    counted = Counter(change.op for change in named if not change.failed)
    changed = {change.item.record.urn for change in named}
    same = sum(bool(item.record.id) and not item.missing and urn not in changed for urn, item in after.items())
    parts = [
        f"{op.value} {counted[op]:,} {words[op]}{_again(named) if op is ChangeType.CREATE else ''}" for op in ChangeType if counted[op]
    ]
    parts += [f"{failed:,} failed"] if failed else []
    return ", ".join([*parts, f"{same:,} unchanged"])


def _again(changes: Iterable[ResourceChange]) -> str:
    """Return in brackets how many of the created resources were missing in Azure."""
    count = sum(change.missing and not change.failed for change in changes)
    return f" ({count:,} of them missing in Azure)" if count else ""


def machine_line(before: Snapshot, after: Snapshot) -> str:
    """Return the machines of the region before and after, and those with an older model; empty where nothing changed."""
    old, new = (sum(item.machine_count or 0 for item in items.values()) for items in (before, after))
    behind, rolling = sum(item.outdated_count for item in after.values()), sum(item.upgrading_count for item in after.values())
    notes = [f"instances: {old:,} -> {new:,}" if old != new else f"instances: {new:,}"] if old != new or behind or rolling else []
    notes += [f"{_rolling(rolling)} ({ROLLING})"] if rolling else []
    notes += [f"{_behind(behind)} ({OUT_OF_DATE})"] if behind else []
    return ", ".join(notes)


def _tree(changes: Iterable[ResourceChange], items: Snapshot) -> TreeNode:
    root = TreeNode("")
    for change in changes:
        record = change.item.record
        if not record.id:
            _component(root, change.item, items).sign = change.op.value
            continue
        parent = items.get(record.parent or "")
        node = _component(root, parent, items) if parent is not None else _stack(root, change.item.stack)
        node.changes.append(change)
    return root


def _component(root: TreeNode, item: ResourceSnapshot, items: Snapshot) -> TreeNode:
    """Return the node of a component, below its parent components."""
    parent = items.get(item.record.parent or "")
    above = _stack(root, item.stack) if parent is None else _component(root, parent, items)
    name = item.record.name.removeprefix(f"{parent.record.name}-") if parent is not None else item.record.name
    return above.below.setdefault(item.record.urn, TreeNode(f"{_word(item)} {name}"))


def _stack(root: TreeNode, name: str) -> TreeNode:
    return root.below.setdefault(name, TreeNode(f"stack {name}"))


def _lines(node: TreeNode, indent: int, opened: set[int], missing: str) -> Iterator[str]:
    """Yield the lines of a node: expanded, or as one line."""
    changes = list(node.all_changes())
    if id(node) not in opened:
        yield _line(indent, node.sign, f"{node.label}{': ' if changes else ''}{_summary(changes)}")
        return
    yield _line(indent, node.sign, node.label)
    for group in _groups(node.changes):
        yield _line(indent + 1, group[0].op.value, _group(group, missing))
    for below in node.below.values():
        yield from _lines(below, indent + 1, opened, missing)


def _whole(node: TreeNode, indent: int, missing: str) -> Iterator[str]:
    yield _line(indent, node.sign, node.label)
    for change in node.changes:
        yield _line(indent + 1, change.op.value, _group([change], missing))
        for path, (old, new) in change.values.items():
            for line in _value_lines(change.item.record.type, path, old, new):
                yield _line(indent + 3, " ", line)
    for below in node.below.values():
        yield from _whole(below, indent + 1, missing)


def _value_lines(resource_type: str, path: str, old: Any, new: Any) -> list[str]:
    """Return the lines of a changed value: only its path if the type is secret."""
    if resource_type.startswith(SECRET_TYPES):
        return [path]
    return [f"{path}: its changed files are listed below"] if _is_custom_data(path, old, new) else value_lines(path, old, new)


def _groups(changes: Iterable[ResourceChange]) -> list[list[ResourceChange]]:
    """Return groups of changes with equal text."""
    groups: dict[tuple[Any, ...], list[ResourceChange]] = {}
    for change in changes:
        groups.setdefault((change.op, change.failed, change.missing, change.item.record.type, tuple(change.values)), []).append(change)
    return list(groups.values())


def _group(group: Sequence[ResourceChange], missing: str) -> str:
    """Return a group of equal changes in one line; missing is as for tree_lines."""
    first, names = group[0], sorted(_resource_name(change.item) for change in group)
    text = f"{_word(first.item)} {names[0]}" if len(group) == 1 else f"{len(group):,} {_word(first.item)} ({names[0]} … {names[-1]})"
    if first.values:
        paths = list(first.values)
        more = f", {len(paths) - PATHS_SHOWN} more" if len(paths) > PATHS_SHOWN else ""
        text += f" [diff: {', '.join(f'~{path}' for path in paths[:PATHS_SHOWN])}{more}]"
    notes = [f"missing{_place(first.item)}; {missing}"] if first.missing else []
    return " ".join([text, *(["failed"] if first.failed else []), *_bracketed([*notes, *_machine_notes(group)])])


def _summary(changes: Sequence[ResourceChange]) -> str:
    """Return changes in one line: the count of each type and sign."""
    counted = Counter((change.op, _word(change.item)) for change in changes)
    parts = [f"{op.value}{count:,} {word}" for (op, word), count in counted.most_common(TYPES_SHOWN)]
    left = sum(counted.values()) - sum(count for _, count in counted.most_common(TYPES_SHOWN))
    parts += [f"{left:,} more"] if left else []
    parts += _failures(changes)
    gone = sum(change.missing for change in changes)
    notes = [f"{gone:,} of them missing"] if gone else []
    return " ".join([", ".join(parts), *_bracketed([*notes, *_machine_notes(changes)])])


def _place(item: ResourceSnapshot) -> str:
    """Return where a missing resource should exist."""
    return " in Azure" if item.record.azure else " in the cluster" if item.record.type.startswith("kubernetes:") else ""


def _bracketed(notes: Sequence[str]) -> list[str]:
    return [f"({'; '.join(notes)})"] if notes else []


def _failures(changes: Iterable[ResourceChange]) -> list[str]:
    failed = sum(change.failed for change in changes)
    return [f"{failed:,} failed"] if failed else []


def _machine_notes(changes: Iterable[ResourceChange]) -> list[str]:
    counts = [(change.machine_counts, change.outdated_count) for change in changes]
    before, after, behind = sum(one[0][0] for one in counts), sum(one[0][1] for one in counts), sum(one[1] for one in counts)
    notes = [f"instances: {before:,} -> {after:,}"] if before != after else []
    rolling = sum(change.after.upgrading_count for change in changes if change.after)
    notes += [_rolling(rolling)] if rolling else []
    return [*notes, _behind(behind)] if behind > 0 else notes


def _rolling(count: int) -> str:
    return f"{count:,} instance{'' if count == 1 else 's'} in a rolling upgrade in progress"


def _behind(count: int) -> str:
    return f"{count:,} instance{'' if count == 1 else 's'} out of date"


def _line(indent: int, sign: str, text: str) -> str:
    return f"{sign:>2} {'  ' * indent}{text}"


def _word(item: ResourceSnapshot) -> str:
    return item.record.type.rpartition(":")[2]


def _resource_name(item: ResourceSnapshot) -> str:
    """Return the Azure name with its parents' names except the outermost; Pulumi's name for other resources."""
    if not item.record.azure:
        return item.record.name.removeprefix(f"{(item.record.parent or '').rpartition('::')[2]}-")
    names = parse(item.record.id).names
    return "/".join(names[1:] or names)
