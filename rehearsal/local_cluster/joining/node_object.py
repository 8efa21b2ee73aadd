"""Node object with which a machine registers, equal to that of a kubelet 1.36 that its boot files start.

https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/kubelet/kubelet_node_status.go (initialNode). The object has GPUs and InfiniBand
at once. On a real machine, device plugins report them some seconds later; here nothing runs containers.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from components.plan.vm_sizes import VmSize
from components.spec.images import ImageDefinition
from rehearsal.local_cluster.joining.node_boot import KUBELET, NodeBoot, NodeBootError
from rehearsal.local_cluster.joining.node_resources import CPU, GIB, MEMORY, Devices, allocatable, capacity, kubelet_quantities, reserved
from rehearsal.local_cluster.systemd.unit_file import seconds

Json = dict[str, Any]
NODE_USER, NODES_GROUP = "system:node:", "system:nodes"
SYSTEM, ARCHITECTURE = "linux", "amd64"
_GOOD = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_NOT_YET = "[container runtime status check may not have completed yet, PLEG is not healthy: pleg has yet to be successful]"


@dataclass(frozen=True)
class NodeSet:
    """Data that machines of one scale-set model share: boot files, VM size, image, and devices of plugins."""

    name: str
    boot: NodeBoot
    size: VmSize
    image: ImageDefinition
    os_disk_gib: int
    devices: tuple[Devices, ...]

    @cached_property
    def labels(self) -> dict[str, str]:
        """Return the labels of a node except its host name: the kubelet's own, overridden by those of --node-labels."""
        own = {
            "kubernetes.io/os": SYSTEM,
            "kubernetes.io/arch": ARCHITECTURE,
            "beta.kubernetes.io/os": SYSTEM,
            "beta.kubernetes.io/arch": ARCHITECTURE,
        }
        return {**own, **self.boot.labels}

    @cached_property
    def disk_bytes(self) -> int:
        """Return the bytes of the filesystem for pods' local data: the NVMe devices of the boot files, or the OS disk."""
        devices = self.boot.data_devices
        if devices > self.size.local_nvme_disks:
            remedy = "let components/boot/nvme.py count the devices of the VM size"
            raise NodeBootError(
                self.name, f"boot waits for {devices} NVMe devices and {self.size.name} has {self.size.local_nvme_disks}", remedy
            )
        return (devices * self.size.local_nvme_gib // self.size.local_nvme_disks if devices else self.os_disk_gib) * GIB

    def resources(self, pods: int) -> tuple[dict[str, str], dict[str, str]]:
        """Return capacity and allocatable of a machine with a number of pods. Raises NodeBootError if more is reserved than exists."""
        if pods not in self._resources:
            self._resources[pods] = self._resources_of(pods)
        return self._resources[pods]

    @cached_property
    def _resources(self) -> dict[int, tuple[dict[str, str], dict[str, str]]]:
        return {}

    def _resources_of(self, pods: int) -> tuple[dict[str, str], dict[str, str]]:
        found = {one.resource: one.count(self.size, self.labels) for one in self.devices}
        held = capacity(self.size, self.disk_bytes, pods, {name: count for name, count in found.items() if count})
        shares = reserved(self.boot.kubelet, held)
        for name in (CPU, MEMORY):
            if shares.get(name, 0) > held[name]:
                remedy = "reserve less in components/boot/kubelet.py"
                raise NodeBootError(self.name, f"kubelet.yaml reserves more {name} than {self.size.name} has", remedy)
        return kubelet_quantities(held), kubelet_quantities(allocatable(self.boot.kubelet, held))

    @cached_property
    def taints(self) -> list[Json]:
        """Return the taints of registerWithTaints, without empty values."""
        return [{key: value for key, value in one.items() if value} for one in self.boot.kubelet.get("registerWithTaints") or ()]

    @cached_property
    def system(self) -> dict[str, str]:
        """Return the part of nodeInfo that the image determines."""
        packages, release = self.image.packages, ".".join(self.image.base.version.split(".")[:2])
        return {
            "kernelVersion": packages.kernel,
            "osImage": f"Ubuntu {release} LTS",
            "containerRuntimeVersion": f"containerd://{packages.containerd}",
            "kubeletVersion": f"v{packages.kubelet}",
            "kubeProxyVersion": "",
            "operatingSystem": SYSTEM,
            "architecture": ARCHITECTURE,
        }

    @property
    def heartbeats(self) -> tuple[int, int]:
        """Return the seconds of a node's lease, and of the report interval of an unchanged status."""
        return int(self.boot.kubelet["nodeLeaseDurationSeconds"]), int(seconds(KUBELET, self.boot.kubelet["nodeStatusReportFrequency"]))


def node_object(of_set: NodeSet, name: str, address: str, provider_id: str, vm_id: str, pods: int, now: str) -> Json:
    """Return a machine's Node as its kubelet first posts it, not ready; pods is its maximum, now a time in RFC 3339."""
    held, left = of_set.resources(pods)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **of_set.labels},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {"providerID": provider_id, **({"taints": of_set.taints} if of_set.taints else {})},
        "status": {
            "addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}],
            "capacity": held,
            "allocatable": left,
            "conditions": conditions(now),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": int(of_set.boot.kubelet["port"])}},
            "nodeInfo": {
                "machineID": vm_id.replace("-", ""),
                "systemUUID": vm_id,
                "bootID": str(uuid.uuid5(uuid.NAMESPACE_URL, f"boot/{vm_id}")),
                **of_set.system,
            },
        },
    }


def conditions(now: str) -> list[Json]:
    """Return a kubelet's conditions at registration."""
    moments = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    good = [{"type": kind, "status": "False", "reason": why, "message": text, **moments} for kind, why, text in _GOOD]
    return [*good, {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": _NOT_YET, **moments}]
