"""Waits until an object is ready or deleted, and the reasons where that does not happen.

The object is polled instead of watched: a poll costs one request, and a broken watch would need a recovery.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from components.errors import GpufleetError
from rehearsal.local_cluster.objects.results import NOT_FOUND, ObjectKey
from rehearsal.pulumi_cli.providers.kubernetes.api_client import Report
from rehearsal.pulumi_cli.providers.kubernetes.cluster import OK, Cluster, object_key
from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import SKIP_AWAIT, id_of, is_true
from rehearsal.pulumi_cli.providers.kubernetes.readiness import READINESS_RULES, READY, Readiness, ReadinessRule, pod_problems
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind

FIRST_POLL_SECONDS = 0.1
LONGEST_POLL_SECONDS = 2.0
POD = Kind("v1", "Pod")
NO_DELETION_WAIT = frozenset(
    {
        Kind("apps/v1", "DaemonSet"),
        Kind("apps/v1", "Deployment"),
        Kind("apps/v1", "StatefulSet"),
        Kind("batch/v1", "Job"),
        Kind("v1", "Namespace"),
        Kind("v1", "Pod"),
        Kind("v1", "ReplicationController"),
    }
)
"""Kinds whose deletion is not awaited where they are marked with skipAwait:
https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/metadata/overrides.go"""

Object = Mapping[str, Any]


class ObjectNotReadyError(GpufleetError):
    """An object that is not ready: its last state, and the reasons, a sentence each."""

    def __init__(self, live: Object, not_ready_reasons: tuple[str, ...]) -> None:
        self.live, self.reasons = live, not_ready_reasons
        super().__init__("; ".join(not_ready_reasons))


class ObjectNotDeletedError(GpufleetError):
    """A deleted object that still exists: its last state, and the reason."""

    def __init__(self, live: Object, reason: str) -> None:
        self.live, self.reason = live, reason
        super().__init__(reason)


async def until_ready(cluster: Cluster, kind: Kind, live: Object, seconds: float | None, report: Report) -> Object:
    """Return the object once it is ready; seconds is the timeout, None for the kind's default. ObjectNotReadyError."""
    rule = READINESS_RULES.get(kind)
    if rule is None or is_true(live, SKIP_AWAIT):
        return live
    loop = asyncio.get_running_loop()
    limit = rule.seconds if seconds is None else seconds
    end, wait, reported, seen, since = loop.time() + limit, FIRST_POLL_SECONDS, "", "", loop.time()
    while True:
        related = await _related(cluster, rule, live)
        verdict = rule.verdict(live, related)
        if (now := json.dumps([item["metadata"].get("resourceVersion") for item in related.values()])) != seen:
            seen, since = now, loop.time()
        if verdict.ready and (not related or loop.time() - since >= rule.settles):
            return live
        if verdict.hopeless or loop.time() + wait > end:
            why = f"{kind.kind} {id_of(live)} failed" if verdict.hopeless else f"{kind.kind} {id_of(live)} is not ready after {limit:g} s"
            raise ObjectNotReadyError(live, (why, *await not_ready_reasons(cluster, rule, live, verdict)))
        if verdict.words != reported:
            reported = verdict.words
            await report(reported)
        await asyncio.sleep(wait)
        wait = min(1.5 * wait, LONGEST_POLL_SECONDS)
        live = await _refreshed(cluster, kind, live)


async def not_ready_now(cluster: Cluster, kind: Kind, live: Object) -> tuple[str, ...]:
    """Return the reasons why an object is not ready; empty where it is, or where a refresh does not check it."""
    rule = READINESS_RULES.get(kind)
    if rule is None or not rule.read or is_true(live, SKIP_AWAIT):
        return ()
    verdict = rule.verdict(live, await _related(cluster, rule, live))
    return () if verdict.ready else await not_ready_reasons(cluster, rule, live, verdict)


async def not_ready_reasons(cluster: Cluster, rule: ReadinessRule, live: Object, verdict: Readiness) -> tuple[str, ...]:
    """Return the reasons why an object is not ready, including those of its pods."""
    if verdict is READY or not rule.pods:
        return verdict.reasons
    labels = live.get("spec", {}).get("selector", {}).get("matchLabels", {})
    pods = await cluster.list_objects(
        POD, live["metadata"].get("namespace", ""), ",".join(f"{key}={text}" for key, text in sorted(labels.items()))
    )
    return (*verdict.reasons, *pod_problems(pods))


async def until_gone(cluster: Cluster, kind: Kind, key: ObjectKey, live: Object, seconds: float, report: Report) -> None:
    """Return once a deleted object no longer exists. ObjectNotDeletedError."""
    if (served := cluster.kinds.get((kind.api_version, kind.kind))) is None or (is_true(live, SKIP_AWAIT) and kind in NO_DELETION_WAIT):
        return
    loop = asyncio.get_running_loop()
    end, wait, uid = loop.time() + seconds, FIRST_POLL_SECONDS / 4, live["metadata"].get("uid")
    while True:
        response = await cluster.get(served, key, report)
        if response.status == NOT_FOUND or (response.status == OK and response.body["metadata"].get("uid") != uid):
            return
        if response.status == OK:
            live = response.body
        if loop.time() + wait > end:
            raise ObjectNotDeletedError(live, _deletion_blockers(kind, live, seconds))
        await asyncio.sleep(wait)
        wait = min(1.5 * wait, LONGEST_POLL_SECONDS)


def _deletion_blockers(kind: Kind, live: Object, seconds: float) -> str:
    text = f"{kind.kind} {id_of(live)} was deleted and is still there after {seconds:g} s"
    if finalizers := [*(live["metadata"].get("finalizers") or ()), *(live.get("spec", {}).get("finalizers") or ())]:
        text += f": its finalizers {', '.join(finalizers)} block its deletion; check that the controllers that remove them run"
    conditions = live.get("status", {}).get("conditions") or ()
    messages = [one["message"] for one in conditions if one.get("status") == "True" and one.get("message")]
    return "; ".join([text, *messages])


async def _related(cluster: Cluster, rule: ReadinessRule, live: Object) -> Mapping[str, Object]:
    found: dict[str, Object] = {}
    for kind, name in rule.related(live) if rule.related is not None else ():
        if (served := cluster.kinds.get((kind.api_version, kind.kind))) is None:
            continue
        where = {"metadata": {"name": name, "namespace": live["metadata"].get("namespace", "")}}
        response = await cluster.get(served, object_key(kind, where, served))
        if response.status == OK:
            found[f"{kind.kind} {name}"] = response.body
    return found


async def _refreshed(cluster: Cluster, kind: Kind, live: Object) -> Object:
    """Return the object's current state; ObjectNotReadyError where it no longer exists."""
    served = cluster.kinds[kind.api_version, kind.kind]
    response = await cluster.get(served, object_key(kind, live, served))
    if response.status == NOT_FOUND:
        raise ObjectNotReadyError(live, (f"{kind.kind} {id_of(live)} was deleted by another client during the wait",))
    return response.body if response.status == OK else live
