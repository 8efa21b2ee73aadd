"""Priority classes of jobs and of gpufleet's pods, lowest first."""

from __future__ import annotations

from dataclasses import dataclass

from components.manifests.owned import Object, owned
from components.spec.pool import PriorityClass

CONCERN = "priority"
NODE_CRITICAL = "system-node-critical"
"""Built-in class of pods that every node needs before any job: proxy, DNS cache, device plugins."""
CLUSTER_CRITICAL = "system-cluster-critical"
"""Built-in class of pods that the whole cluster needs: https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/"""
TELEMETRY = "gpufleet-telemetry"


@dataclass(frozen=True)
class Priority:
    """One priority class; preempts: its pods may evict lower ones; default: pods without a class get it."""

    name: str
    value: int
    preempts: bool
    default: bool
    description: str


PRIORITIES = (
    Priority(PriorityClass.BALLOON.value, -1_000, False, False, "Holds nodes that nobody uses; yields at once to any job."),
    Priority(PriorityClass.LOW.value, 1_000, True, False, "May be interrupted whenever others need the nodes."),
    Priority(PriorityClass.NORMAL.value, 10_000, True, True, "What a job gets that asks for nothing else."),
    Priority(PriorityClass.HIGH.value, 100_000, True, False, "Interrupted last, and only after its deadline."),
    # Never preempts: a telemetry pod must not end a job that uses a full node.
    Priority(TELEMETRY, 1_000_000, False, False, "Measures nodes; neither evicted by jobs nor evicting them."),
)


def priority_objects() -> list[Object]:
    """Return all objects of this concern, the same for every cluster."""
    return [
        owned("scheduling.k8s.io/v1", "PriorityClass", row.name, CONCERN)
        | {
            "value": row.value,
            "globalDefault": row.default,
            "preemptionPolicy": "PreemptLowerPriority" if row.preempts else "Never",
            "description": row.description,
        }
        for row in PRIORITIES
    ]
