"""Which program keeps the pod network of a node in place, what it is told, and what the kubelet learns from it."""

from __future__ import annotations

from cni import conflists, settings
from components.boot import azure_endpoints, system
from components.boot.machine import BootFile
from components.boot.unit import unit
from components.plan.model import ClusterPlan, PoolPlan

UNIT = "gpufleet-node.service"
PROGRAM = "/usr/local/sbin/gpufleet-node"
"""In the image: gpufleet image-files makes it from cni/node."""
SETTINGS = "/etc/gpufleet/network.json"
ENVIRONMENT = "/run/gpufleet/network.env"
"""Where the program says how many pods the machine's network card has addresses for; the kubelet does not start without it."""
NEEDS = (f"Wants={UNIT}", f"After={UNIT}")
"""Unit lines of the kubelet, which does not start without ENVIRONMENT: no pod is made before routes, accounting and the list of plugins.

Wants, not Requires: the kubelet goes on when the program is restarted, and is started again when the program's first start has failed."""


def pod_network_files(cluster: ClusterPlan, pool: PoolPlan, before: str) -> tuple[BootFile, ...]:
    """The unit of gpufleet-node, its settings, and the list of Microsoft's plugins where they are used; before names the kubelet's unit."""
    service = unit(
        UNIT,
        "Pod network of this node",
        (
            "Wants=network-online.target",
            f"After=network-online.target {system.KERNEL_UNIT} {azure_endpoints.UNIT}",
            f"Before={before}",
            "StartLimitIntervalSec=0",
        ),
        (
            "Type=notify",
            f"ExecStart={PROGRAM} run",
            # The metadata service may be late, and nothing is guessed meanwhile.
            "TimeoutStartSec=infinity",
            "Restart=always",
            "RestartSec=5",
            # Each pass tells that it lives; the longest waits a minute for the lock and some more for iptables.
            "WatchdogSec=5min",
            "OOMScoreAdjust=-999",
            "NoNewPrivileges=yes",
            "ProtectHome=yes",
            "PrivateTmp=yes",
            "LockPersonality=yes",
        ),
    )
    lists = (BootFile(path, text, conflists.MODE) for path, text in conflists.planned(cluster.pod_network).items())
    return (service, BootFile(SETTINGS, settings.settings(cluster, pool)), *lists)
