"""Objects of an API server as machines and gangs, and readings that fail after their first page."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any

import pytest

from components.plan.access import PREFLIGHT_KEY
from components.spec.pool import PriorityClass
from lifecycle.kubernetes_api.connection import ApiResponse
from lifecycle.rotation.cluster_objects import CHECKPOINTED_AT, ClusterObjects, load_of, scale_set_of, seconds
from lifecycle.rotation.cluster_reading import NODES, PODS, TRIES, VERSION, read_cluster
from lifecycle.rotation.model import Gang, Load, Verdict
from stacks.load import load_plan

NOW = 1_800_000_000.0
STARTED = "2026-11-23T10:00:00Z"
CLUSTER = load_plan("dev").clusters[0]


def pod(name: str, owner: str = "", on: str = "n0", phase: str = "Running", gpus: str = "", **annotations: str) -> dict[str, Any]:
    """Return a Pod of the namespace team; owner is a kind."""
    owners = [{"kind": "Unrelated", "name": "other"}, {"kind": owner, "name": "it", "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "team", "ownerReferences": owners, "annotations": annotations}
    resources = {"requests": {"nvidia.com/gpu": gpus}} if gpus else {}
    spec = {"nodeName": on, "priorityClassName": "normal", "priority": 10_000, "containers": [{"resources": resources}, {}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, "startTime": STARTED}}


def read(*pods: dict[str, Any], groups: tuple[dict[str, Any], ...] = ()) -> tuple[dict[str, tuple[int, Load, tuple[str, ...]]], list[Gang]]:
    """Return pods, load and gangs by node, and all gangs."""
    objects = ClusterObjects(NOW)
    for name in ("n0", "n1"):
        objects.add_node({"metadata": {"name": name}})
    for one in pods:
        objects.add_pod(one)
    for group in groups:
        objects.add_pod_group(group)
    machines = objects.candidates({}, lambda team, pool: f"{team}{pool}")
    return {one.name: (one.seen.pods, one.seen.load, one.seen.gangs) for one in machines}, objects.gangs()


@pytest.mark.parametrize(("taints", "unavailable"), [([], False), ([{"key": PREFLIGHT_KEY, "effect": "NoSchedule"}], True)])
def test_a_node_with_the_taint_of_its_tests_is_unavailable(taints: list[dict[str, str]], unavailable: bool) -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": STARTED}]}
    objects = ClusterObjects(NOW)
    objects.add_node({"metadata": {"name": "n0"}, "spec": {"taints": taints}, "status": ready})
    (machine,) = objects.candidates({}, lambda team, pool: team + pool)
    assert (machine.seen.unavailable, machine.seen.verdict is Verdict.PASSED) == (unavailable, not unavailable)


def test_pods_that_leave_with_their_node_or_have_ended_count_for_nothing() -> None:
    mirror = {"kubernetes.io/config.mirror": "hash"}
    leaving = (pod("a", "DaemonSet"), pod("b", "Node"), pod("c", **mirror), pod("d", "Job", phase="Succeeded"), pod("e", "Job", on=""))
    assert read(*leaving) == ({"n0": (0, Load.EMPTY, ()), "n1": (0, Load.EMPTY, ())}, [])


@pytest.mark.parametrize("owner", ["", "ReplicaSet", "StatefulSet", "ReplicationController"])
def test_pods_of_services_have_no_gang(owner: str) -> None:
    nodes, gangs = read(pod("a", owner))
    assert (nodes["n0"], gangs) == ((1, Load.NORMAL, ()), [])


@pytest.mark.parametrize("owner", ["Job", "MPIJob", "RayCluster"])
def test_pods_of_any_other_controller_are_a_gang_with_its_gpus_per_node(owner: str) -> None:
    nodes, (gang,) = read(pod("a", owner, gpus="4"), pod("b", owner, gpus="4"), pod("c", owner, on="n1", gpus="8"))
    name = f"{owner} team/it"
    assert nodes == {"n0": (2, Load.NORMAL, (name,)), "n1": (1, Load.NORMAL, (name,))}
    assert gang == Gang(name, ("n0", "n1"), Load.NORMAL, 8, seconds(STARTED), "team")


@pytest.mark.parametrize(
    ("text", "counts"),
    [("2026-11-23T12:00:00Z", True), ("2026-11-23T13:00:00+01:00", True), ("2026-11-23T12:00:00", False), ("today", False), ("", False)],
)
def test_the_latest_checkpoint_of_a_pod_counts_if_it_is_a_time_with_an_offset(text: str, counts: bool) -> None:
    _, (gang,) = read(pod("a", "Job"), pod("b", "Job", **{CHECKPOINTED_AT: text}))
    assert gang.checkpoint_at == seconds("2026-11-23T12:00:00Z" if counts else STARTED)


def test_a_load_is_that_of_the_priority_class_and_of_other_classes_by_value() -> None:
    values = {PriorityClass.BALLOON: -1_000, PriorityClass.LOW: 1_000, PriorityClass.NORMAL: 10_000, PriorityClass.HIGH: 100_000}
    found = [load_of({"priorityClassName": name.value, "priority": value}) for name, value in values.items()]
    assert found == [Load.BALLOON, Load.LOW, Load.NORMAL, Load.HIGH]
    assert [load_of({"priority": value}) for value in (-5_000, 0, 5_000, 50_000, 5_000_000)] == [
        Load.BALLOON,
        Load.LOW,
        Load.NORMAL,
        Load.HIGH,
        Load.HIGH,
    ]
    assert load_of({"priorityClassName": "system-cluster-critical", "priority": 2_000_000_000}) is Load.LOW


def test_the_scale_set_is_part_of_the_provider_id() -> None:
    path = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute"
    assert scale_set_of(f"{path}/virtualMachineScaleSets/dev-gpu-000/virtualMachines/12") == "dev-gpu-000"
    assert [scale_set_of(other) for other in ("", "kwok://n", f"{path}/virtualMachines/a")] == ["", "", ""]


class Lists:
    """API server whose second page of pods fails a number of times with a status."""

    def __init__(self, status: int, failures: int, nodes: int = 1) -> None:
        self.status, self.failures, self.nodes, self.requests = status, failures, nodes, 0

    def request(self, method: str, path: str, query: Mapping[str, str]) -> ApiResponse:
        """Return a page of a list."""
        assert method == "GET"
        self.requests += 1
        if path == VERSION:
            return ApiResponse(200, {"gitVersion": "v1.36.3"} if self.nodes == 1 else {}, ())
        if path == NODES:
            return ApiResponse(200, {"items": [{"metadata": {"name": "n0"}}] * self.nodes, "metadata": {}}, ())
        if path != PODS:
            return ApiResponse(200, {"items": [], "metadata": {}}, ())
        if "continue" not in query:
            return ApiResponse(200, {"items": [pod("a", "Job")], "metadata": {"continue": "next"}}, ())
        self.failures -= 1
        if self.failures >= 0:
            return ApiResponse(self.status, {"message": "no such page"}, ())
        return ApiResponse(200, {"items": [pod("b", "Job")], "metadata": {}}, ())


def test_a_list_whose_version_expired_is_read_again_without_counting_a_pod_twice() -> None:
    found = read_cluster(Lists(410, TRIES - 1), CLUSTER, {}, NOW)
    assert (found.incomplete, [one.seen.pods for one in found.machines]) == ("", [2])
    lost = read_cluster(Lists(410, TRIES), CLUSTER, {}, NOW)
    assert (lost.machines, lost.gangs) == ((), ())
    assert lost.incomplete == "cluster dev: GET /api/v1/pods: its version expired before the last page of 500 objects, 3 times"


def test_a_reading_has_the_version_of_the_api_server_and_is_incomplete_without_it() -> None:
    assert read_cluster(Lists(200, 0), CLUSTER, {}, NOW).version == "v1.36.3"
    assert (
        read_cluster(Lists(200, 0, nodes=2), CLUSTER, {}, NOW).incomplete
        == "cluster dev: GET /version: no gitVersion in the answer (HTTP 200)"
    )


def test_a_page_that_fails_makes_the_whole_reading_incomplete() -> None:
    server = Lists(500, 1)
    found = read_cluster(server, CLUSTER, {}, NOW)
    assert (found.machines, found.incomplete) == ((), "cluster dev: GET /api/v1/pods: HTTP 500: no such page")
    assert server.requests == 3
    assert gc.isenabled()


def test_a_cluster_without_nodes_that_should_have_some_is_incomplete() -> None:
    found = read_cluster(Lists(200, 0, nodes=0), CLUSTER, {}, NOW)
    assert found.incomplete == f"cluster dev: the API server has no node, and the plan has {CLUSTER.nodes}"
