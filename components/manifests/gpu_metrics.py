"""DCGM exporter for GPU metrics on the nodes of GPU pools.

It reads the assignment of GPUs to pods from the kubelet's socket on its node. It never calls the API server, which one client per node
would overload: https://openai.com/index/scaling-kubernetes-to-7500-nodes/
"""

from __future__ import annotations

from components.manifests import images, pods
from components.manifests.gpu import GPU_NODES, RUNTIME_CLASS, has_gpus
from components.manifests.owned import FLEET_NAMESPACE, Object, frozen_config, name_of, service_account
from components.manifests.priorities import TELEMETRY
from components.plan.model import ClusterPlan

CONCERN = "gpu-metrics"
NAME = "dcgm-exporter"
PORT = 9400
COUNTERS = (
    ("DCGM_FI_DEV_XID_ERRORS", "gauge", "Code of the last Xid error."),
    ("DCGM_EXP_XID_ERRORS_COUNT", "gauge", "Xid errors in the last five minutes by code."),
    ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Corrected ECC errors since the driver was loaded."),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Uncorrectable ECC errors since the driver was loaded."),
    ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", "Corrected ECC errors in the GPU's life."),
    ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", "Uncorrectable ECC errors in the GPU's life."),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Memory rows remapped for uncorrectable errors."),
    ("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Memory rows remapped for corrected errors."),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "1 if remapping a memory row has failed."),
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "1 if a remapped row waits for a reset of the GPU."),
    ("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "counter", "NVLink flow-control CRC errors over all lanes."),
    ("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "counter", "NVLink data CRC errors over all lanes."),
    ("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "counter", "NVLink replays over all lanes."),
    ("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "counter", "NVLink recoveries over all lanes."),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe replays."),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "Temperature of the GPU in degrees Celsius."),
    ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Temperature of the memory in degrees Celsius."),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw in watts."),
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "Clock of the multiprocessors in MHz."),
    ("DCGM_FI_DEV_POWER_VIOLATION", "counter", "Time throttled by the power limit in nanoseconds."),
    ("DCGM_FI_DEV_THERMAL_VIOLATION", "counter", "Time throttled by temperature in nanoseconds."),
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "Utilization in percent."),
    ("DCGM_FI_DEV_FB_USED", "gauge", "Memory in use in MiB."),
    ("DCGM_FI_DEV_FB_FREE", "gauge", "Free memory in MiB."),
    ("DCGM_FI_DRIVER_VERSION", "label", "Version of the driver."),
    ("DCGM_FI_DEV_SERIAL", "label", "Serial number of the board."),
)
"""Field, Prometheus type and help text of each exported metric.

Profiling fields (DCGM_FI_PROF_*) are left out: they need SYS_ADMIN and bar a job's own profiler.
https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html
"""


def counters_csv() -> str:
    """Return the counters in the exporter's format: rows of field, type and help text, which must not contain a comma."""
    return "".join(f"{field}, {kind}, {text}\n" for field, kind, text in COUNTERS)


def _daemon_set(seconds: int, config: str) -> Object:
    """Return the DaemonSet of the exporter; seconds is the interval of readings."""
    settings = {
        "DCGM_EXPORTER_LISTEN": f":{PORT}",
        "DCGM_EXPORTER_INTERVAL": str(seconds * 1000),
        "DCGM_EXPORTER_COLLECTORS": f"{pods.CONFIG_PATH}/counters.csv",
        "DCGM_EXPORTER_KUBERNETES": "true",
    }
    container = {
        "name": NAME,
        "image": images.DCGM_EXPORTER.reference,
        "env": [*({"name": name, "value": value} for name, value in settings.items()), pods.node_name()],
        "ports": pods.ports(("metrics", PORT, "TCP")),
        "resources": pods.resources(cpu=("100m", "1"), memory=("192Mi", "512Mi")),
        # User 0, because root owns the directory of the kubelet's pod-resources socket.
        "securityContext": pods.root(),
        "livenessProbe": pods.http_probe("/health", PORT, initialDelaySeconds=60, periodSeconds=30),
        "readinessProbe": pods.http_probe("/health", PORT, periodSeconds=10),
        "volumeMounts": [
            pods.config_mount(),
            {"name": "pod-resources", "mountPath": "/var/lib/kubelet/pod-resources", "readOnly": True},
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108 - the container's own, an emptyDir
            {"name": "scratch", "mountPath": "/var/log"},
        ],
    }
    volumes = [
        pods.config_volume(config),
        pods.host_path("pod-resources", "/var/lib/kubelet/pod-resources", "Directory"),
        {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "32Mi"}},
    ]
    spec = pods.pod(NAME, TELEMETRY, runtimeClassName=RUNTIME_CLASS, affinity=GPU_NODES, containers=[container], volumes=volumes)
    return pods.daemon_set(NAME, CONCERN, FLEET_NAMESPACE, spec)


def gpu_metrics_objects(cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern; empty if no pool has GPUs."""
    if not has_gpus(cluster):
        return []
    config = frozen_config(NAME, CONCERN, FLEET_NAMESPACE, {"counters.csv": counters_csv()})
    seconds = cluster.spec.observability.gpu_metrics_seconds
    return [service_account(NAME, CONCERN, FLEET_NAMESPACE), config, _daemon_set(seconds, name_of(config))]
