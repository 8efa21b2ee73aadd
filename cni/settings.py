"""Settings of the node program: /etc/gpufleet/network.json, the same on every machine of a pool."""

from __future__ import annotations

import json

from components.plan.model import ClusterPlan, PoolPlan
from components.plan.pod_network import ShapingPlan

VERSION = 1
"""Increased when a key changes its meaning, so that an older program refuses the file."""


def settings(cluster: ClusterPlan, pool: PoolPlan) -> str:
    """Return the file's text for the machines of a pool: JSON, ranges as CIDRs, rates in Mbit/s, mtu in bytes.

    The list of teams is not in the file, because a new team would change the boot files of every machine. The traffic exporter receives it.
    """
    network = cluster.pod_network
    document = {
        "version": VERSION,
        "mode": network.cni.value,
        "internal": network.internal,
        "not_masqueraded": network.not_masqueraded,
        "service_cidr": network.service_cidr,
        "snat": network.snat,
        "mtu": network.mtu,
        "planned_pods": pool.spec.pods_per_node,
        "host_network_pods": pool.host_network_pods,
        "shaping": _shaping(network.shaping) if network.shaping else None,
    }
    return json.dumps(document, indent=1) + "\n"


def _shaping(shaping: ShapingPlan) -> dict[str, object]:
    """Return shares of the machine's rate."""
    return {
        "machine_mbit": shaping.machine_mbit,
        "floor_mbit": shaping.floor_mbit,
        "ceiling_mbit": shaping.ceiling_mbit,
        "weights": shaping.weights,
        "default_weight": shaping.default_weight,
        "connections_per_pod": shaping.connections_per_pod,
    }
