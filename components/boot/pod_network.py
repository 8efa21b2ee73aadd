"""Which program keeps the pod network of a node in place, what it is told, and what the kubelet learns from it."""

from __future__ import annotations

from cni import conflists, settings
from components.boot import scripts, system
from components.boot.machine import BootFile
from components.boot.unit import unit
from components.plan.model import ClusterPlan, PoolPlan

AZURE_ENDPOINTS_UNIT = "gpufleet-azure-endpoints.service"
NEEDS_AZURE_ENDPOINTS = (f"Requires={AZURE_ENDPOINTS_UNIT}", f"After={AZURE_ENDPOINTS_UNIT}")
"""Unit lines of the kubelet: no pod runs before the services are closed to it."""
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
            f"After=network-online.target {system.KERNEL_UNIT} {AZURE_ENDPOINTS_UNIT}",
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


def azure_endpoint_files(before: str) -> tuple[BootFile, ...]:
    """The program that closes the instance metadata service and the wire server to pods, and its unit; before names the kubelet's unit.

    https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    """
    service = unit(
        AZURE_ENDPOINTS_UNIT,
        "Azure's machine services closed to pods",
        (f"Before={before}",),
        ("Type=oneshot", "RemainAfterExit=yes", f"ExecStart={scripts.AZURE_ENDPOINTS.path}"),
    )
    return (scripts.AZURE_ENDPOINTS, service)
