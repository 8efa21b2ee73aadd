"""What applying objects to a cluster comes to: what was made, changed, left and taken away, and what could not be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KubernetesObject = Mapping[str, Any]
"""One Kubernetes object, as its API takes it in JSON."""


@dataclass(frozen=True, order=True)
class ObjectKey:
    """Which object: api_version as in the object, namespace "" where it has none."""

    kind: str
    namespace: str
    name: str
    api_version: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def key_of(item: KubernetesObject) -> ObjectKey:
    """Key of an object."""
    metadata = item["metadata"]
    return ObjectKey(item["kind"], metadata.get("namespace", ""), metadata["name"], item["apiVersion"])


@dataclass(frozen=True)
class FieldConflict:
    """A field that somebody else has set to another value: field as a path, manager who set it; the object was left as it was."""

    key: ObjectKey
    field: str
    manager: str

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return f"have {self.manager} give the field up, or set it to the program's value there; taking it over has to be asked for (force)"

    def __str__(self) -> str:
        return f"{self.key}: {self.field} is owned by {self.manager}: {self.remedy}"


@dataclass(frozen=True)
class ObjectFailure:
    """An object that the API server refused: path inside it, "" where the whole is meant, the server's reason, and the remedy."""

    key: ObjectKey
    path: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.key}: {f'{self.path}: ' if self.path else ''}{self.reason}; {self.remedy}"


@dataclass(frozen=True)
class ApplyResult:
    """Everything that one run did.

    kept are objects that are no longer declared and stay, each with the reason; warnings what the API server said beside its answers;
    requests counts HTTP requests, repeated ones included.
    """

    created: tuple[ObjectKey, ...] = ()
    changed: tuple[ObjectKey, ...] = ()
    unchanged: tuple[ObjectKey, ...] = ()
    pruned: tuple[ObjectKey, ...] = ()
    conflicts: tuple[FieldConflict, ...] = ()
    failed: tuple[ObjectFailure, ...] = ()
    kept: tuple[tuple[ObjectKey, str], ...] = ()
    warnings: tuple[tuple[ObjectKey, str], ...] = ()
    requests: int = 0

    @property
    def complete(self) -> bool:
        """Whether the cluster holds every declared object as it is declared."""
        return not self.conflicts and not self.failed

    def summary(self) -> str:
        """One line for a person."""
        parts = {
            "created": self.created,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "pruned": self.pruned,
            "kept": self.kept,
            "in conflict": self.conflicts,
            "refused": self.failed,
        }
        said = ", ".join(f"{len(items)} {word}" for word, items in parts.items() if items) or "nothing to do"
        return f"{said} ({self.requests} requests)"
