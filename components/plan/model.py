"""Data model of a plan: all numbers, names and addresses of a region, computed before deployment."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.control_plane_model import (
    API_SERVER_PORT,
    ETCD_CLIENT_PORT,
    ETCD_PEER_PORT,
    INGRESS_PORTS,
    KUBELET_PORT,
    ApiServersPlan,
    EtcdMemberPlan,
    EtcdPlan,
    ImagePlan,
)
from components.plan.network_model import HubPlan, NatGatewayPlan, NetworkPlan, SubnetPlan
from components.plan.pod_network import PodNetworkPlan, host_network_pods
from components.plan.vm_sizes import VmSize
from components.spec.cluster import Cluster, Connectivity
from components.spec.pool import Pool
from components.spec.region import Region

__all__ = [
    "API_SERVER_PORT",
    "ETCD_CLIENT_PORT",
    "ETCD_PEER_PORT",
    "INGRESS_PORTS",
    "KUBELET_PORT",
    "ApiServersPlan",
    "BackupPlan",
    "ClusterPlan",
    "EtcdMemberPlan",
    "EtcdPlan",
    "GalleryPlan",
    "HubPlan",
    "IdentityPlan",
    "ImagePlan",
    "IngressPlan",
    "NatGatewayPlan",
    "NetworkPlan",
    "PoolPlan",
    "RegionPlan",
    "ScaleSetPlan",
    "SubnetPlan",
    "VaultPlan",
]


@dataclass(frozen=True)
class ScaleSetPlan:
    """One scale set of a pool, keyed by its index in the pool.

    after is the scale set of the same pool that must be created before this one, None for the sets that are created first.
    """

    index: int
    name: str
    computer_name_prefix: str
    capacity: int
    bound: int
    subnet_role: str
    single_placement_group: bool
    infiniband_domain: str | None
    after: str | None


@dataclass(frozen=True)
class PoolPlan:
    """One pool: its machines' size, image and addresses, and its scale sets."""

    spec: Pool
    size: VmSize
    image: ImagePlan
    addresses_per_machine: int
    machines_per_subnet: int
    machines_per_set: int
    subnet_roles: tuple[str, ...]
    scale_sets: tuple[ScaleSetPlan, ...]
    labels: dict[str, str]
    taints: tuple[str, ...]
    join_seconds: int

    @property
    def name(self) -> str:
        """Name of the pool."""
        return self.spec.name

    @property
    def host_network_pods(self) -> int:
        """Pods of a machine on the host's network."""
        return host_network_pods(self.size, self.spec.interconnect)

    @property
    def max_pods(self) -> int:
        """Maximum pods of a machine, including those on the host's network."""
        return self.spec.pods_per_node + self.host_network_pods

    @property
    def private_addresses(self) -> int:
        """Private addresses of the pool's machines."""
        return self.spec.nodes * self.addresses_per_machine


@dataclass(frozen=True)
class IngressPlan:
    """The internal load balancer in front of load-balanced pools."""

    load_balancer: str
    address: str
    pools: tuple[str, ...]
    machines: int


@dataclass(frozen=True)
class VaultPlan:
    """One key vault in the base stack: role is "etcd", "control" or "node"; secrets are the names of the secrets for its machines."""

    role: str
    name: str
    id: str
    uri: str
    endpoint_name: str
    secrets: tuple[str, ...]


@dataclass(frozen=True)
class IdentityPlan:
    """One user-assigned identity of a cluster: role is "etcd", "control" or "node", id its Azure resource id."""

    role: str
    name: str
    id: str


@dataclass(frozen=True)
class ClusterPlan:
    """Plan of one cluster."""

    spec: Cluster
    subscription: str
    resource_group: str
    tags: dict[str, str]
    connectivity: Connectivity
    network: NetworkPlan
    pod_network: PodNetworkPlan
    etcd: EtcdPlan
    events_etcd: EtcdPlan
    api_servers: ApiServersPlan
    ingress: IngressPlan | None
    pools: tuple[PoolPlan, ...]
    vaults: tuple[VaultPlan, ...]
    identities: tuple[IdentityPlan, ...]
    backup_container: str
    backup_url: str
    backup_endpoint_name: str

    @property
    def name(self) -> str:
        """Name of the cluster."""
        return self.spec.name

    @property
    def nodes(self) -> int:
        """Nodes of the cluster."""
        return sum(pool.spec.nodes for pool in self.pools)

    @property
    def images(self) -> tuple[ImagePlan, ...]:
        """Images of the API servers, both etcd clusters and the pools."""
        return (self.api_servers.image, self.etcd.image, self.events_etcd.image, *(pool.image for pool in self.pools))

    @property
    def private_addresses(self) -> int:
        """Private addresses in use in the cluster's virtual network: nodes, control plane, front ends and endpoints."""
        members = len(self.etcd.members) + len(self.events_etcd.members)
        front_ends = 1 + (self.ingress is not None) + len(self.api_servers.private_link_addresses)
        endpoints = len(self.vaults) + 1
        return sum(pool.private_addresses for pool in self.pools) + members + self.api_servers.count + front_ends + endpoints

    def vault(self, role: str) -> VaultPlan:
        """Return the vault of a role; raise StopIteration if there is none."""
        return next(vault for vault in self.vaults if vault.role == role)

    def identity(self, role: str) -> IdentityPlan:
        """Return the identity of a role; raise StopIteration if there is none."""
        return next(identity for identity in self.identities if identity.role == role)


@dataclass(frozen=True)
class GalleryPlan:
    """The region's image gallery and its image versions."""

    name: str
    images: tuple[ImagePlan, ...]


@dataclass(frozen=True)
class BackupPlan:
    """Storage account of etcd snapshots."""

    account: str
    sku: str
    retention_days: int


@dataclass(frozen=True)
class RegionPlan:
    """Plan of one region: the base stack and the region's stack."""

    spec: Region
    base_resource_group: str
    base_stack: str
    stack: str
    tags: dict[str, str]
    hub: HubPlan
    gallery: GalleryPlan
    backup: BackupPlan
    clusters: tuple[ClusterPlan, ...]

    @property
    def name(self) -> str:
        """Name of the region."""
        return self.spec.name

    @property
    def nodes(self) -> int:
        """Nodes of all clusters."""
        return sum(cluster.nodes for cluster in self.clusters)

    @property
    def pins_without_capture(self) -> tuple[str, ...]:
        """Pins (name@version) of machines' images that have no capture in the region's location, sorted."""
        return tuple(sorted({image.pin for cluster in self.clusters for image in cluster.images if image.capture is None}))
