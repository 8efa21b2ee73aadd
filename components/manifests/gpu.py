"""How GPUs become schedulable: NVIDIA's device plugin on the nodes of GPU pools.

Containers get their GPUs by name in the container device interface, not by an environment variable: an image that sets
NVIDIA_VISIBLE_DEVICES=all would otherwise see the GPUs of another team's job, and the CPU manager would take a container's devices away
when it rewrites its cgroup. https://github.com/NVIDIA/k8s-device-plugin#configuring-the-nvidia-device-plugin-binary
"""

from __future__ import annotations

from components.manifests import images, pods
from components.manifests.owned import FLEET_NAMESPACE, Object, owned, service_account
from components.manifests.priorities import NODE_CRITICAL
from components.plan.model import ClusterPlan

CONCERN = "gpu"
NAME = "nvidia-device-plugin"
RUNTIME_CLASS = "nvidia"
"""Name of the runtime class and of containerd's handler: what NVIDIA's container toolkit registers."""
GPU_NODES: Object = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpufleet.io/gpu", "operator": "Exists"}]}]
        }
    }
}
"""Affinity to the nodes of GPU pools, which the plan labels with their GPU's model."""


def has_gpus(cluster: ClusterPlan) -> bool:
    """Whether any pool's machines have GPUs."""
    return any(pool.size.gpus for pool in cluster.pools)


def _daemon_set() -> Object:
    """The device plugin on every GPU node."""
    settings = {
        "DEVICE_LIST_STRATEGY": "cdi-cri",
        "NVIDIA_DRIVER_ROOT": "/",
        "CONTAINER_DRIVER_ROOT": "/driver-root",
        "FAIL_ON_INIT_ERROR": "true",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
    container = {
        "name": NAME,
        "image": images.NVIDIA_DEVICE_PLUGIN.reference,
        "command": ["nvidia-device-plugin"],
        "env": [{"name": name, "value": value} for name, value in settings.items()],
        "resources": pods.resources(cpu=("20m", "500m"), memory=("64Mi", "256Mi")),
        # User 0, because the kubelet's plug-in directory and the directory of device specifications are root's.
        "securityContext": pods.root(),
        "volumeMounts": [
            {"name": "device-plugins", "mountPath": "/var/lib/kubelet/device-plugins"},
            {"name": "device-specifications", "mountPath": "/var/run/cdi"},
            {"name": "driver-root", "mountPath": "/driver-root", "readOnly": True},
        ],
    }
    volumes = [
        pods.host_path("device-plugins", "/var/lib/kubelet/device-plugins", "Directory"),
        pods.host_path("device-specifications", "/var/run/cdi", "DirectoryOrCreate"),
        # The plugin writes into the specification where the driver's libraries lie on this host, and must look.
        pods.host_path("driver-root", "/", "Directory"),
    ]
    spec = pods.pod(NAME, NODE_CRITICAL, runtimeClassName=RUNTIME_CLASS, affinity=GPU_NODES, containers=[container], volumes=volumes)
    return pods.daemon_set(NAME, CONCERN, FLEET_NAMESPACE, spec)


def gpu_objects(cluster: ClusterPlan) -> list[Object]:
    """All objects of this concern; none where no pool has GPUs."""
    if not has_gpus(cluster):
        return []
    runtime = owned("node.k8s.io/v1", "RuntimeClass", RUNTIME_CLASS, CONCERN) | {"handler": RUNTIME_CLASS}
    return [runtime, service_account(NAME, CONCERN, FLEET_NAMESPACE), _daemon_set()]
