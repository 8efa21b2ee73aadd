"""What a cluster's pods are told of networks: which addresses stay as they are on the way out, and each pod's share of the internet."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.network_model import HubPlan, NetworkPlan
from components.plan.vm_sizes import VmSize
from components.spec.cluster import Cluster, Connectivity
from components.spec.pod_network import Cni
from components.spec.pool import Interconnect
from components.spec.types import INTERNAL

EVERY_NODE = ("kube-proxy", "node-local-dns", "gpufleet-traffic")
GPU_NODE = ("nvidia-device-plugin", "dcgm-exporter")
INFINIBAND_NODE = ("rdma-shared-device-plugin",)


def host_network_daemons(size: VmSize, interconnect: Interconnect) -> tuple[str, ...]:
    """DaemonSets that run one pod on the host's network on each node of a pool."""
    return EVERY_NODE + (GPU_NODE if size.gpus else ()) + (INFINIBAND_NODE if interconnect is Interconnect.INFINIBAND else ())


def host_network_pods(size: VmSize, interconnect: Interconnect) -> int:
    """Pods of a node on its own address, which the kubelet counts among its pods."""
    return len(host_network_daemons(size, interconnect))


MTU = 1_500
"""Bytes of a packet that every Azure machine's card takes: https://learn.microsoft.com/azure/virtual-network/virtual-network-tcpip-performance-tuning"""
DEFAULT_WEIGHT = 1


@dataclass(frozen=True)
class ShapingPlan:
    """Shares of one machine's traffic with the internet, each way; rates in Mbit/s, weights by team."""

    machine_mbit: int
    floor_mbit: int
    ceiling_mbit: int
    weights: dict[str, int]
    default_weight: int
    connections_per_pod: int


@dataclass(frozen=True)
class PodNetworkPlan:
    """The pod network of one cluster.

    internal are the ranges that traffic accounting takes for internal; not_masqueraded those to which packets go out under the pod's own
    address, the internal ones first. mtu in bytes; shaping is None where traffic is counted only.
    """

    cni: Cni
    internal: tuple[str, ...]
    not_masqueraded: tuple[str, ...]
    service_cidr: str
    snat: bool
    mtu: int
    shaping: ShapingPlan | None


def plan_pod_network(cluster: Cluster, network: NetworkPlan, hub: HubPlan) -> PodNetworkPlan:
    """Plan one cluster's pod network; pure."""
    told = cluster.pod_network
    peered = (hub.address_prefix, hub.client_pool) if cluster.connectivity is Connectivity.PEERING else ()
    kept = (str(INTERNAL), network.block, *peered, network.service_cidr, *told.not_masqueraded)
    return PodNetworkPlan(
        cni=told.cni,
        internal=(str(INTERNAL),),
        not_masqueraded=tuple(dict.fromkeys(kept)),
        service_cidr=network.service_cidr,
        snat=told.snat,
        mtu=MTU,
        shaping=_shaping(cluster),
    )


def _shaping(cluster: Cluster) -> ShapingPlan | None:
    """Shares of a machine's rate, where the cluster wants them."""
    internet = cluster.pod_network.internet
    if not internet.shaping:
        return None
    return ShapingPlan(
        machine_mbit=internet.machine_mbit,
        floor_mbit=internet.floor_mbit,
        ceiling_mbit=internet.ceiling_mbit or internet.machine_mbit,
        weights={team: internet.weights[team] for team in sorted(internet.weights)},
        default_weight=DEFAULT_WEIGHT,
        connections_per_pod=internet.connections_per_pod,
    )
