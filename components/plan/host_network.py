"""How many pods of a node share its address, and so take none of its pods' addresses."""

from __future__ import annotations

from components.plan.vm_sizes import VmSize
from components.spec.pool import Interconnect

EVERY_NODE = ("kube-proxy", "node-local-dns", "gpufleet-traffic")
GPU_NODE = ("nvidia-device-plugin", "dcgm-exporter")
INFINIBAND_NODE = ("rdma-shared-device-plugin",)


def host_network_daemons(size: VmSize, interconnect: Interconnect) -> tuple[str, ...]:
    """DaemonSets that run one pod on the host's network on each node of a pool."""
    return EVERY_NODE + (GPU_NODE if size.gpus else ()) + (INFINIBAND_NODE if interconnect is Interconnect.INFINIBAND else ())


def host_network_pods(size: VmSize, interconnect: Interconnect) -> int:
    """Pods of a node on its own address, which the kubelet counts among its pods."""
    return len(host_network_daemons(size, interconnect))
