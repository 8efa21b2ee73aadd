"""Who owns which fields of an object: what the provider made or somebody applied with kubectl before becomes ours at its first update.

An object is created as by any client, so that one that is there already is refused; only its updates are applied, and an apply can take
away only fields of its own manager. https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/await/await.go (fixCSAFieldManagers)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.pulumi_cli.providers.pulumi_values import Json

CREATOR = "pulumi-kubernetes"
"""The field manager of everything that is created."""
OURS = frozenset(
    {
        (CREATOR, "Update"),
        ("pulumi-kubernetes.exe", "Update"),
        ("pulumi-resource-kubernetes", "Update"),
        ("kubectl", "Apply"),
        ("kubectl", "Update"),
        ("before-first-apply", "Update"),
    }
)
"""Managers, with what they did, whose fields an update takes over."""
CREATORS = frozenset({(CREATOR, "Update"), ("pulumi-kubernetes.exe", "Update"), ("pulumi-resource-kubernetes", "Update")})


def taking_over(live: Mapping[str, Any], manager: str, before: str) -> list[Json]:
    """A JSON patch that gives a manager the fields of those in OURS and of its own former name; empty where there is nothing to take."""
    entries: list[Json] = live["metadata"].get("managedFields", [])
    taken = OURS | ({(before, "Apply")} if before and before != manager else frozenset())
    going = [one for one in entries if not one.get("subresource") and (one.get("manager"), one.get("operation")) in taken]
    if not going:
        return []
    own = [one for one in entries if (one.get("manager"), one.get("operation")) == (manager, "Apply") and not one.get("subresource")]
    fields: Json = {}
    for one in (*own, *going):
        fields = _both(fields, one.get("fieldsV1", {}))
    merged = {**going[-1], "manager": manager, "operation": "Apply", "fieldsV1": fields}
    kept = [one for one in entries if one not in going and one not in own]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [merged, *kept]},
        # Lets the server refuse it where somebody changed the object meanwhile.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]


def made_here(live: Mapping[str, Any]) -> bool:
    """Whether fields of an object are still those of its creation."""
    entries = live["metadata"].get("managedFields", [])
    return any((one.get("manager"), one.get("operation")) in CREATORS for one in entries)


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json:
    """Fields of either."""
    shared = {key: _both(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **shared}
