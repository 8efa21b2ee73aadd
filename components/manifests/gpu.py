"""NVIDIA's device plugin on the nodes of GPU pools.

Containers get their GPUs through the container device interface, not through an environment variable. Otherwise an image with
NVIDIA_VISIBLE_DEVICES=all could use the GPUs of another team's job, and the CPU manager would remove a container's devices when it rewrites
its cgroup. https://github.com/NVIDIA/k8s-device-plugin#configuring-the-nvidia-device-plugin-binary
"""

from __future__ import annotations

from components.manifests import images, pods
from components.manifests.owned import FLEET_NAMESPACE, Object, owned, service_account
from components.manifests.priorities import NODE_CRITICAL
from components.plan.model import ClusterPlan

CONCERN = "gpu"
NAME = "nvidia-device-plugin"
RUNTIME_CLASS = "nvidia"
"""Name of the runtime class and of containerd's handler, as NVIDIA's container toolkit registers it."""
GPU_NODES: Object = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpufleet.io/gpu", "operator": "Exists"}]}]
        }
    }
}
"""Affinity to nodes with the GPU label of the plan."""


def has_gpus(cluster: ClusterPlan) -> bool:
    """Return True if any pool's machines have GPUs."""
    return any(pool.size.gpus for pool in cluster.pools)


def _daemon_set() -> Object:
    """Return the DaemonSet of the device plugin."""
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
        # User 0, because root owns the kubelet's plugin directory and the directory of device specifications.
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
        # The plugin finds the driver's libraries on this host and writes their paths into the specification.
        pods.host_path("driver-root", "/", "Directory"),
    ]
    spec = pods.pod(NAME, NODE_CRITICAL, runtimeClassName=RUNTIME_CLASS, affinity=GPU_NODES, containers=[container], volumes=volumes)
    return pods.daemon_set(NAME, CONCERN, FLEET_NAMESPACE, spec)


def gpu_objects(cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern; empty if no pool has GPUs."""
    if not has_gpus(cluster):
        return []
    runtime = owned("node.k8s.io/v1", "RuntimeClass", RUNTIME_CLASS, CONCERN) | {"handler": RUNTIME_CLASS}
    return [runtime, service_account(NAME, CONCERN, FLEET_NAMESPACE), _daemon_set()]
