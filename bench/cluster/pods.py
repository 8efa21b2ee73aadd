"""Pods of the benchmark: one per node with all its GPUs, in Deployments of a team's namespace."""

from __future__ import annotations

import time
from typing import Any

from bench.cluster.region import TEAM
from lifecycle.kubernetes_api.connection import Connection

IMAGE = "registry.k8s.io/pause:3.10"
GPUS = {"nvidia.com/gpu": "8"}
LIMIT_SECONDS = 120.0


def wait_for_account(connection: Connection) -> None:
    """Wait until the namespace has its default service account, without which no pod can be created."""
    until = time.monotonic() + LIMIT_SECONDS
    while connection.request("GET", f"/api/v1/namespaces/{TEAM}/serviceaccounts/default").status != 200:
        if time.monotonic() > until:
            raise RuntimeError(f"namespace {TEAM} has no default service account after {LIMIT_SECONDS:.0f} s")
        time.sleep(0.1)


def make(connection: Connection, pods: int, per_deployment: int | None) -> None:
    """Create the Deployments."""
    each = per_deployment or pods
    for number, first in enumerate(range(0, pods, each)):
        item = deployment(f"whole-node-{number:03}", min(each, pods - first))
        answer = connection.request("POST", f"/apis/apps/v1/namespaces/{TEAM}/deployments", {}, item)
        if answer.status != 201:
            raise RuntimeError(f"a Deployment of {each} pods is refused: {answer.message}")


def deployment(name: str, replicas: int) -> dict[str, Any]:
    """Return a Deployment whose pods each take all GPUs of a node."""
    labels = {"app": name}
    container = {"name": "pause", "image": IMAGE, "resources": {"requests": GPUS, "limits": GPUS}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
