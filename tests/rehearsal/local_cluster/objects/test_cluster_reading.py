"""Reading of a real API server by the rotation's account: machines, gangs, blockers, and incomplete readings."""

from __future__ import annotations

import dataclasses
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from api_client import Api, eventually

from components.manifests.owned import FLEET_NAMESPACE
from components.plan.access import PREFLIGHT_ACCOUNT, PREFLIGHT_KEY, ROTATION_ACCOUNT, TEAM_LABEL
from components.plan.node_labels import BOOT_DIGEST_LABEL, CHECKPOINTED_AT, CORDONED_BY, IMAGE_LABEL, POOL_LABEL, image_label
from lifecycle.kubernetes_api.connection import Connection
from lifecycle.kubernetes_api.kubeconfig import ApiAccess, read
from lifecycle.rotation import cluster_reading
from lifecycle.rotation.cluster_objects import seconds
from lifecycle.rotation.cluster_reading import read_cluster
from lifecycle.rotation.journal_records import Target
from lifecycle.rotation.model import Freshness, Load, Verdict
from stacks.load import load_plan

CLUSTER = load_plan("dev").clusters[0]
POOL = CLUSTER.pools[0]
TEAM = CLUSTER.spec.tenancy.teams[0].name
TARGETS = {POOL.name: Target(image=POOL.image.pin, boot_digest="ab" * 16)}
CHECKPOINT = "2026-01-02T03:04:05Z"
HERE = f"/api/v1/namespaces/{TEAM}"
GROUPS = f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{TEAM}/podgroups"
BUDGETS = f"/apis/policy/v1/namespaces/{TEAM}/poddisruptionbudgets"
TRAINING, BARE, UNTESTED = "reading-training", "reading-bare", "reading-untested"


