"""Readiness of an object by kind, and the reasons why it is not ready.

https://github.com/pulumi/pulumi-kubernetes/tree/master/provider/pkg/await
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import DEFAULT_SECONDS, id_of
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind

Object = Mapping[str, Any]
STARTING = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of a waiting container that are normal during its start."""
SHOWN_PODS = 5
"""Pods that a message names: the others mostly have the same problem."""
CONDITIONS: Mapping[str, str] = {
    "PodScheduled": "is not scheduled",
    "Initialized": "is not initialized",
    "Ready": "is not ready",
}
"""Conditions in the order in which a pod reaches them, each with the description of its absence."""


def condition(item: Object, name: str) -> Object:
    """Return a condition of an object's status; empty where there is none of that name."""
    conditions = item.get("status", {}).get("conditions") or ()
    return next((one for one in conditions if one.get("type") == name), {})


def condition_is_true(item: Object, name: str) -> bool:
    """Return whether a condition of an object is true."""
    return bool(condition(item, name).get("status") == "True")


def pod_is_ready(pod: Object) -> bool:
    """Return whether a pod runs and is ready, or has succeeded."""
    return pod.get("status", {}).get("phase") == "Succeeded" or all(condition_is_true(pod, name) for name in CONDITIONS)


def pod_problem(pod: Object) -> str:
    """Return the reason why a pod is not ready, "" where it is."""
    if pod_is_ready(pod):
        return ""
    reasons_found = [*_container_troubles(pod)]
    missing = next((name for name in CONDITIONS if not condition_is_true(pod, name)), "Ready")
    message = condition(pod, missing).get("message", "")
    reasons = "; ".join(reasons_found or [message] if message else reasons_found) or "its kubelet gives no reason"
    return f"pod {id_of(pod)} {CONDITIONS[missing]}: {reasons}"


def pod_problems(pods: Iterable[Object]) -> Iterator[str]:
    """Yield the reasons why pods are not ready: of some pods, and the number of the others."""
    found = sorted(filter(None, map(pod_problem, pods)))
    yield from found[:SHOWN_PODS]
    if len(found) > SHOWN_PODS:
        yield f"and {len(found) - SHOWN_PODS} more pods that are not ready"


def _container_troubles(pod: Object) -> Iterator[str]:
    status = pod.get("status", {})
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        if container.get("ready"):
            continue
        state, name = container.get("state", {}), container.get("name", "")
        if (waiting := state.get("waiting")) and waiting.get("reason") not in STARTING:
            yield f"container {name} waits: {_state_reason(waiting)}"
        if (ended := state.get("terminated")) and ended.get("exitCode"):
            yield f"container {name} ended with exit code {ended['exitCode']}: {_state_reason(ended)}"
        if last := container.get("lastState", {}).get("terminated"):
            yield f"container {name} ended before with exit code {last.get('exitCode')}: {_state_reason(last)}"


def _state_reason(state: Object) -> str:
    return " ".join(part for part in (state.get("reason", ""), state.get("message", "")) if part) or "no reason given"


NO_ENDPOINTS = "no pod is behind it: check that pods with the labels of its spec.selector run and are ready"
SETTLED_SECONDS = 10.0
"""Seconds for which a Service's endpoints must not change."""


@dataclass(frozen=True)
class Readiness:
    """Readiness of an object, a short description, and the reasons; hopeless where waiting longer is useless."""

    ready: bool
    words: str = ""
    reasons: tuple[str, ...] = ()
    hopeless: bool = False


READY: Final = Readiness(ready=True)


@dataclass(frozen=True)
class ReadinessRule:
    """Readiness rule of one kind.

    verdict takes the object and the objects that it depends on, by "Kind name"; related returns their names. read is True where a refresh
    checks readiness, too. seconds is the timeout; settles is the time for which the related objects must not change. With pods, the report
    on an object that is not ready includes the pods of its selector.
    """

    verdict: Callable[[Object, Mapping[str, Object]], Readiness]
    read: bool = True
    seconds: float = DEFAULT_SECONDS
    settles: float = 0.0
    pods: bool = False
    related: Callable[[Object], tuple[tuple[Kind, str], ...]] | None = None


def observed(item: Object) -> bool:
    """Return whether the controller has observed the newest generation."""
    return bool(item.get("status", {}).get("observedGeneration", 0) >= item["metadata"].get("generation", 0))


