"""Results of applying objects: changes per object, and the API server's refusals as conflicts and failures with a remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lifecycle.kubernetes_api.connection import ApiResponse

KubernetesObject = Mapping[str, Any]
"""One Kubernetes object in the JSON form of its API."""
CONFLICT, FORBIDDEN, NOT_FOUND = 409, 403, 404
CORRECT = "correct the manifest"
_MANAGER = re.compile(r'conflict with "([^"]+)"')
_MESSAGES_WITH_PATH = (
    (re.compile(r"(\.\S+): field not declared in schema"), "no such field"),
    (re.compile(r'unknown field "([^"]+)"'), "no such field"),
    (re.compile(r"(\.\S+): expected "), ""),
)
"""Messages that contain a field path, and the reason to report; "" stands for the message itself."""


@dataclass(frozen=True, order=True)
class ObjectKey:
    """Identity of an object: api_version as in the object, namespace "" for a cluster-scoped object."""

    kind: str
    namespace: str
    name: str
    api_version: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def key_of(item: KubernetesObject) -> ObjectKey:
    """Return the key of an object."""
    metadata = item["metadata"]
    return ObjectKey(item["kind"], metadata.get("namespace", ""), metadata["name"], item["apiVersion"])


@dataclass(frozen=True)
class FieldConflict:
    """A field that another manager has set to another value: the field's path and the manager. The object is unchanged."""

    key: ObjectKey
    field: str
    manager: str

    @property
    def remedy(self) -> str:
        """Return the ways to resolve the conflict."""
        return f"have {self.manager} give the field up, or set it to the program's value there; only force takes the field over"

    def __str__(self) -> str:
        return f"{self.key}: {self.field} is owned by {self.manager}: {self.remedy}"


@dataclass(frozen=True)
class ObjectFailure:
    """An object that the API server refused: path of the field ("" for the whole object), the server's reason, and the remedy."""

    key: ObjectKey
    path: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.key}: {f'{self.path}: ' if self.path else ''}{self.reason}; {self.remedy}"


@dataclass(frozen=True)
class ApplyResult:
    """Result of one run.

    retained are objects that are no longer declared and were not deleted, each with the reason. warnings are the API server's warnings.
    requests is the number of HTTP requests, with retries.
    """

    created: tuple[ObjectKey, ...] = ()
    changed: tuple[ObjectKey, ...] = ()
    unchanged: tuple[ObjectKey, ...] = ()
    pruned: tuple[ObjectKey, ...] = ()
    conflicts: tuple[FieldConflict, ...] = ()
    failed: tuple[ObjectFailure, ...] = ()
    retained: tuple[tuple[ObjectKey, str], ...] = ()
    warnings: tuple[tuple[ObjectKey, str], ...] = ()
    requests: int = 0

    @property
    def complete(self) -> bool:
        """Return True if the cluster holds every declared object as it is declared."""
        return not self.conflicts and not self.failed

    def summary(self) -> str:
        """Return one line for a person."""
        parts = {
            "created": self.created,
            "changed": self.changed,
            "unchanged": self.unchanged,
            "pruned": self.pruned,
            "retained": self.retained,
            "in conflict": self.conflicts,
            "refused": self.failed,
        }
        counts = ", ".join(f"{len(items)} {word}" for word, items in parts.items() if items) or "nothing to do"
        return f"{counts} ({self.requests} requests)"


def conflicts_of(key: ObjectKey, response: ApiResponse) -> tuple[FieldConflict, ...]:
    """Return the fields that other managers own if they are the reason of a refused apply: one per field and manager."""
    causes = response.body.get("details", {}).get("causes", []) if response.status == CONFLICT else []
    return tuple(
        FieldConflict(
            key,
            cause.get("field", "").lstrip("."),
            match[1] if (match := _MANAGER.search(cause.get("message", ""))) else "an unknown owner",
        )
        for cause in causes
        if cause.get("reason") == "FieldManagerConflict"
    )


def failures_of(key: ObjectKey, response: ApiResponse) -> tuple[ObjectFailure, ...]:
    """Return the reasons of a refusal: one per field if the server names fields, else one for the object."""
    causes = response.body.get("details", {}).get("causes", [])
    if fields := tuple(ObjectFailure(key, cause["field"], cause.get("message", ""), CORRECT) for cause in causes if cause.get("field")):
        return fields
    for pattern, reason in _MESSAGES_WITH_PATH:
        if match := pattern.search(response.message):
            return (ObjectFailure(key, match[1].lstrip("."), reason or response.message, CORRECT),)
    remedies = {
        NOT_FOUND: "declare the missing object, for example a namespace, or correct its name",
        CONFLICT: "apply again: another client changed the object at the same moment",
        FORBIDDEN: "have an operator apply the object, or contact the owner of the policy that refused it",
    }
    remedy = remedies.get(response.status, CORRECT if response.status < 500 else "look at the API servers' logs")
    return (ObjectFailure(key, "", response.message, remedy),)


def unserved(key: ObjectKey) -> ObjectFailure:
    """Return the failure of an object whose kind the server does not serve."""
    return ObjectFailure(
        key, "", f"{key.api_version} is not served", "declare its CustomResourceDefinition, or enable its API group at the API servers"
    )
