"""Readiness of objects by kind, and the message while an object is not ready."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.program.pulumi_values import Json
from rehearsal.pulumi_cli.providers.kubernetes.readiness import READINESS_RULES, Readiness, pod_problem, pod_problems
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import kind_of

DEPLOYED = {"observedGeneration": 2, "updatedReplicas": 2, "readyReplicas": 2, "replicas": 2}
SCHEDULED = {
    "observedGeneration": 2,
    "desiredNumberScheduled": 2,
    "currentNumberScheduled": 2,
    "updatedNumberScheduled": 2,
    "numberAvailable": 2,
    "numberReady": 2,
}
STATEFUL = {"observedGeneration": 2, "replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "currentRevision": "a", "updateRevision": "a"}
SELECTS = {"selector": {"app": "one"}}
INGRESS = {"rules": [{"http": {"paths": [{"backend": {"service": {"name": "one"}}}]}}]}
ADDRESS = {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}


def _condition(name: str, *, true: bool = True, **more: str) -> Json:
    return {"type": name, "status": "True" if true else "False", **more}


def _verdict(token: str, spec: Json, status: Json, related: Json | None = None, **more: Any) -> Readiness:
    item = {"metadata": {"name": "one", "namespace": "a", "generation": 2}, "spec": spec, "status": status, **more}
    return READINESS_RULES[kind_of(f"kubernetes:{token}")].verdict(item, related or {})


AVAILABLE = [_condition("Available")]
READY: dict[str, tuple[str, Json, Json, Json]] = {
    "a deployment": ("apps/v1:Deployment", {"replicas": 2}, {**DEPLOYED, "conditions": AVAILABLE}, {}),
    "an empty deployment": ("apps/v1:Deployment", {"replicas": 0}, {"observedGeneration": 2, "conditions": AVAILABLE}, {}),
    "a daemon set": ("apps/v1:DaemonSet", {}, SCHEDULED, {}),
    "a daemon set without nodes": ("apps/v1:DaemonSet", {}, {"observedGeneration": 2}, {}),
    "a stateful set": ("apps/v1:StatefulSet", {"replicas": 2}, STATEFUL, {}),
    "a stateful set replaced by hand": (
        "apps/v1:StatefulSet",
        {"replicas": 2, "updateStrategy": {"type": "OnDelete"}},
        {**STATEFUL, "updateRevision": "b"},
        {},
    ),
    "a job": ("batch/v1:Job", {}, {"startTime": "now", "conditions": [_condition("Complete")]}, {}),
    "a pod": ("core/v1:Pod", {}, {"conditions": [_condition(one) for one in ("PodScheduled", "Initialized", "Ready")]}, {}),
    "a pod that is done": ("core/v1:Pod", {}, {"phase": "Succeeded"}, {}),
    "a service without pods": ("core/v1:Service", {"clusterIP": "10.0.0.1"}, {}, {}),
    "a headless service": ("core/v1:Service", {"clusterIP": "None", **SELECTS}, {}, {}),
    "a service with pods": ("core/v1:Service", SELECTS, {}, {"Endpoints one": {"subsets": [{"addresses": [{"ip": "a"}]}]}}),
    "a service with an address": ("core/v1:Service", {"type": "LoadBalancer"}, ADDRESS, {}),
    "an ingress": ("networking.k8s.io/v1:Ingress", INGRESS, ADDRESS, {"Endpoints one": {}}),
    "an ingress to the outside": ("networking.k8s.io/v1:Ingress", INGRESS, ADDRESS, {"Service one": {"spec": {"type": "ExternalName"}}}),
    "a claim": ("core/v1:PersistentVolumeClaim", {}, {"phase": "Bound"}, {}),
    "a claim that waits for its pod": (
        "core/v1:PersistentVolumeClaim",
        {"storageClassName": "late"},
        {"phase": "Pending"},
        {"StorageClass late": {"volumeBindingMode": "WaitForFirstConsumer"}},
    ),
    "a volume": ("core/v1:PersistentVolume", {}, {"phase": "Available"}, {}),
    "a quota": ("core/v1:ResourceQuota", {"hard": {"pods": "1"}}, {"hard": {"pods": "1"}}, {}),
    "a replication controller": ("core/v1:ReplicationController", {"replicas": 2}, {"availableReplicas": 2}, {}),
}
STALLED = [
    _condition("Available"),
    _condition("Progressing", true=False, reason="ProgressDeadlineExceeded", message="timed out progressing"),
]
NOT_READY: dict[str, tuple[str, Json, Json, Json, str]] = {
    "a deployment nobody has seen": (
        "apps/v1:Deployment",
        {"replicas": 0},
        {"observedGeneration": 1, "conditions": AVAILABLE},
        {},
        "0 of 0",
    ),
    "a deployment with old pods": (
        "apps/v1:Deployment",
        {"replicas": 2},
        {**DEPLOYED, "replicas": 3, "conditions": AVAILABLE},
        {},
        "2 of 2",
    ),
    "a deployment that stalls": (
        "apps/v1:Deployment",
        {"replicas": 2},
        {**DEPLOYED, "readyReplicas": 1, "conditions": STALLED},
        {},
        "ProgressDeadlineExceeded: timed out progressing",
    ),
    "a daemon set of an old revision": ("apps/v1:DaemonSet", {}, {**SCHEDULED, "updatedNumberScheduled": 1}, {}, "on 1 of 2 nodes"),
    "a stateful set nobody has seen": ("apps/v1:StatefulSet", {"replicas": 2}, {**STATEFUL, "observedGeneration": 1}, {}, "2 of 2 pods"),
    "a stateful set of two revisions": (
        "apps/v1:StatefulSet",
        {"replicas": 2},
        {**STATEFUL, "updateRevision": "b"},
        {},
        "not all of the newest revision",
    ),
    "a job that runs": ("batch/v1:Job", {}, {"startTime": "now", "active": 1}, {}, "1 pods active"),
    "a pod that is not scheduled": (
        "core/v1:Pod",
        {},
        {"conditions": [_condition("PodScheduled", true=False, message="0/3 nodes are available")]},
        {},
        "pod a/one is not scheduled: 0/3 nodes are available",
    ),
    "a service without an address": ("core/v1:Service", {"type": "LoadBalancer"}, {}, {}, "no load balancer gave it an address"),
    "a service without endpoints": ("core/v1:Service", SELECTS, {}, {}, "check that pods with the labels of its spec.selector run"),
    "a service with starting pods": (
        "core/v1:Service",
        SELECTS,
        {},
        {"Endpoints one": {"subsets": [{"notReadyAddresses": [{"ip": "a"}]}]}},
        "1 pods behind it are not ready",
    ),
    "an ingress without an address": ("networking.k8s.io/v1:Ingress", INGRESS, {}, {"Endpoints one": {}}, "no ingress controller"),
    "an ingress to nothing": ("networking.k8s.io/v1:Ingress", INGRESS, ADDRESS, {}, "service one, to which a path leads, has no endpoints"),
    "a claim": ("core/v1:PersistentVolumeClaim", {}, {"phase": "Pending"}, {}, "it is Pending"),
    "a volume": ("core/v1:PersistentVolume", {}, {"phase": "Failed"}, {}, "it is Failed"),
    "a quota": ("core/v1:ResourceQuota", {"hard": {"pods": "2"}}, {"hard": {"pods": "1"}}, {}, "has not applied its limits"),
    "a replication controller": ("core/v1:ReplicationController", {"replicas": 2}, {}, {}, "0 of 2 pods available"),
}


@pytest.mark.parametrize("what", READY)
def test_what_is_ready(what: str) -> None:
    token, spec, status, related = READY[what]
    assert _verdict(token, spec, status, related).ready


@pytest.mark.parametrize("what", NOT_READY)
def test_what_is_not_ready_and_why(what: str) -> None:
    token, spec, status, related, said = NOT_READY[what]
    verdict = _verdict(token, spec, status, related)
    assert not verdict.ready
    assert not verdict.hopeless
    assert said in "; ".join(verdict.reasons)


def test_a_failed_job_is_not_waited_for() -> None:
    failed = _condition("Failed", reason="BackoffLimitExceeded", message="too many pods failed")
    verdict = _verdict("batch/v1:Job", {}, {"conditions": [failed]})
    assert verdict.hopeless
    assert verdict.reasons == ("BackoffLimitExceeded: too many pods failed",)


def test_a_token_is_waited_for_and_other_secrets_are_not() -> None:
    assert not _verdict("core/v1:Secret", {}, {}, type="kubernetes.io/service-account-token").ready
    assert _verdict("core/v1:Secret", {}, {}, type="kubernetes.io/service-account-token", data={"token": "a"}).ready
    assert _verdict("core/v1:Secret", {}, {}, type="Opaque").ready


def _pod(name: str, **status: Any) -> Json:
    return {"metadata": {"name": name, "namespace": "a"}, "status": {"conditions": [_condition("PodScheduled")], **status}}


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}, "waits: ImagePullBackOff no such image"),
        ({"state": {"terminated": {"reason": "Error", "exitCode": 3}}}, "ended with exit code 3: Error"),
        (
            {"state": {}, "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}},
            "ended before with exit code 137: OOMKilled",
        ),
        ({"state": {"waiting": {"reason": "ContainerCreating"}}}, "its kubelet gives no reason"),
        ({"ready": True, "state": {"running": {}}}, "its kubelet gives no reason"),
    ],
)
def test_what_ails_a_pod_is_told(state: Json, said: str) -> None:
    pod = _pod("one", containerStatuses=[{"name": "main", **state}])
    assert pod_problem(pod).startswith("pod a/one is not initialized: ")
    assert said in pod_problem(pod)


def test_of_many_pods_a_few_are_told_of() -> None:
    result = list(pod_problems([_pod(f"pod-{number}") for number in range(9)]))
    assert len(result) == 6
    assert result[-1] == "and 4 more pods that are not ready"
