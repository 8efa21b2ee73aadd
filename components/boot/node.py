"""Boot files of a node's machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from components.boot import containerd, gpu, kubelet, nvme, pod_network, scripts, secrets, system
from components.boot.machine import BootFile, MachineBoot, cloud_config
from components.boot.unit import exec_start, unit
from components.plan.model import ClusterPlan, PoolPlan, RegionPlan
from components.plan.node_labels import BOOT_DIGEST_DIGITS, BOOT_DIGEST_LABEL

UNIT = "kubelet.service"
DATA = "/var/lib/gpufleet-data"
FRESH_UNLESS = "/var/lib/gpufleet/nvme"
"""File on the OS disk: a reimaged machine retains its NVMe data but not this file, and then deletes the old kubelet's state and images."""
ENVIRONMENT = "/run/gpufleet/node.env"
SECONDARY_ADDRESSES = BootFile(
    "/etc/cloud/cloud.cfg.d/99-gpufleet.cfg",
    "# Pods' addresses are no addresses of the machine.\ndatasource: {Azure: {apply_network_config_for_secondary_ips: false}}\n",
)


def _service(pool: PoolPlan, description: str, labels: Mapping[str, str]) -> BootFile:
    """Return the kubelet's unit; gpufleet-join writes the machine's identity and delays the first join, and gpufleet-node
    gets the first certificate."""
    runtime = (f"Requires={containerd.UNIT}", f"After={containerd.UNIT} {containerd.PRELOAD_UNIT} {system.KERNEL_UNIT}")
    needs = (*runtime, *pod_network.NEEDS_AZURE_ENDPOINTS, *pod_network.NEEDS, *secrets.NEEDS)
    on_nvme = nvme.NEEDS if nvme.data_devices(pool.size) else ()
    # A GPU whose NVLink fabric is not ready would be missing from the node's first status.
    on_gpus = (f"After={gpu.PERSISTENCE_UNIT} nvidia-fabricmanager.service",) if pool.size.gpus else ()
    return unit(
        UNIT,
        description,
        ("Wants=network-online.target", "After=network-online.target", *needs, *on_nvme, *on_gpus, "StartLimitIntervalSec=0"),
        (
            "Type=notify",
            f"EnvironmentFile=-{ENVIRONMENT}",
            f"EnvironmentFile={pod_network.ENVIRONMENT}",
            f"ExecStartPre={scripts.JOIN.path} --spread-seconds={pool.join_seconds}",
            f"ExecStartPre={pod_network.PROGRAM} certificate",
            exec_start(kubelet.PROGRAM, kubelet.flags(labels)),
            "TimeoutStartSec=infinity",
            "Restart=always",
            "RestartSec=5",
            "KillMode=process",
            "LimitNOFILE=1048576",
            "LimitMEMLOCK=infinity",
            "OOMScoreAdjust=-999",
        ),
    )


def boot_nodes(region: RegionPlan, cluster: ClusterPlan, pool: PoolPlan) -> tuple[MachineBoot, ...]:
    """Return the files and units of the machines of each scale set of a pool, in order; only the kubelet's unit differs."""
    shared, enable = _files(cluster, pool), _units(pool)
    digest = {BOOT_DIGEST_LABEL: _digest(region, pool, shared)}
    services = (
        _service(pool, f"Kubernetes node of scale set {one.name}", kubelet.labels(region, pool, one) | digest) for one in pool.scale_sets
    )
    return tuple(MachineBoot("node", (*shared, service), enable) for service in services)


def boot_digest(region: RegionPlan, cluster: ClusterPlan, pool: PoolPlan) -> str:
    """Return the digest of a pool's boot files, which its nodes report in the label BOOT_DIGEST_LABEL.

    It is the same for all scale sets of the pool, and growth of the pool does not change it.
    """
    return _digest(region, pool, _files(cluster, pool))


def _digest(region: RegionPlan, pool: PoolPlan, shared: tuple[BootFile, ...]) -> str:
    """Return the digest of the files and units that a pool's machines share, and of the kubelet's unit without names of scale sets."""
    service = _service(pool, f"Kubernetes node of pool {pool.name}", kubelet.pool_labels(region, pool))
    document = cloud_config(MachineBoot("node", (*shared, service), _units(pool)))
    return hashlib.sha256(document.encode()).hexdigest()[:BOOT_DIGEST_DIGITS]


def _files(cluster: ClusterPlan, pool: PoolPlan) -> tuple[BootFile, ...]:
    """Return the files that all machines of a pool share."""
    devices = nvme.data_devices(pool.size)
    binds = (containerd.ROOT, "/var/lib/kubelet")
    before = (containerd.UNIT, UNIT)
    return (
        *system.kernel_files(node=True),
        *system.steady_files(),
        SECONDARY_ADDRESSES,
        *(nvme.nvme_files(devices, DATA, binds, FRESH_UNLESS, before) if devices else ()),
        *pod_network.azure_endpoint_files(UNIT),
        *pod_network.pod_network_files(cluster, pool, UNIT),
        *secrets.secret_files(cluster, kubelet.secrets_of()),
        *containerd.containerd_files(pool.size),
        *gpu.gpu_files(pool.size),
        BootFile(kubelet.CONFIGURATION, kubelet.configuration(cluster, pool)),
        scripts.JOIN,
        kubelet.join_settings(cluster),
    )


def _units(pool: PoolPlan) -> tuple[str, ...]:
    """Return the units that a pool's machines start, in order."""
    return (
        system.KERNEL_UNIT,
        *((nvme.UNIT,) if nvme.data_devices(pool.size) else ()),
        pod_network.AZURE_ENDPOINTS_UNIT,
        pod_network.UNIT,
        *secrets.UNITS,
        containerd.UNIT,
        containerd.PRELOAD_UNIT,
        *((gpu.PERSISTENCE_UNIT,) if pool.size.gpus else ()),
        UNIT,
    )
