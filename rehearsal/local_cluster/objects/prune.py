"""Objects of gpufleet in a cluster, and deletion of those that the program no longer declares.

An object belongs to gpufleet if it carries the owner's label and gpufleet has applied it: charts of others may copy the label.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.kubernetes_objects import of_team, tiers
from components.manifests.owned import MANAGED_BY, OWNER, PART_OF
from lifecycle.kubernetes_api.connection import Connection
from rehearsal.local_cluster.objects.kinds import PRUNED_KINDS, Kinds
from rehearsal.local_cluster.objects.results import CONFLICT, NOT_FOUND, KubernetesObject, ObjectFailure, ObjectKey, failures_of

FIELD_MANAGER = "gpufleet"
"""Name of gpufleet as an owner of fields: https://kubernetes.io/docs/reference/using-api/server-side-apply/#managers"""
PAGE_SIZE = 500
ROLLOUT_KINDS = (("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"))
"""Kinds whose pods mount the program's ConfigMaps."""
TEAM_REASON = "a team's namespace, or an object in it: deleting it would delete the team's jobs; only prune_teams deletes it"
ROLLOUT_REASON = "pods of an unfinished rollout may still mount it"


def list_owned(connection: Connection, kinds: Kinds, requested: tuple[tuple[str, str], ...]) -> dict[ObjectKey, KubernetesObject]:
    """Return the objects with the owner's label of the requested (API version, kind) pairs: one listing per kind."""
    found: dict[ObjectKey, KubernetesObject] = {}
    for version, kind in requested:
        if (version, kind) not in kinds:
            continue
        query, path = {"labelSelector": f"{MANAGED_BY}={OWNER}", "limit": str(PAGE_SIZE)}, kinds[version, kind].collection()
        while True:
            page = connection.request("GET", path, query).body
            for item in page.get("items", []):
                metadata = item["metadata"]
                key = ObjectKey(kind, metadata.get("namespace", ""), metadata["name"], version)
                # The server omits the kind of an item in a list.
                found[key] = {"apiVersion": version, "kind": kind, **item}
            if not (following := page.get("metadata", {}).get("continue")):
                break
            query = query | {"continue": following}
    return found


def has_owner_label(item: KubernetesObject) -> bool:
    """Return True if an object carries the owner's label."""
    return bool(item["metadata"].get("labels", {}).get(MANAGED_BY) == OWNER)


def applied_fields(item: KubernetesObject) -> Any:
    """Return the fields of an object that gpufleet applied, as the server records them; None if it never applied the object."""
    for entry in item["metadata"].get("managedFields", []):
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            return entry["fieldsV1"]
    return None


def was_changed(declared: KubernetesObject, before: KubernetesObject | None, after: KubernetesObject) -> bool:
    """Return True if an apply changed a field of gpufleet; changes that controllers make at the same time do not count.

    The server's record shows a field that was given up, and the values show all other changes. The record's time shows nothing: the
    server renews it for an admission policy whose status was written since its creation.
    """
    if before is None or applied_fields(before) != applied_fields(after):
        return True
    return bool(_declared_part(declared, before) != _declared_part(declared, after))


def _declared_part(declared: Any, live: Any) -> Any:
    """Return the part of a live value that a declared value covers; lists are whole, because the server merges them by its own rules."""
    if isinstance(declared, Mapping) and isinstance(live, Mapping):
        return {key: _declared_part(value, live.get(key)) for key, value in declared.items()}
    return live


def undeclared(live: Mapping[ObjectKey, KubernetesObject], declared: frozenset[ObjectKey]) -> dict[ObjectKey, KubernetesObject]:
    """Return the live objects to delete: undeclared, of a kind of the program, labelled, applied by gpufleet, without an owner object."""
    return {
        key: item
        for key, item in live.items()
        if key not in declared
        and PRUNED_KINDS.get(key.kind) == key.api_version
        and has_owner_label(item)
        and applied_fields(item) is not None
        and not item["metadata"].get("ownerReferences")
        and "deletionTimestamp" not in item["metadata"]
    }


def retained_for_teams(going: Mapping[ObjectKey, KubernetesObject]) -> dict[ObjectKey, str]:
    """Return the namespaces of teams that are no longer declared and the program's objects in them, each with the reason to retain it."""
    namespaces = {key.name for key, item in going.items() if of_team(item)}
    return {key: TEAM_REASON for key in going if key.namespace in namespaces or (key.kind == "Namespace" and key.name in namespaces)}


def retained_for_rollouts(connection: Connection, kinds: Kinds, going: Mapping[ObjectKey, KubernetesObject]) -> dict[ObjectKey, str]:
    """Return the ConfigMaps of a part of the cluster in which a workload has not replaced all its pods, each with the reason.

    A ConfigMap of the program never changes: its name contains a hash of its content. Pods of the previous revision mount the previous
    ConfigMap, and need it when their machine restarts. The next run deletes it.
    """
    maps = {key: _part_of(key, item) for key, item in going.items() if key.kind == "ConfigMap"}
    if not maps:
        return {}
    live = list_owned(connection, kinds, ROLLOUT_KINDS).items()
    rolling = {_part_of(key, item) for key, item in live if key not in going and not _finished(item)}
    return {key: ROLLOUT_REASON for key, part in maps.items() if part in rolling}


def _part_of(key: ObjectKey, item: KubernetesObject) -> tuple[str, str]:
    """Return an object's namespace and the part of the cluster that it belongs to."""
    return key.namespace, item["metadata"].get("labels", {}).get(PART_OF, "")


def _finished(workload: KubernetesObject) -> bool:
    """Return True if every pod of a DaemonSet or Deployment is of its newest revision."""
    status = workload.get("status", {})
    if status.get("observedGeneration") != workload["metadata"]["generation"]:
        return False
    if "desiredNumberScheduled" in status:
        return bool(status.get("updatedNumberScheduled", 0) >= status["desiredNumberScheduled"])
    return bool(status.get("updatedReplicas", 0) == status.get("replicas", 0) == workload["spec"]["replicas"])


def delete_objects(
    connection: Connection, kinds: Kinds, going: Mapping[ObjectKey, KubernetesObject]
) -> tuple[list[ObjectKey], list[ObjectFailure]]:
    """Delete objects, dependents first; an object that another client deleted or created again meanwhile is left alone."""
    deleted: list[ObjectKey] = []
    failed: list[ObjectFailure] = []
    rows = [{"kind": key.kind, "metadata": {}, "key": key} for key in going]
    for key in (row["key"] for tier in reversed(tiers(rows)) for row in tier):
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": going[key]["metadata"]["uid"]},
        }
        response = connection.request("DELETE", kinds[key.api_version, key.kind].item(key), body=body)
        if response.status < 300:
            deleted.append(key)
        elif response.status not in (NOT_FOUND, CONFLICT):
            failed += failures_of(key, response)
    return deleted, failed
