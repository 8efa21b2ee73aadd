"""How long an object is waited for until it is ready, or gone, and what a person is told where that does not come.

The object is looked at again and again rather than watched: a look costs a request, and a watch that breaks has to be made up for.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from components.errors import GpufleetError
from rehearsal.local_cluster.objects.results import ObjectKey
from rehearsal.pulumi_cli.providers.kubernetes.api import Say
from rehearsal.pulumi_cli.providers.kubernetes.cluster import NOT_FOUND, OK, Cluster, key_for
from rehearsal.pulumi_cli.providers.kubernetes.metadata import SKIP_AWAIT, id_of, says
from rehearsal.pulumi_cli.providers.kubernetes.pods import troubles
from rehearsal.pulumi_cli.providers.kubernetes.readiness import READY, RULES, Rule, Verdict
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind

FIRST_LOOK_SECONDS = 0.1
LONGEST_LOOK_SECONDS = 2.0
POD = Kind("v1", "Pod")
STAYS_BEHIND = frozenset(
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
"""Kinds whose end nobody waits for either where they are marked with skipAwait:
https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/metadata/overrides.go"""

Object = Mapping[str, Any]


class ObjectNotReadyError(GpufleetError):
    """An object that is there and not ready: the object as it was last, and why, a sentence each."""

    def __init__(self, live: Object, reasons: tuple[str, ...]) -> None:
        self.live, self.reasons = live, reasons
        super().__init__("; ".join(reasons))


class ObjectNotDeletedError(GpufleetError):
    """An object that was deleted and is still there: the object as it was last, and why."""

    def __init__(self, live: Object, reason: str) -> None:
        self.live, self.reason = live, reason
        super().__init__(reason)


async def until_ready(cluster: Cluster, kind: Kind, live: Object, seconds: float | None, say: Say) -> Object:
    """The object once it is ready; seconds as asked for, None for the kind's own. NotReady."""
    rule = RULES.get(kind)
    if rule is None or says(live, SKIP_AWAIT):
        return live
    loop = asyncio.get_running_loop()
    limit = rule.seconds if seconds is None else seconds
    end, wait, told, seen, since = loop.time() + limit, FIRST_LOOK_SECONDS, "", "", loop.time()
    while True:
        related = await _related(cluster, rule, live)
        verdict = rule.verdict(live, related)
        if (now := json.dumps([item["metadata"].get("resourceVersion") for item in related.values()])) != seen:
            seen, since = now, loop.time()
        if verdict.ready and (not related or loop.time() - since >= rule.settles):
            return live
        if verdict.hopeless or loop.time() + wait > end:
            why = f"{kind.kind} {id_of(live)} failed" if verdict.hopeless else f"{kind.kind} {id_of(live)} is not ready after {limit:g} s"
            raise ObjectNotReadyError(live, (why, *await reasons(cluster, rule, live, verdict)))
        if verdict.words != told:
            told = verdict.words
            await say(told)
        await asyncio.sleep(wait)
        wait = min(1.5 * wait, LONGEST_LOOK_SECONDS)
        live = await _again(cluster, kind, live)


async def readiness(cluster: Cluster, kind: Kind, live: Object) -> tuple[str, ...]:
    """Why an object is not ready now; empty where it is, or where a refresh does not ask."""
    rule = RULES.get(kind)
    if rule is None or not rule.read or says(live, SKIP_AWAIT):
        return ()
    verdict = rule.verdict(live, await _related(cluster, rule, live))
    return () if verdict.ready else await reasons(cluster, rule, live, verdict)


async def reasons(cluster: Cluster, rule: Rule, live: Object, verdict: Verdict) -> tuple[str, ...]:
    """What keeps an object from being ready, its pods' troubles included."""
    if verdict is READY or not rule.pods:
        return verdict.reasons
    labels = live.get("spec", {}).get("selector", {}).get("matchLabels", {})
    pods = await cluster.listed(
        POD, live["metadata"].get("namespace", ""), ",".join(f"{key}={text}" for key, text in sorted(labels.items()))
    )
    return (*verdict.reasons, *troubles(pods))


async def until_gone(cluster: Cluster, kind: Kind, key: ObjectKey, live: Object, seconds: float, say: Say) -> None:
    """Return once an object that was deleted is gone. NotGone."""
    if (served := cluster.kinds.get((kind.api_version, kind.kind))) is None or (says(live, SKIP_AWAIT) and kind in STAYS_BEHIND):
        return
    loop = asyncio.get_running_loop()
    end, wait, uid = loop.time() + seconds, FIRST_LOOK_SECONDS / 4, live["metadata"].get("uid")
    while True:
        answer = await cluster.get(served, key, say)
        if answer.status == NOT_FOUND or (answer.status == OK and answer.body["metadata"].get("uid") != uid):
            return
        if answer.status == OK:
            live = answer.body
        if loop.time() + wait > end:
            raise ObjectNotDeletedError(live, _what_holds(kind, live, seconds))
        await asyncio.sleep(wait)
        wait = min(1.5 * wait, LONGEST_LOOK_SECONDS)


def _what_holds(kind: Kind, live: Object, seconds: float) -> str:
    said = f"{kind.kind} {id_of(live)} was deleted and is still there after {seconds:g} s"
    if held := [*(live["metadata"].get("finalizers") or ()), *(live.get("spec", {}).get("finalizers") or ())]:
        said += f": its finalizers {', '.join(held)} hold it; see that the controllers which take them away run"
    conditions = live.get("status", {}).get("conditions") or ()
    left = [one["message"] for one in conditions if one.get("status") == "True" and one.get("message")]
    return "; ".join([said, *left])


async def _related(cluster: Cluster, rule: Rule, live: Object) -> Mapping[str, Object]:
    found: dict[str, Object] = {}
    for kind, name in rule.related(live) if rule.related is not None else ():
        if (served := cluster.kinds.get((kind.api_version, kind.kind))) is None:
            continue
        where = {"metadata": {"name": name, "namespace": live["metadata"].get("namespace", "")}}
        answer = await cluster.get(served, key_for(kind, where, served))
        if answer.status == OK:
            found[f"{kind.kind} {name}"] = answer.body
    return found


async def _again(cluster: Cluster, kind: Kind, live: Object) -> Object:
    """The object as it is now; NotReady where it is gone."""
    served = cluster.kinds[kind.api_version, kind.kind]
    answer = await cluster.get(served, key_for(kind, live, served))
    if answer.status == NOT_FOUND:
        raise ObjectNotReadyError(live, (f"{kind.kind} {id_of(live)} was deleted by somebody while it was waited for",))
    return answer.body if answer.status == OK else live
