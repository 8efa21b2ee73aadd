"""What a refusal of the API server means: which fields are whose, and which are wrong."""

from __future__ import annotations

import re

from rehearsal.local_cluster.objects.connection import ApiResponse
from rehearsal.local_cluster.objects.results import FieldConflict, ObjectFailure, ObjectKey

CONFLICT, FORBIDDEN, NOT_FOUND = 409, 403, 404
_MANAGER = re.compile(r'conflict with "([^"]+)"')
_DECLARED = re.compile(r"(\.\S+): field not declared in schema")
_DECODING = re.compile(r'unknown field "([^"]+)"')
_EXPECTED = re.compile(r"(\.\S+): expected ")
MEND = "mend the manifest"


def conflicts_of(key: ObjectKey, answer: ApiResponse) -> tuple[FieldConflict, ...]:
    """The fields that others own, if that is why an apply was refused: one per field and owner."""
    causes = answer.body.get("details", {}).get("causes", []) if answer.status == CONFLICT else []
    return tuple(
        FieldConflict(
            key,
            cause.get("field", "").lstrip("."),
            match[1] if (match := _MANAGER.search(cause.get("message", ""))) else "an unknown owner",
        )
        for cause in causes
        if cause.get("reason") == "FieldManagerConflict"
    )


def failures_of(key: ObjectKey, answer: ApiResponse) -> tuple[ObjectFailure, ...]:
    """Why an object was refused: one per field where the server named fields."""
    causes = answer.body.get("details", {}).get("causes", [])
    named = tuple(ObjectFailure(key, cause["field"], cause.get("message", ""), MEND) for cause in causes if cause.get("field"))
    if named:
        return named
    for pattern, reason in ((_DECLARED, "no such field"), (_DECODING, "no such field"), (_EXPECTED, answer.message)):
        if match := pattern.search(answer.message):
            return (ObjectFailure(key, match[1].lstrip("."), reason, MEND),)
    if answer.status == NOT_FOUND:
        return (ObjectFailure(key, "", answer.message, "declare what it needs, a namespace for example, or mend its name"),)
    if answer.status == CONFLICT:
        return (ObjectFailure(key, "", answer.message, "apply again: it was changed at the same moment"),)
    if answer.status == FORBIDDEN:
        return (ObjectFailure(key, "", answer.message, "have an operator apply it, or ask the owner of the policy that refused it"),)
    return (ObjectFailure(key, "", answer.message, MEND if answer.status < 500 else "look at the API servers' logs"),)


def unserved(key: ObjectKey) -> ObjectFailure:
    """A kind that the server does not know, however long it was asked."""
    return ObjectFailure(
        key, "", f"{key.api_version} is not served", "declare its CustomResourceDefinition, or enable its API group at the API servers"
    )
