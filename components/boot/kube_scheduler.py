"""Flags and configuration of kube-scheduler 1.36 and the reasons for them."""

from __future__ import annotations

from functools import cache

import yaml

from components.boot.control_keys import KUBERNETES
from components.boot.shared_settings import FEATURE_GATES, TLS_CIPHER_SUITES, TLS_MIN_VERSION

PROGRAM = "/usr/local/bin/kube-scheduler"
KUBECONFIG = f"{KUBERNETES}/scheduler.kubeconfig"
CONFIGURATION = f"{KUBERNETES}/scheduler.yaml"
NODES_TO_SCORE_PERCENT = 5
"""Share of the nodes that the scheduler scores, at least 100 nodes: 375 of 7,500. GPU pods mostly use whole nodes, which are
interchangeable."""
PACKING_WEIGHT = 5
"""Weight above all default scores: nodes that remain empty can run whole-node pods, and can be drained."""
PACKED_RESOURCES = {"nvidia.com/gpu": 5, "cpu": 1, "memory": 1}
BINDS_PER_SECOND = 1_000
"""A job creates hundreds of pods at the same time (https://openai.com/index/scaling-kubernetes-to-7500-nodes/); the default is 50."""


def flags() -> dict[str, str | tuple[str, ...]]:
    """Return the flags of the scheduler, of which one instance is the leader; other settings are in its configuration."""
    return {
        "config": CONFIGURATION,
        "authentication-kubeconfig": KUBECONFIG,
        "authorization-kubeconfig": KUBECONFIG,
        # If it starts before the API server has its roles, the lookup fails; the scheduler then ends and is restarted.
        "authentication-tolerate-lookup-failure": "false",
        "bind-address": "127.0.0.1",
        "feature-gates": FEATURE_GATES,
        "tls-min-version": TLS_MIN_VERSION,
        "tls-cipher-suites": TLS_CIPHER_SUITES,
    }


@cache
def configuration() -> str:
    """Return the KubeSchedulerConfiguration as YAML: https://kubernetes.io/docs/reference/scheduling/config/"""
    resources = [{"name": name, "weight": weight} for name, weight in PACKED_RESOURCES.items()]
    profile = {
        "schedulerName": "default-scheduler",
        "percentageOfNodesToScore": NODES_TO_SCORE_PERCENT,
        "plugins": {
            "score": {
                "disabled": [{"name": "NodeResourcesBalancedAllocation"}, {"name": "NodeResourcesFit"}],
                "enabled": [{"name": "NodeResourcesFit", "weight": PACKING_WEIGHT}],
            }
        },
        "pluginConfig": [
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated", "resources": resources}}},
            # The built-in constraints would spread pods, against the packing.
            {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}},
        ],
    }
    return yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": KUBECONFIG, "qps": BINDS_PER_SECOND, "burst": 2 * BINDS_PER_SECOND},
            "leaderElection": {"leaderElect": True},
            "enableProfiling": False,
            "profiles": [profile],
        },
        sort_keys=False,
    )
