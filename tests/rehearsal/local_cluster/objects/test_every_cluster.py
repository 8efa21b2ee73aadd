"""The objects of every cluster of the three regions, and the pods that their workloads make, put before a real API server."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_client import Api, eventually

from components.kubernetes_objects import unawaited
from components.manifests.objects import cluster_objects
from rehearsal.local_cluster.objects.apply import apply
from rehearsal.local_cluster.objects.results import KubernetesObject
from stacks.load import load_plan

REGIONS = ("dev", "southcentralus", "swedencentral")
RANGES = "/apis/networking.k8s.io/v1/servicecidrs"
KUBE_DNS = "/api/v1/namespaces/kube-system/services/kube-dns"
COREDNS = "/apis/apps/v1/namespaces/kube-system/deployments/coredns?propagationPolicy=Background"
WORKLOADS = ("Deployment", "DaemonSet")


def _quiet(_: str) -> None:
    """Print nothing."""


@pytest.fixture
def foreign(api: Api, kubeconfig: Path, declared: tuple[KubernetesObject, ...]) -> Iterator[Api]:
    """The API server with every cluster's service addresses, and afterwards with dev's objects alone."""
    clusters = [cluster for name in REGIONS[1:] for cluster in load_plan(name).clusters]
    ranges = sorted({cluster.network.service_cidr for cluster in clusters})
    for number, cidr in enumerate(ranges):
        path = f"{RANGES}/foreign-{number}"
        made = {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "ServiceCIDR",
            "metadata": {"name": f"foreign-{number}"},
            "spec": {"cidrs": [cidr]},
        }
        api.make(RANGES, made)
        eventually(lambda path=path: "conditions" in api.request("GET", path).body.get("status", {}), "the range is ready")
    yield api
    api.remove(KUBE_DNS)
    # Without nodes its rollout from one cluster's size to the next's would never finish, and keep what it mounted.
    api.remove(COREDNS)
    for number in range(len(ranges)):
        api.remove(f"{RANGES}/foreign-{number}")
    eventually(lambda: apply(kubeconfig, declared, _quiet, prune_teams=True).complete, "dev's objects again")


def _pod(workload: KubernetesObject) -> dict[str, Any]:
    """A pod as a workload's controller would make it."""
    template = copy.deepcopy(workload["spec"]["template"])
    metadata = {**template["metadata"], "generateName": f"{workload['metadata']['name']}-"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def test_every_object_of_every_cluster_and_every_pod_of_them_is_accepted_without_a_warning(foreign: Api, kubeconfig: Path) -> None:
    for region in map(load_plan, REGIONS):
        for cluster in region.clusters:
            where = f"{region.name}/{cluster.name}"
            objects = [unawaited(item) for item in cluster_objects(region, cluster)]
            # An address of a service cannot be changed.
            foreign.remove(KUBE_DNS)
            applied = apply(kubeconfig, objects, _quiet)
            assert [str(one) for one in (*applied.failed, *applied.conflicts)] == [], where
            assert applied.warnings == (), where
            for item in objects:
                if item["kind"] in WORKLOADS:
                    path = f"/api/v1/namespaces/{item['metadata']['namespace']}/pods?dryRun=All"
                    admitted = foreign.request("POST", path, _pod(item))
                    assert admitted.status == 201, (where, admitted.message)
                    assert "Warning" not in admitted.headers, (where, admitted.headers["Warning"])


@pytest.mark.parametrize(
    ("what", "spec", "status"),
    [
        ("a job's pod", {}, 201),
        ("a pod on the host's network", {"hostNetwork": True}, 403),
        ("a pod that sees the host's processes", {"hostPID": True}, 403),
        ("a pod that mounts the host", {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}, 403),
    ],
)
def test_a_teams_namespace_admits_no_pod_that_reaches_the_host(api: Api, what: str, spec: dict[str, Any], status: int) -> None:
    team = load_plan("dev").clusters[0].spec.tenancy.teams[0].name
    eventually(lambda: api.request("GET", f"/api/v1/namespaces/{team}/serviceaccounts/default").status == 200, "the team's default account")
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}, "spec": {"containers": [container], **spec}}
    reply = api.request("POST", f"/api/v1/namespaces/{team}/pods?dryRun=All", pod)
    assert reply.status == status, (what, reply.message)
    assert status == 201 or "PodSecurity" in reply.message
