"""When an object is ready, kind by kind, and what is said while it is not.

https://github.com/pulumi/pulumi-kubernetes/tree/master/provider/pkg/await
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.pulumi_cli.providers.kubernetes.metadata import DEFAULT_SECONDS
from rehearsal.pulumi_cli.providers.kubernetes.pods import CONDITIONS, condition, holds, pod_is_ready, pod_trouble
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind

Object = Mapping[str, Any]
NO_ENDPOINTS = "no pod is behind it: see that pods with the labels of its spec.selector run and are ready"
SETTLED_SECONDS = 10.0
"""How long a Service's endpoints must stay as they are."""


@dataclass(frozen=True)
class Verdict:
    """Whether an object is ready, what to say of it in a few words, and what keeps it; hopeless where waiting longer is of no use."""

    ready: bool
    words: str = ""
    reasons: tuple[str, ...] = ()
    hopeless: bool = False


READY: Final = Verdict(ready=True)


@dataclass(frozen=True)
class Rule:
    """How one kind becomes ready.

    verdict takes the object and what it depends on, by "Kind name", which related names; read says that a refresh asks too; seconds is
    the longest that is waited, settles for how long what it depends on must stay as it is; with pods, those that its selector finds are
    told of where it does not become ready.
    """

    verdict: Callable[[Object, Mapping[str, Object]], Verdict]
    read: bool = True
    seconds: float = DEFAULT_SECONDS
    settles: float = 0.0
    pods: bool = False
    related: Callable[[Object], tuple[tuple[Kind, str], ...]] | None = None


def observed(item: Object) -> bool:
    """Whether the controller has seen the newest generation."""
    return bool(item.get("status", {}).get("observedGeneration", 0) >= item["metadata"].get("generation", 0))


def _counts(item: Object, *names: str) -> list[int]:
    status = item.get("status", {})
    return [int(status.get(name) or 0) for name in names]


def deployment(item: Object, _: Mapping[str, Object]) -> Verdict:
    """All replicas are of the newest revision and ready, none of a former one is left, and enough are available."""
    wanted = int(item.get("spec", {}).get("replicas", 1))
    updated, ready, replicas = _counts(item, "updatedReplicas", "readyReplicas", "replicas")
    words = f"{ready} of {wanted} pods ready, {updated} of the newest revision"
    done = observed(item) and updated == replicas == wanted and ready >= wanted and holds(item, "Available")
    failing = [condition(item, name) for name in ("Progressing", "Available") if condition(item, name).get("status") == "False"]
    return Verdict(done, words, (words, *(f"{one.get('reason')}: {one.get('message')}" for one in failing)))


def daemon_set(item: Object, _: Mapping[str, Object]) -> Verdict:
    """A ready pod of the newest revision is on every node that is to have one."""
    wanted, current, updated, available, ready = _counts(
        item, "desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"
    )
    words = f"pods of the newest revision on {updated} of {wanted} nodes, {ready} ready"
    return Verdict(observed(item) and min(current, updated, available, ready) >= wanted, words, (words,))


def stateful_set(item: Object, _: Mapping[str, Object]) -> Verdict:
    """All replicas are ready and of the newest revision, which nobody waits for where pods are only replaced by hand."""
    spec, status = item.get("spec", {}), item.get("status", {})
    wanted = int(spec.get("replicas", 1))
    replicas, ready, current = _counts(item, "replicas", "readyReplicas", "currentReplicas")
    words = f"{ready} of {wanted} pods ready"
    if not observed(item):
        return Verdict(False, words, (words,))
    if item["metadata"].get("generation", 0) > 1 and spec.get("updateStrategy", {}).get("type") == "OnDelete":
        return Verdict(replicas == ready == wanted, words, (words,))
    newest = bool(status.get("currentRevision")) and status.get("currentRevision") == status.get("updateRevision")
    return Verdict(
        newest and replicas == ready == current == wanted, words, (words if newest else f"{words}, not all of the newest revision",)
    )


def job(item: Object, _: Mapping[str, Object]) -> Verdict:
    """It has started and is complete; failed for good it is hopeless."""
    active, succeeded, failed = _counts(item, "active", "succeeded", "failed")
    words = f"{active} pods active, {succeeded} succeeded, {failed} failed"
    if holds(item, "Failed"):
        why = condition(item, "Failed")
        return Verdict(False, words, (f"{why.get('reason')}: {why.get('message')}",), hopeless=True)
    return Verdict(bool(item.get("status", {}).get("startTime")) and holds(item, "Complete"), words, (words,))


def pod(item: Object, _: Mapping[str, Object]) -> Verdict:
    """It runs and is ready, or has done its work."""
    missing = next((words for name, words in CONDITIONS.items() if not holds(item, name)), "")
    return Verdict(pod_is_ready(item), missing, (pod_trouble(item),))


def service(item: Object, related: Mapping[str, Object]) -> Verdict:
    """It has its outer address if it is to have one, and none of the pods behind it is still starting."""
    if item.get("spec", {}).get("type") == "LoadBalancer" and not item.get("status", {}).get("loadBalancer", {}).get("ingress"):
        return Verdict(False, "has no address yet", ("no load balancer gave it an address: see what the cloud's controller says of it",))
    if not _leads_to_pods(item):
        return READY
    endpoints = related.get(f"Endpoints {item['metadata']['name']}")
    if endpoints is None:
        return Verdict(False, "has no endpoints yet", (NO_ENDPOINTS,))
    subsets = endpoints.get("subsets") or ()
    pending = sum(len(one.get("notReadyAddresses") or ()) for one in subsets)
    return Verdict(not pending, f"{pending} pods behind it not ready", (f"{pending} pods behind it are not ready",))


