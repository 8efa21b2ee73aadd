"""References between resources: ids in a body, and an index by type, parent and target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId

PREFIX = "/subscriptions/"


def references(body: Mapping[str, Any], own: str) -> tuple[str, ...]:
    """Return each resource id in a body once, in the body's order, except the resource's own id and those of its parts.

    own is the resource's key. The order is fixed because an error names the first missing id.
    """
    found: dict[str, None] = {}
    below = f"{own}/"
    stack: list[Any] = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            if _is_id(value):
                found[value] = None
        elif isinstance(value, Mapping):
            stack.extend(reversed(list(value.values())))
            found.update((key, None) for key in value if isinstance(key, str) and _is_id(key))
        elif isinstance(value, list | tuple):
            stack.extend(reversed(value))
    return tuple(one for one in found if not (one.lower() == own or one.lower().startswith(below)))


def _is_id(text: str) -> bool:
    return text[:1] == "/" and text[: len(PREFIX)].lower() == PREFIX


class Index:
    """Keys by type, by parent and by reference target, each in creation order."""

    def __init__(self) -> None:
        self._types: dict[str, dict[str, None]] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._users: dict[str, dict[str, None]] = {}
        self._targets: dict[str, tuple[str, ...]] = {}
        self._numbers: dict[str, int] = {}
        self._made = 0

    def add(self, arm_id: ArmId, targets: Iterable[str]) -> None:
        """Add a resource, or update its references."""
        key = arm_id.key
        if key not in self._numbers:
            self._made += 1
            self._numbers[key] = self._made
        self._types.setdefault(arm_id.type.lower(), {})[key] = None
        if whole := _whole(arm_id):
            self._children.setdefault(whole, {})[key] = None
        self._forget_targets(key)
        self._targets[key] = tuple(dict.fromkeys(owner for target in targets for owner in _owners(target.lower())))
        for target in self._targets[key]:
            self._enlist(key, target)

    def remove(self, arm_id: ArmId) -> None:
        """Remove a resource."""
        key = arm_id.key
        self._types.get(arm_id.type.lower(), {}).pop(key, None)
        if whole := _whole(arm_id):
            self._children.get(whole, {}).pop(key, None)
        self._forget_targets(key)
        del self._numbers[key]

    def of_type(self, resource_type: str) -> Iterable[str]:
        """Return the keys of a type, which is in lower case."""
        return self._types.get(resource_type, {})

    def children(self, key: str) -> Iterable[str]:
        """Return the keys of a resource's direct children."""
        return self._children.get(key, {})

    def users(self, key: str) -> Iterable[str]:
        """Return the keys of resources that refer to a resource or to one of its items."""
        return self._users.get(key, {})

    def _enlist(self, key: str, target: str) -> None:
        """Add a reference to a target, in creation order, which is the order in which a saved model is loaded."""
        users = self._users.setdefault(target, {})
        last = next(reversed(users), key)
        users[key] = None
        if self._numbers[last] > self._numbers[key]:
            self._users[target] = dict.fromkeys(sorted(users, key=self._numbers.__getitem__))

    def _forget_targets(self, key: str) -> None:
        for target in self._targets.pop(key, ()):
            self._users[target].pop(key, None)


def _whole(arm_id: ArmId) -> str:
    """Return the key of a resource's parent, or for an extension resource (a role assignment) its scope; otherwise empty."""
    if arm_id.parent:
        return arm_id.parent.lower()
    return arm_id.scope.lower() if "/providers/" in arm_id.scope.lower() else ""


def _owners(target: str) -> tuple[str, ...]:
    """Return an id and its parent's: a user of a backend pool uses its load balancer."""
    parts = target.split("/")
    tail = len(parts) - parts.index("providers") - 1 if "providers" in parts else 0
    return (target, "/".join(parts[:-2])) if tail > 3 else (target,)
