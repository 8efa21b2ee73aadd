"""How often nodes say that they live, and after how long a silence they count as lost, by size of the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.model import ClusterPlan


@dataclass(frozen=True)
class Heartbeats:
    """Seconds: a node renews its lease every quarter of lease, reports an unchanged status every report, and is lost after grace."""

    lease: int
    report: int
    grace: int


SMALL_CLUSTER_NODES = 1_000
SMALL = Heartbeats(lease=40, report=300, grace=50)
"""Kubernetes' defaults: a renewal every 10 s, five of which may be missed.
https://kubernetes.io/docs/reference/command-line-tools-reference/kube-controller-manager/"""
LARGE = Heartbeats(lease=80, report=900, grace=100)
"""At 7,500 nodes 375 lease writes a second instead of 750, and 8 of unchanged status instead of 25. A dead node is found 50 s later; a job
that spans nodes notices by itself."""


def heartbeats(cluster: ClusterPlan) -> Heartbeats:
    """Heartbeats that kubelets and controller manager of a cluster agree on."""
    return SMALL if cluster.nodes <= SMALL_CLUSTER_NODES else LARGE
