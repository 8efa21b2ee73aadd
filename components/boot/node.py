"""Boot files of a node's machine."""

from __future__ import annotations

from components.boot import containerd, gpu, kubelet, nvme, pod_network, scripts, secrets, system
from components.boot.machine import BootFile, MachineBoot
from components.boot.unit import exec_start, unit
from components.plan.model import ClusterPlan, PoolPlan, RegionPlan, ScaleSetPlan

UNIT = "kubelet.service"
DATA = "/var/lib/gpufleet-data"
FRESH_UNLESS = "/var/lib/gpufleet/nvme"
"""File on the OS disk: a reimaged machine retains its NVMe data but not this file, and then deletes the old kubelet's state and images."""
ENVIRONMENT = "/run/gpufleet/node.env"
SECONDARY_ADDRESSES = BootFile(
    "/etc/cloud/cloud.cfg.d/99-gpufleet.cfg",
    "# Pods' addresses are no addresses of the machine.\ndatasource: {Azure: {apply_network_config_for_secondary_ips: false}}\n",
)


def _service(region: RegionPlan, pool: PoolPlan, scale_set: ScaleSetPlan) -> BootFile:
    """Return the kubelet's unit; gpufleet-join writes the machine's identity and delays the first join."""
    runtime = (f"Requires={containerd.UNIT}", f"After={containerd.UNIT} {containerd.PRELOAD_UNIT} {system.KERNEL_UNIT}")
    needs = (*runtime, *pod_network.NEEDS_AZURE_ENDPOINTS, *pod_network.NEEDS, *secrets.NEEDS)
    on_nvme = nvme.NEEDS if nvme.data_devices(pool.size) else ()
    # A GPU whose NVLink fabric is not ready would be missing from the node's first status.
    on_gpus = (f"After={gpu.PERSISTENCE_UNIT} nvidia-fabricmanager.service",) if pool.size.gpus else ()
    return unit(
        UNIT,
        f"Kubernetes node of scale set {scale_set.name}",
        ("Wants=network-online.target", "After=network-online.target", *needs, *on_nvme, *on_gpus, "StartLimitIntervalSec=0"),
        (
            "Type=notify",
            f"EnvironmentFile=-{ENVIRONMENT}",
            f"EnvironmentFile={pod_network.ENVIRONMENT}",
            f"ExecStartPre={scripts.JOIN.path} --spread-seconds={pool.join_seconds}",
            exec_start(kubelet.PROGRAM, kubelet.flags(region, pool, scale_set)),
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
    return tuple(MachineBoot("node", (*shared, _service(region, pool, scale_set)), enable) for scale_set in pool.scale_sets)


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
        *secrets.secret_files(cluster, kubelet.secrets_of(cluster)),
        *containerd.containerd_files(pool.size),
        *gpu.gpu_files(pool.size),
        BootFile(kubelet.CONFIGURATION, kubelet.configuration(cluster, pool)),
        scripts.JOIN,
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
