"""Plan of the pod network: daemons on the host's network, address ranges without translation, and internet shares."""

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
    """Return the DaemonSets that run one pod on the host's network on each node of a pool."""
    return EVERY_NODE + (GPU_NODE if size.gpus else ()) + (INFINIBAND_NODE if interconnect is Interconnect.INFINIBAND else ())


def host_network_pods(size: VmSize, interconnect: Interconnect) -> int:
    """Return the number of pods of a node on the host's network; the kubelet counts them among its pods."""
    return len(host_network_daemons(size, interconnect))


MTU = 1_500
"""Bytes of a packet on every Azure network interface: https://learn.microsoft.com/azure/virtual-network/virtual-network-tcpip-performance-tuning"""
DEFAULT_WEIGHT = 1


@dataclass(frozen=True)
class ShapingPlan:
    """Shares of one machine's internet traffic, per direction; rates in Mbit/s, weights by team."""

    machine_mbit: int
    floor_mbit: int
    ceiling_mbit: int
    weights: dict[str, int]
    default_weight: int
    connections_per_pod: int


@dataclass(frozen=True)
class PodNetworkPlan:
    """The pod network of one cluster.

    internal lists the ranges that traffic accounting counts as internal. not_masqueraded lists the ranges that pods reach with their own
    address, internal ones first. mtu is in bytes; shaping is None if traffic is only counted.
    """

    cni: Cni
    internal: tuple[str, ...]
    not_masqueraded: tuple[str, ...]
    service_cidr: str
    snat: bool
    mtu: int
    shaping: ShapingPlan | None


def plan_pod_network(cluster: Cluster, network: NetworkPlan, hub: HubPlan) -> PodNetworkPlan:
    """Return the plan of a cluster's pod network."""
    spec = cluster.pod_network
    peered = (hub.address_prefix, hub.client_pool) if cluster.connectivity is Connectivity.PEERING else ()
    untranslated = (str(INTERNAL), network.block, *peered, network.service_cidr, *spec.not_masqueraded)
    return PodNetworkPlan(
        cni=spec.cni,
        internal=(str(INTERNAL),),
        not_masqueraded=tuple(dict.fromkeys(untranslated)),
        service_cidr=network.service_cidr,
        snat=spec.snat,
        mtu=MTU,
        shaping=_shaping(cluster),
    )


def _shaping(cluster: Cluster) -> ShapingPlan | None:
    """Return the shares of a machine's rate; None if the cluster does not shape traffic."""
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