def _counts(item: Object, *names: str) -> list[int]:
    status = item.get("status", {})
    return [int(status.get(name) or 0) for name in names]


def deployment(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that all replicas are of the newest revision and ready, none of an older one is left, and enough are available."""
    expected = int(item.get("spec", {}).get("replicas", 1))
    updated, ready, replicas = _counts(item, "updatedReplicas", "readyReplicas", "replicas")
    words = f"{ready} of {expected} pods ready, {updated} of the newest revision"
    done = observed(item) and updated == replicas == expected and ready >= expected and condition_is_true(item, "Available")
    failing = [condition(item, name) for name in ("Progressing", "Available") if condition(item, name).get("status") == "False"]
    return Readiness(done, words, (words, *(f"{one.get('reason')}: {one.get('message')}" for one in failing)))


def daemon_set(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that each selected node has a ready pod of the newest revision."""
    expected, current, updated, available, ready = _counts(
        item, "desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"
    )
    words = f"pods of the newest revision on {updated} of {expected} nodes, {ready} ready"
    return Readiness(observed(item) and min(current, updated, available, ready) >= expected, words, (words,))


def stateful_set(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that all replicas are ready and of the newest revision; the revision does not count with the strategy OnDelete."""
    spec, status = item.get("spec", {}), item.get("status", {})
    expected = int(spec.get("replicas", 1))
    replicas, ready, current = _counts(item, "replicas", "readyReplicas", "currentReplicas")
    words = f"{ready} of {expected} pods ready"
    if not observed(item):
        return Readiness(False, words, (words,))
    if item["metadata"].get("generation", 0) > 1 and spec.get("updateStrategy", {}).get("type") == "OnDelete":
        return Readiness(replicas == ready == expected, words, (words,))
    newest = bool(status.get("currentRevision")) and status.get("currentRevision") == status.get("updateRevision")
    return Readiness(
        newest and replicas == ready == current == expected, words, (words if newest else f"{words}, not all of the newest revision",)
    )


def job(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that the job has started and is complete; a failed job is hopeless."""
    active, succeeded, failed = _counts(item, "active", "succeeded", "failed")
    words = f"{active} pods active, {succeeded} succeeded, {failed} failed"
    if condition_is_true(item, "Failed"):
        why = condition(item, "Failed")
        return Readiness(False, words, (f"{why.get('reason')}: {why.get('message')}",), hopeless=True)
    return Readiness(bool(item.get("status", {}).get("startTime")) and condition_is_true(item, "Complete"), words, (words,))


def pod(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that the pod runs and is ready, or has succeeded."""
    missing = next((words for name, words in CONDITIONS.items() if not condition_is_true(item, name)), "")
    return Readiness(pod_is_ready(item), missing, (pod_problem(item),))


def service(item: Object, related: Mapping[str, Object]) -> Readiness:
    """Check that the service has its external address, if any, and that no pod behind it is still starting."""
    if item.get("spec", {}).get("type") == "LoadBalancer" and not item.get("status", {}).get("loadBalancer", {}).get("ingress"):
        return Readiness(False, "has no address yet", ("no load balancer gave it an address: read the log of the cloud's controller",))
    if not _leads_to_pods(item):
        return READY
    endpoints = related.get(f"Endpoints {item['metadata']['name']}")
    if endpoints is None:
        return Readiness(False, "has no endpoints yet", (NO_ENDPOINTS,))
    subsets = endpoints.get("subsets") or ()
    pending = sum(len(one.get("notReadyAddresses") or ()) for one in subsets)
    return Readiness(not pending, f"{pending} pods behind it not ready", (f"{pending} pods behind it are not ready",))


def _leads_to_pods(item: Object) -> bool:
    """Return whether a service leads to pods through its own address."""
    spec = item.get("spec", {})
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None"


def ingress(item: Object, related: Mapping[str, Object]) -> Readiness:
    """Check that a controller assigned an address, and that the services of its paths have endpoints or are external."""
    if not item.get("status", {}).get("loadBalancer", {}).get("ingress"):
        return Readiness(False, "has no address yet", ("no ingress controller gave it an address: check that one of its class runs",))
    missing = [name for name in backends(item) if f"Endpoints {name}" not in related and not _outside(related.get(f"Service {name}"))]
    return Readiness(
        not missing, "waits for its services", tuple(f"service {name}, to which a path leads, has no endpoints" for name in missing)
    )


def backends(item: Object) -> tuple[str, ...]:
    """Return the names of the services of an ingress."""
    rules = item.get("spec", {}).get("rules") or ()
    paths = [path for rule in rules for path in rule.get("http", {}).get("paths") or ()]
    return tuple(dict.fromkeys(str(path["backend"]["service"]["name"]) for path in paths if path.get("backend", {}).get("service")))


def _outside(found: Object | None) -> bool:
    return found is not None and found.get("spec", {}).get("type") == "ExternalName"


def claim(item: Object, related: Mapping[str, Object]) -> Readiness:
    """Check that the claim is bound, or that its class binds it only with its first pod."""
    phase = item.get("status", {}).get("phase", "Pending")
    late = (
        related.get(f"StorageClass {item.get('spec', {}).get('storageClassName')}", {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    )
    return Readiness(
        phase == "Bound" or (late and phase == "Pending"),
        f"is {phase}",
        (f"it is {phase}: check that a volume of its class can be created",),
    )


def volume(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that the volume can be claimed, or is claimed."""
    phase = item.get("status", {}).get("phase", "Pending")
    return Readiness(phase in ("Available", "Bound"), f"is {phase}", (f"it is {phase}",))


def quota(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that the controller has applied the limits."""
    taken = item.get("spec", {}).get("hard", {}) == item.get("status", {}).get("hard")
    return Readiness(taken, "is not in force yet", ("the controller manager has not applied its limits: check that it runs",))


def replication_controller(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that all replicas are available."""
    expected, (available,) = int(item.get("spec", {}).get("replicas", 1)), _counts(item, "availableReplicas")
    words = f"{available} of {expected} pods available"
    return Readiness(available == expected, words, (words,))


def secret(item: Object, _: Mapping[str, Object]) -> Readiness:
    """Check that the token of a service account is in the secret."""
    waits = item.get("type") == "kubernetes.io/service-account-token" and not item.get("data")
    return Readiness(not waits, "has no token yet", ("no token was written into it: check that its service account exists",))


ENDPOINTS, SERVICE = Kind("v1", "Endpoints"), Kind("v1", "Service")
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass")


def _endpoints_of(item: Object) -> tuple[tuple[Kind, str], ...]:
    return ((ENDPOINTS, item["metadata"]["name"]),) if _leads_to_pods(item) else ()


def _class_of(item: Object) -> tuple[tuple[Kind, str], ...]:
    name = item.get("spec", {}).get("storageClassName")
    return ((STORAGE_CLASS, name),) if name else ()


def _services_of(item: Object) -> tuple[tuple[Kind, str], ...]:
    return tuple((kind, name) for name in backends(item) for kind in (ENDPOINTS, SERVICE))


READINESS_RULES: Mapping[Kind, ReadinessRule] = {
    Kind("apps/v1", "DaemonSet"): ReadinessRule(daemon_set, pods=True),
    Kind("apps/v1", "Deployment"): ReadinessRule(deployment, pods=True),
    Kind("apps/v1", "StatefulSet"): ReadinessRule(stateful_set, pods=True),
    Kind("batch/v1", "Job"): ReadinessRule(job, pods=True),
    Kind("networking.k8s.io/v1", "Ingress"): ReadinessRule(ingress, related=_services_of),
    Kind("v1", "PersistentVolume"): ReadinessRule(volume, read=False, seconds=300.0),
    Kind("v1", "PersistentVolumeClaim"): ReadinessRule(claim, read=False, seconds=300.0, related=_class_of),
    Kind("v1", "Pod"): ReadinessRule(pod),
    Kind("v1", "ReplicationController"): ReadinessRule(replication_controller, read=False),
    Kind("v1", "ResourceQuota"): ReadinessRule(quota, read=False, seconds=60.0),
    Kind("v1", "Secret"): ReadinessRule(secret, read=False, seconds=5.0),
    SERVICE: ReadinessRule(service, settles=SETTLED_SECONDS, related=_endpoints_of),
}
"""Kinds with a readiness rule; all others are ready as soon as they exist."""
