"""Which objects of ours are taken away because the program no longer declares them, and which stay, and why."""

from __future__ import annotations

from collections.abc import Mapping

from components.kubernetes_objects import of_team, tiers
from components.manifests.owned import PART_OF
from rehearsal.local_cluster.objects.connection import Connection
from rehearsal.local_cluster.objects.kinds import PRUNED_KINDS, Kinds
from rehearsal.local_cluster.objects.owned_fields import applied_by_gpufleet, has_owner_label, list_owned
from rehearsal.local_cluster.objects.refusals import CONFLICT, NOT_FOUND, failures_of
from rehearsal.local_cluster.objects.results import KubernetesObject, ObjectFailure, ObjectKey

ROLLED_OUT_BY = (("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"))
"""Kinds whose pods mount our ConfigMaps."""
TEAMS_STAY = "a team's, whose jobs would go with its namespace; has to be asked for"
STILL_MOUNTED = "pods of an unfinished rollout may still mount it"


def undeclared(live: Mapping[ObjectKey, KubernetesObject], declared: frozenset[ObjectKey]) -> dict[ObjectKey, KubernetesObject]:
    """Live objects that nobody declares any more and that are ours to take away: of a kind that the program makes, with the owner's label,
    applied by us, and not made by a controller for another object."""
    return {
        key: item
        for key, item in live.items()
        if key not in declared
        and PRUNED_KINDS.get(key.kind) == key.api_version
        and has_owner_label(item)
        and applied_by_gpufleet(item)
        and not item["metadata"].get("ownerReferences")
        and "deletionTimestamp" not in item["metadata"]
    }


def retained_for_teams(going: Mapping[ObjectKey, KubernetesObject]) -> dict[ObjectKey, str]:
    """Namespaces of teams that are no longer declared, and what of ours is in them, each with the reason why it stays."""
    spaces = {key.name for key, item in going.items() if of_team(item)}
    return {key: TEAMS_STAY for key in going if key.namespace in spaces or (key.kind == "Namespace" and key.name in spaces)}


def retained_for_rollouts(connection: Connection, kinds: Kinds, going: Mapping[ObjectKey, KubernetesObject]) -> dict[ObjectKey, str]:
    """ConfigMaps of a part of the cluster in which a workload of ours has not replaced all its pods.

    A ConfigMap of ours never changes, its name is its content's: pods of the former revision mount the former one, and a machine that
    restarts meanwhile could not start them again without it. The next run takes it away.
    """
    maps = {key: _part(key, item) for key, item in going.items() if key.kind == "ConfigMap"}
    if not maps:
        return {}
    live = list_owned(connection, kinds, ROLLED_OUT_BY).items()
    rolling = {_part(key, item) for key, item in live if key not in going and not _finished(item)}
    return {key: STILL_MOUNTED for key, part in maps.items() if part in rolling}


def _part(key: ObjectKey, item: KubernetesObject) -> tuple[str, str]:
    """Namespace, and the part of the cluster that an object belongs to."""
    return key.namespace, item["metadata"].get("labels", {}).get(PART_OF, "")


def _finished(workload: KubernetesObject) -> bool:
    """Whether every pod of a DaemonSet or Deployment is of its newest revision."""
    status = workload.get("status", {})
    if status.get("observedGeneration") != workload["metadata"]["generation"]:
        return False
    if "desiredNumberScheduled" in status:
        return bool(status.get("updatedNumberScheduled", 0) >= status["desiredNumberScheduled"])
    return bool(status.get("updatedReplicas", 0) == status.get("replicas", 0) == workload["spec"]["replicas"])


def delete_objects(
    connection: Connection, kinds: Kinds, going: Mapping[ObjectKey, KubernetesObject]
) -> tuple[list[ObjectKey], list[ObjectFailure]]:
    """Deletes objects, what needs others before what is needed; what somebody else deleted or made anew meanwhile is left alone."""
    gone: list[ObjectKey] = []
    failed: list[ObjectFailure] = []
    named = [{"kind": key.kind, "metadata": {}, "key": key} for key in going]
    for item in (item for tier in reversed(tiers(named)) for item in tier):
        key: ObjectKey = item["key"]
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": "Background",
            "preconditions": {"uid": going[key]["metadata"]["uid"]},
        }
        answer = connection.request("DELETE", kinds[key.api_version, key.kind].item(key), body=body)
        if answer.status in (NOT_FOUND, CONFLICT):
            continue
        if answer.status < 300:
            gone.append(key)
        else:
            failed += failures_of(key, answer)
    return gone, failed