def _leads_to_pods(item: Object) -> bool:
    """Whether a service has pods behind one address of its own."""
    spec = item.get("spec", {})
    return bool(spec.get("selector")) and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None"


def ingress(item: Object, related: Mapping[str, Object]) -> Verdict:
    """A controller gave it an address, and the services of its paths have endpoints or are outside."""
    if not item.get("status", {}).get("loadBalancer", {}).get("ingress"):
        return Verdict(False, "has no address yet", ("no ingress controller gave it an address: see that one of its class runs",))
    missing = [name for name in backends(item) if f"Endpoints {name}" not in related and not _outside(related.get(f"Service {name}"))]
    return Verdict(
        not missing, "waits for its services", tuple(f"service {name}, to which a path leads, has no endpoints" for name in missing)
    )


def backends(item: Object) -> tuple[str, ...]:
    """Names of the services to which an ingress leads."""
    rules = item.get("spec", {}).get("rules") or ()
    paths = [path for rule in rules for path in rule.get("http", {}).get("paths") or ()]
    return tuple(dict.fromkeys(str(path["backend"]["service"]["name"]) for path in paths if path.get("backend", {}).get("service")))


def _outside(found: Object | None) -> bool:
    return found is not None and found.get("spec", {}).get("type") == "ExternalName"


def claim(item: Object, related: Mapping[str, Object]) -> Verdict:
    """It is bound, or its class binds it only with its first pod."""
    phase = item.get("status", {}).get("phase", "Pending")
    late = (
        related.get(f"StorageClass {item.get('spec', {}).get('storageClassName')}", {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    )
    return Verdict(
        phase == "Bound" or (late and phase == "Pending"), f"is {phase}", (f"it is {phase}: see that a volume of its class can be made",)
    )


def volume(item: Object, _: Mapping[str, Object]) -> Verdict:
    """It is there to be claimed, or claimed."""
    phase = item.get("status", {}).get("phase", "Pending")
    return Verdict(phase in ("Available", "Bound"), f"is {phase}", (f"it is {phase}",))


def quota(item: Object, _: Mapping[str, Object]) -> Verdict:
    """Its controller has taken the limits up."""
    taken = item.get("spec", {}).get("hard", {}) == item.get("status", {}).get("hard")
    return Verdict(taken, "is not in force yet", ("the controller manager has not taken its limits up: see that it runs",))


def replication_controller(item: Object, _: Mapping[str, Object]) -> Verdict:
    """As many replicas are available as it is to have."""
    wanted, (available,) = int(item.get("spec", {}).get("replicas", 1)), _counts(item, "availableReplicas")
    words = f"{available} of {wanted} pods available"
    return Verdict(available == wanted, words, (words,))


def secret(item: Object, _: Mapping[str, Object]) -> Verdict:
    """A token of a service account has been written into it."""
    waits = item.get("type") == "kubernetes.io/service-account-token" and not item.get("data")
    return Verdict(not waits, "has no token yet", ("no token was written into it: see that its service account exists",))


ENDPOINTS, SERVICE = Kind("v1", "Endpoints"), Kind("v1", "Service")
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass")


def _endpoints_of(item: Object) -> tuple[tuple[Kind, str], ...]:
    return ((ENDPOINTS, item["metadata"]["name"]),) if _leads_to_pods(item) else ()


def _class_of(item: Object) -> tuple[tuple[Kind, str], ...]:
    name = item.get("spec", {}).get("storageClassName")
    return ((STORAGE_CLASS, name),) if name else ()


def _services_of(item: Object) -> tuple[tuple[Kind, str], ...]:
    return tuple((kind, name) for name in backends(item) for kind in (ENDPOINTS, SERVICE))


RULES: Mapping[Kind, Rule] = {
    Kind("apps/v1", "DaemonSet"): Rule(daemon_set, pods=True),
    Kind("apps/v1", "Deployment"): Rule(deployment, pods=True),
    Kind("apps/v1", "StatefulSet"): Rule(stateful_set, pods=True),
    Kind("batch/v1", "Job"): Rule(job, pods=True),
    Kind("networking.k8s.io/v1", "Ingress"): Rule(ingress, related=_services_of),
    Kind("v1", "PersistentVolume"): Rule(volume, read=False, seconds=300.0),
    Kind("v1", "PersistentVolumeClaim"): Rule(claim, read=False, seconds=300.0, related=_class_of),
    Kind("v1", "Pod"): Rule(pod),
    Kind("v1", "ReplicationController"): Rule(replication_controller, read=False),
    Kind("v1", "ResourceQuota"): Rule(quota, read=False, seconds=60.0),
    Kind("v1", "Secret"): Rule(secret, read=False, seconds=5.0),
    SERVICE: Rule(service, settles=SETTLED_SECONDS, related=_endpoints_of),
}
"""Kinds that are waited for; all others are ready as soon as they are there."""
