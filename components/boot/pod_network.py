"""Pod network of a node: the unit and settings of gpufleet-node, and the blocking of Azure's machine services for pods."""

from __future__ import annotations

from cni import conflists, settings
from components.boot import scripts, system
from components.boot.machine import BootFile
from components.boot.unit import unit
from components.plan.model import ClusterPlan, PoolPlan

AZURE_ENDPOINTS_UNIT = "gpufleet-azure-endpoints.service"
NEEDS_AZURE_ENDPOINTS = (f"Requires={AZURE_ENDPOINTS_UNIT}", f"After={AZURE_ENDPOINTS_UNIT}")
"""Unit lines of the kubelet: no pod runs before Azure's services are blocked for pods."""
UNIT = "gpufleet-node.service"
PROGRAM = "/usr/local/sbin/gpufleet-node"
"""Program in the machine's image; gpufleet image-files builds it from cni/node."""
SETTINGS = "/etc/gpufleet/network.json"
ENVIRONMENT = "/run/gpufleet/network.env"
"""File with the number of pods for which the interface has addresses; the kubelet does not start without it."""
NEEDS = (f"Wants={UNIT}", f"After={UNIT}")
"""Unit lines of the kubelet, which does not start without ENVIRONMENT: so routes, accounting and plugin list exist first.

Wants, not Requires: the kubelet continues when the program restarts, and is retried if its first start fails."""


def pod_network_files(cluster: ClusterPlan, pool: PoolPlan, before: str) -> tuple[BootFile, ...]:
    """Return the unit of gpufleet-node, its settings, and the list of Microsoft's plugins if used; before is the kubelet's unit."""
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
            # The metadata service may respond late; the program waits for it.
            "TimeoutStartSec=infinity",
            "Restart=always",
            "RestartSec=5",
            # Each pass notifies the watchdog; the longest waits about a minute for the lock and for iptables.
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
    """Return the program that blocks pods from the metadata service and the wire server, and its unit; before is the kubelet's unit.

    https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
    """
    service = unit(
        AZURE_ENDPOINTS_UNIT,
        "Azure's machine services closed to pods",
        (f"Before={before}",),
        ("Type=oneshot", "RemainAfterExit=yes", f"ExecStart={scripts.AZURE_ENDPOINTS.path}"),
    )
    return (scripts.AZURE_ENDPOINTS, service)
