"""Why pods do not run, in a sentence each: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rehearsal.pulumi_cli.providers.kubernetes.metadata import id_of

Object = Mapping[str, Any]
STARTING = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons to wait that need nobody's doing."""
SHOWN = 5
"""Pods that are told of: what ails a hundred is mostly the same."""
CONDITIONS: Mapping[str, str] = {
    "PodScheduled": "is not scheduled",
    "Initialized": "is not initialized",
    "Ready": "is not ready",
}
"""Conditions in the order in which a pod gets them, each with what is said where it is missing."""


def condition(item: Object, name: str) -> Object:
    """A condition of an object's status; empty where it has none of the name."""
    conditions = item.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == name), {})


def holds(item: Object, name: str) -> bool:
    """Whether a condition of an object is true."""
    return bool(condition(item, name).get("status") == "True")


def pod_is_ready(pod: Object) -> bool:
    """Whether a pod runs with all that it needs, or has done its work."""
    return pod.get("status", {}).get("phase") == "Succeeded" or all(holds(pod, name) for name in CONDITIONS)


def pod_trouble(pod: Object) -> str:
    """What keeps a pod from being ready, "" where nothing does."""
    if pod_is_ready(pod):
        return ""
    said = [*_container_troubles(pod)]
    missing = next((name for name in CONDITIONS if not holds(pod, name)), "Ready")
    told = condition(pod, missing).get("message", "")
    reasons = "; ".join(said or [told] if told else said) or "its kubelet has not said why"
    return f"pod {id_of(pod)} {CONDITIONS[missing]}: {reasons}"


def troubles(pods: Iterable[Object]) -> Iterator[str]:
    """What keeps pods from being ready: of a few, and how many more there are."""
    found = sorted(filter(None, map(pod_trouble, pods)))
    yield from found[:SHOWN]
    if len(found) > SHOWN:
        yield f"and {len(found) - SHOWN} more pods that are not ready"


def _container_troubles(pod: Object) -> Iterator[str]:
    status = pod.get("status", {})
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if container.get("ready"):
            continue
        state, name = container.get("state", {}), container.get("name", "")
        if (waiting := state.get("waiting")) and waiting.get("reason") not in STARTING:
            yield f"container {name} waits: {_told(waiting)}"
        if (ended := state.get("terminated")) and ended.get("exitCode"):
            yield f"container {name} ended with exit code {ended['exitCode']}: {_told(ended)}"
        if last := container.get("lastState", {}).get("terminated"):
            yield f"container {name} ended before with exit code {last.get('exitCode')}: {_told(last)}"


def _told(state: Object) -> str:
    return " ".join(part for part in (state.get("reason", ""), state.get("message", "")) if part) or "no reason given"
