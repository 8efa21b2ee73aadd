"""The shape of a plan: every number, name and address of a region, decided before anything exists."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.network_rules import SecurityGroupPlan
from components.plan.vm_sizes import VmSize
from components.spec.cluster import Cluster, Connectivity
from components.spec.images import ImageDefinition
from components.spec.pool import Pool
from components.spec.region import Region


@dataclass(frozen=True)
class SubnetPlan:
    """One subnet: its role ("etcd", "api", "endpoints", "private-link", "ingress" or "nodes-NN"), CIDR, security group and NAT gateway.

    security_group and nat_gateway are physical names, None where Azure forbids or the subnet needs none.
    """

    role: str
    name: str
    cidr: str
    security_group: str | None
    nat_gateway: str | None


@dataclass(frozen=True)
class NatGatewayPlan:
    """One NAT gateway with its public prefix; zone is None for a gateway in no zone.

    snat_ports is the number of ports that prefix_length yields, machines the most that can stand behind it.
    """

    role: str
    name: str
    prefix_name: str
    prefix_length: int
    public_addresses: int
    snat_ports: int
    machines: int
    snat_ports_per_machine: int
    zone: str | None


@dataclass(frozen=True)
class NetworkPlan:
    """One cluster's virtual network; address_prefixes, subnets and gateways have full size per slot, however few machines there are."""

    vnet_name: str
    block: str
    address_prefixes: tuple[str, ...]
    service_cidr: str
    dns_service_address: str
    kubernetes_service_address: str
    subnets: tuple[SubnetPlan, ...]
    security_groups: tuple[SecurityGroupPlan, ...]
    nat_gateways: tuple[NatGatewayPlan, ...]
    private_zone: str
    peering_name: str | None
    hub_peering_name: str | None

    def subnet(self, role: str) -> SubnetPlan:
        """Subnet of a role; KeyError where there is none."""
        for subnet in self.subnets:
            if subnet.role == role:
                return subnet
        raise KeyError(role)


@dataclass(frozen=True)
class ImagePlan:
    """One pinned image version: gallery ids, and the replicas that its concurrent creates need in the region."""

    pin: str
    definition: ImageDefinition
    version: str
    definition_id: str
    version_id: str
    capture: str
    replicas: int


@dataclass(frozen=True)
class ScaleSetPlan:
    """One scale set of a pool, keyed by its index in the pool.

    after names the scale set of the same pool whose creation it waits for, None for the first lanes.
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
    def private_addresses(self) -> int:
        """Private addresses that the pool's machines hold."""
        return self.spec.nodes * self.addresses_per_machine


@dataclass(frozen=True)
class EtcdMemberPlan:
    """One etcd member: a machine with a fixed name, zone and address; member is its number in the ring, from 0."""

    member: int
    name: str
    nic_name: str
    disk_name: str
    dns_name: str
    address: str
    zone: str


@dataclass(frozen=True)
class EtcdPlan:
    """One etcd ring; role is "etcd" or "events"; quota_bytes and data_bytes_needed in bytes."""

    role: str
    size: VmSize
    image: ImagePlan
    members: tuple[EtcdMemberPlan, ...]
    token: str
    quota_bytes: int
    data_bytes_needed: int

    @property
    def client_urls(self) -> tuple[str, ...]:
        """URL of every member's client port."""
        return tuple(f"https://{member.dns_name}:{ETCD_CLIENT_PORT}" for member in self.members)


@dataclass(frozen=True)
class ApiServersPlan:
    """The API servers: one scale set behind an internal load balancer.

    memory_needed_bytes is for one API server with controller manager and scheduler beside it; heap_limit_bytes its GOMEMLIMIT.
    """

    name: str
    computer_name_prefix: str
    size: VmSize
    image: ImagePlan
    count: int
    zones: tuple[str, ...]
    load_balancer: str
    address: str
    dns_name: str
    private_link_name: str | None
    private_link_addresses: tuple[str, ...]
    endpoint_name: str | None
    endpoint_address: str | None
    memory_needed_bytes: int
    heap_limit_bytes: int
    max_requests_inflight: int
    max_mutating_requests_inflight: int


@dataclass(frozen=True)
class IngressPlan:
    """The internal load balancer in front of load-balanced pools."""

    load_balancer: str
    address: str
    pools: tuple[str, ...]
    machines: int


@dataclass(frozen=True)
class VaultPlan:
    """One key vault in the base stack: role is "etcd", "control" or "node"; secrets are the names that its machines read."""

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
    """One cluster, whole."""

    spec: Cluster
    subscription: str
    resource_group: str
    tags: dict[str, str]
    connectivity: Connectivity
    network: NetworkPlan
    etcd: EtcdPlan
    events_etcd: EtcdPlan
    api_servers: ApiServersPlan
    ingress: IngressPlan | None
    pools: tuple[PoolPlan, ...]
    vaults: tuple[VaultPlan, ...]
    identities: tuple[IdentityPlan, ...]
    backup_container: str
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
    def private_addresses(self) -> int:
        """Private addresses in use in the cluster's virtual network: nodes, control plane, front ends and endpoints."""
        members = len(self.etcd.members) + len(self.events_etcd.members)
        front_ends = 1 + (self.ingress is not None) + len(self.api_servers.private_link_addresses)
        endpoints = len(self.vaults) + 1
        return sum(pool.private_addresses for pool in self.pools) + members + self.api_servers.count + front_ends + endpoints

    def vault(self, role: str) -> VaultPlan:
        """Vault of a role; StopIteration where there is none."""
        return next(vault for vault in self.vaults if vault.role == role)

    def identity(self, role: str) -> IdentityPlan:
        """Identity of a role; StopIteration where there is none."""
        return next(identity for identity in self.identities if identity.role == role)


@dataclass(frozen=True)
class HubPlan:
    """The region's hub: the network that people dial into; client_pool is the range of dialled-in people."""

    vnet_name: str
    address_prefix: str
    subnets: tuple[SubnetPlan, ...]
    security_groups: tuple[SecurityGroupPlan, ...]
    nat_gateways: tuple[NatGatewayPlan, ...]
    gateway_name: str
    gateway_address_name: str
    client_pool: str
    resolver_name: str
    resolver_address: str
    private_zone: str

    def subnet(self, role: str) -> SubnetPlan:
        """Subnet of a role; KeyError where there is none."""
        for subnet in self.subnets:
            if subnet.role == role:
                return subnet
        raise KeyError(role)


@dataclass(frozen=True)
class GalleryPlan:
    """The region's image gallery, and each image version that it holds."""

    name: str
    images: tuple[ImagePlan, ...]


@dataclass(frozen=True)
class BackupPlan:
    """The storage account of etcd snapshots."""

    account: str
    sku: str
    retention_days: int


@dataclass(frozen=True)
class RegionPlan:
    """One region, whole: what the base stack and the region's stack will make."""

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


ETCD_CLIENT_PORT = 2379
ETCD_PEER_PORT = 2380
API_SERVER_PORT = 6443
KUBELET_PORT = 10250
INGRESS_PORTS = ((80, 30_080), (443, 30_443))
"""Ports of the ingress load balancer, each with the node port that it leads to."""
