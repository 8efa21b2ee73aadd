"""The plan counts the pods on a node's own address exactly as the objects run them."""

from __future__ import annotations

from typing import Any

import pytest
from planned_objects import clusters, of_kind

from components.boot import kubelet
from components.plan.model import PoolPlan
from components.plan.pod_network import host_network_daemons


def runs_on(spec: dict[str, Any], labels: dict[str, str]) -> bool:
    """Return True if a pod spec's selector and required affinity match a node's labels."""
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = [term["matchExpressions"] for term in required.get("nodeSelectorTerms", [])]
    assert all(expression["operator"] == "Exists" for term in terms for expression in term)
    selected = all(labels.get(key) == value for key, value in spec.get("nodeSelector", {}).items())
    return selected and (not terms or any(all(expression["key"] in labels for expression in term) for term in terms))


def pools() -> dict[str, tuple[str, PoolPlan]]:
    """Every pool of the three regions, with its cluster's name."""
    return {f"{name}/{pool.name}": (name, pool) for name, (_, cluster) in clusters().items() for pool in cluster.pools}


@pytest.mark.parametrize("pool", pools())
def test_the_plan_knows_each_daemon_that_shares_a_nodes_address(pool: str) -> None:
    cluster, plan = pools()[pool]
    region_plan, cluster_plan = clusters()[cluster]
    labels = kubelet.labels(region_plan, plan, plan.scale_sets[0])
    running = {
        item["metadata"]["name"]
        for item in of_kind(cluster, "DaemonSet")
        if item["spec"]["template"]["spec"].get("hostNetwork") and runs_on(item["spec"]["template"]["spec"], labels)
    }
    assert running == set(host_network_daemons(plan.size, plan.spec.interconnect))
    assert f"maxPods: {plan.spec.pods_per_node + len(running)}\n" in kubelet.configuration(cluster_plan, plan)


def test_nothing_but_daemons_shares_a_nodes_address() -> None:
    for name in clusters():
        others = of_kind(name, "Deployment", "StatefulSet", "Job", "CronJob")
        assert not [item["metadata"]["name"] for item in others if item["spec"]["template"]["spec"].get("hostNetwork")]
