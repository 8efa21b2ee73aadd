"""What of an object is ours, by the fields that the API server says we own, and whether an apply changed any of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.manifests.owned import MANAGED_BY, OWNER
from rehearsal.local_cluster.objects.connection import Connection
from rehearsal.local_cluster.objects.kinds import Kinds
from rehearsal.local_cluster.objects.results import KubernetesObject, ObjectKey

MANAGER = "gpufleet"
"""Our name as an owner of fields: https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers"""
PAGE = 500


def list_owned(connection: Connection, kinds: Kinds, wanted: tuple[tuple[str, str], ...]) -> dict[ObjectKey, KubernetesObject]:
    """Objects of some kinds that carry the owner's label, one listing per kind."""
    found: dict[ObjectKey, KubernetesObject] = {}
    for version, kind in wanted:
        if (version, kind) not in kinds:
            continue
        query, path = {"labelSelector": f"{MANAGED_BY}={OWNER}", "limit": str(PAGE)}, kinds[version, kind].collection()
        while True:
            page = connection.request("GET", path, query).body
            for item in page.get("items", []):
                metadata = item["metadata"]
                # Within a listing the server leaves out of what kind an item is.
                found[ObjectKey(kind, metadata.get("namespace", ""), metadata["name"], version)] = {
                    "apiVersion": version,
                    "kind": kind,
                    **item,
                }
            if not (following := page.get("metadata", {}).get("continue")):
                break
            query = query | {"continue": following}
    return found


def has_owner_label(item: KubernetesObject) -> bool:
    """Whether an object says that it is ours."""
    return bool(item["metadata"].get("labels", {}).get(MANAGED_BY) == OWNER)


def applied_fields(item: KubernetesObject) -> Mapping[str, Any] | None:
    """What the server keeps about the fields that we applied; None where we never applied the object."""
    entries = item["metadata"].get("managedFields", [])
    return next((entry for entry in entries if entry.get("manager") == MANAGER and entry.get("operation") == "Apply"), None)


def applied_by_gpufleet(item: KubernetesObject) -> bool:
    """Whether we applied it: others may copy our labels, with our charts for example, and what they made is theirs."""
    return applied_fields(item) is not None


def was_changed(declared: KubernetesObject, before: KubernetesObject | None, after: KubernetesObject) -> bool:
    """Whether an apply changed a field of ours; what controllers write beside them meanwhile does not count.

    The owner's record tells of a field that was given up, the values tell of all others. The record's time tells nothing: the server
    renews it for an admission policy whose status was written since it was made.
    """
    return before is None or _our_fields(before) != _our_fields(after) or _part(declared, before) != _part(declared, after)


def _our_fields(item: KubernetesObject) -> Any:
    entry = applied_fields(item)
    return entry and entry["fieldsV1"]


def _part(declared: Any, live: Any) -> Any:
    """Of a live value what a declared one speaks of; lists are whole, for the server merges them by rules of its own."""
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        return {key: _part(value, live.get(key)) for key, value in declared.items()}
    return live