def node(name: str, labels: dict[str, str], annotations: dict[str, str], spec: dict[str, Any], *, ready: bool) -> dict[str, Any]:
    """Return a Node."""
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": CHECKPOINT}
    metadata = {"name": name, "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {"conditions": [condition]}}


def pod(name: str, on: str, *, gpus: int = 0, priority: str = "normal", owner: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return a Pod on a node."""
    requests = {"requests": {"nvidia.com/gpu": str(gpus)}, "limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "work", "image": "registry.invalid/work", "resources": requests}
    metadata = {"name": name, "labels": {"app": name}, **({"ownerReferences": [owner]} if owner else {})}
    body = {"nodeName": on, "priorityClassName": priority, "containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


SCALE_SET = "dev-gpu-000"
PROVIDER = f"azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/{SCALE_SET}/virtualMachines/7"
NODES = (
    node(
        TRAINING,
        {POOL_LABEL: POOL.name, IMAGE_LABEL: image_label(POOL.image.pin), BOOT_DIGEST_LABEL: "ab" * 16},
        {CORDONED_BY: "ada"},
        {"providerID": PROVIDER, "unschedulable": True, "taints": [{"key": TEAM_LABEL, "value": TEAM, "effect": "NoSchedule"}]},
        ready=True,
    ),
    node(BARE, {}, {}, {"unschedulable": True}, ready=False),
    node(UNTESTED, {POOL_LABEL: POOL.name}, {}, {"taints": [{"key": PREFLIGHT_KEY, "effect": "NoSchedule"}]}, ready=True),
)
# An owner of a kind that the API server does not know, so that the garbage collector leaves its pods alone.
MPI_JOB = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "mpi", "uid": "1", "controller": True}
PODS = (
    pod("reading-rank-0", TRAINING, gpus=8, priority="high", schedulingGroup={"podGroupName": "reading-five"}),
    pod("reading-rank-1", UNTESTED, gpus=8, priority="high", schedulingGroup={"podGroupName": "reading-five"}),
    pod("reading-mpi", TRAINING, gpus=1, owner=MPI_JOB),
    pod("reading-alone", UNTESTED, priority="balloon"),
    pod("reading-waits", "", priority="low", nodeSelector={"none": "none"}),
)
GROUP = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "reading-five", "annotations": {CHECKPOINTED_AT: "2999-01-02T03:04:05Z"}},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}
BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "reading-budget"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "reading-alone"}}},
}


@pytest.fixture(scope="module")
def filled(api: Api) -> Iterator[Api]:
    """Return the API server with nodes, pods, a gang and a disruption budget."""
    eventually(lambda: api.request("GET", f"{HERE}/serviceaccounts/default").status == 200, "the team's service account")
    for item in NODES:
        api.make("/api/v1/nodes", item)
    api.make(GROUPS, GROUP)
    for item in PODS:
        api.make(f"{HERE}/pods", item)
    api.make(BUDGETS, BUDGET)
    path = f"{BUDGETS}/reading-budget"
    eventually(lambda: api.request("GET", path).body.get("status", {}).get("expectedPods") == 1, "the status of the budget")
    yield api
    api.remove(path)
    for item in PODS:
        api.remove(f"{HERE}/pods/{item['metadata']['name']}")
    api.remove(f"{GROUPS}/reading-five")
    for item in NODES:
        api.remove(f"/api/v1/nodes/{item['metadata']['name']}")


def access_of(api: Api, account: str) -> ApiAccess:
    """Return the access of a service account of gpufleet, by a token and without a client certificate."""
    path = f"/api/v1/namespaces/{FLEET_NAMESPACE}/serviceaccounts/{account}/token"
    token = api.request("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}).body
    access = read(api.path)
    tls = ssl.create_default_context()
    tls.load_verify_locations(cadata="".join(ssl.DER_cert_to_PEM_cert(one) for one in access.tls.get_ca_certs(binary_form=True)))
    return dataclasses.replace(access, tls=tls, token=token["status"]["token"])


@pytest.mark.parametrize("page", [1, 500])
def test_the_rotations_account_reads_machines_gangs_and_blockers_in_pages(filled: Api, page: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_reading, "PAGE", page)
    now = time.time()
    with closing(Connection(access_of(filled, ROTATION_ACCOUNT), 30.0, print)) as connection:
        found = read_cluster(connection, CLUSTER, TARGETS, now)
        assert connection.requests >= (4 if page == 500 else 9)
    assert (found.incomplete, found.version) == ("", "v1.36.3")
    machines = {one.name: one for one in found.machines}
    training, bare, untested = (machines[name] for name in (TRAINING, BARE, UNTESTED))
    seen = training.seen
    assert (seen.scale_set, seen.pool, seen.team, seen.cordoned_by) == (SCALE_SET, POOL.name, TEAM, "ada")
    assert (seen.load, seen.pods, seen.current, seen.verdict) == (Load.HIGH, 2, True, Verdict.PASSED)
    assert seen.gangs == (f"MPIJob {TEAM}/mpi", f"PodGroup {TEAM}/reading-five")
    assert (training.image, training.boot_digest, training.deleting) == (image_label(POOL.image.pin), "ab" * 16, False)
    assert (bare.seen.cordoned_by, bare.seen.ready, bare.seen.load, bare.seen.pods, bare.image) == (
        "unknown owner",
        False,
        Load.EMPTY,
        0,
        "",
    )
    assert (untested.seen.verdict, untested.seen.current, untested.seen.pods, untested.seen.cordoned_by) == (Verdict.UNKNOWN, False, 2, "")
    gangs = {gang.id: gang for gang in found.gangs}
    five = gangs[f"PodGroup {TEAM}/reading-five"]
    assert (set(five.nodes), five.load, five.gpus, five.owner) == ({TRAINING, UNTESTED}, Load.HIGH, 8, TEAM)
    assert now - 120 < five.checkpoint_at <= now, "a checkpoint that has not come does not count, so the start does"
    assert [str(one) for one in found.blockers if one.name.startswith("reading")] == [
        f"PodDisruptionBudget {TEAM}/reading-budget allows 0 disruptions: 0 pods are healthy, and it needs 1"
    ]
    assert found.freshness(None, now - 5) == Freshness(now, now, now - 5)


def test_the_checkpoint_of_a_pod_group_replaces_the_start_of_its_pods(filled: Api) -> None:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 1))
    patch = {"metadata": {"annotations": {CHECKPOINTED_AT: at}}}
    reply = filled.request("PATCH", f"{GROUPS}/reading-five", patch, kind="application/merge-patch+json")
    assert reply.status == 200, reply.message
    with closing(Connection(read(filled.path), 30.0, print)) as connection:
        found = read_cluster(connection, CLUSTER, TARGETS, time.time() + 2)
    (five,) = (gang for gang in found.gangs if gang.id.endswith("reading-five"))
    assert five.checkpoint_at == seconds(at)


def test_an_account_without_the_right_gets_an_incomplete_reading_instead_of_an_empty_cluster(filled: Api) -> None:
    with closing(Connection(access_of(filled, PREFLIGHT_ACCOUNT), 30.0, print)) as connection:
        found = read_cluster(connection, CLUSTER, TARGETS, 100.0)
    assert (found.machines, found.gangs, found.blockers) == ((), (), ())
    assert found.incomplete.startswith("cluster dev: GET /api/v1/nodes: HTTP 403: nodes is forbidden: ")
    before = Freshness(50.0, 60.0, 70.0)
    assert found.freshness(before, 90.0, 95.0) == Freshness(50.0, 60.0, 90.0, found.incomplete, 95.0)


def test_an_api_server_that_does_not_answer_gives_an_incomplete_reading(filled: Api) -> None:
    closed = dataclasses.replace(read(filled.path), host="127.0.0.1", port=1)
    with closing(Connection(closed, 0.2, print)) as connection:
        found = read_cluster(connection, CLUSTER, TARGETS, 100.0)
    assert (found.machines, found.freshness(None, 1.0).nodes_at) == ((), 0.0)
    assert "cluster dev: https://127.0.0.1:1: GET /api/v1/nodes: ConnectionRefusedError, for 0.2 s" in found.incomplete
