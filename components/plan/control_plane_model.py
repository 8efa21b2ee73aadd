"""Data model of a planned control plane: images, etcd clusters and API servers."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.vm_sizes import VmSize
from components.spec.images import ImageDefinition, ImageStore

ETCD_CLIENT_PORT = 2379
ETCD_PEER_PORT = 2380
API_SERVER_PORT = 6443
KUBELET_PORT = 10250
INGRESS_PORTS = ((80, 30_080), (443, 30_443))
"""Ports of the ingress load balancer, each with its node port."""


@dataclass(frozen=True)
class ImagePlan:
    """One published image version: gallery ids, and the number of replicas for concurrent creates in the region.

    capture is the resource id from the build in the region's location: a managed image is used directly, without a version in the
    gallery. None means that node-images/versions.yaml has no capture there. The program then refuses an update, and the embedded Azure
    assumes an id (rehearsal/local_up/assumed_captures.py).
    """

    pin: str
    definition: ImageDefinition
    version: str
    definition_id: str
    version_id: str
    capture: str | None
    replicas: int

    @property
    def in_gallery(self) -> bool:
        """True if machines are created from the region's gallery."""
        return self.definition.store is ImageStore.GALLERY

    @property
    def machine_image_id(self) -> str | None:
        """Resource id of the image that machines are created from; None for a managed image without a capture."""
        return self.version_id if self.in_gallery else self.capture


@dataclass(frozen=True)
class EtcdMemberPlan:
    """One etcd member: a machine with a fixed name, zone and address; member is its number in the etcd cluster, from 0."""

    member: int
    name: str
    nic_name: str
    disk_name: str
    dns_name: str
    address: str
    zone: str


@dataclass(frozen=True)
class EtcdPlan:
    """One etcd cluster; role is "etcd" or "events"; quota_bytes and data_bytes_needed in bytes.

    changed_by is the playbook that replaces members to change image, size or boot files, since no update changes a running member.
    """

    role: str
    size: VmSize
    image: ImagePlan
    members: tuple[EtcdMemberPlan, ...]
    token: str
    quota_bytes: int
    data_bytes_needed: int
    changed_by: str

    @property
    def client_urls(self) -> tuple[str, ...]:
        """URL of every member's client port."""
        return tuple(f"https://{member.dns_name}:{ETCD_CLIENT_PORT}" for member in self.members)


@dataclass(frozen=True)
class ApiServersPlan:
    """The API servers: one scale set behind an internal load balancer.

    memory_needed_bytes is for one API server with controller manager and scheduler; heap_limit_bytes is its GOMEMLIMIT.
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

    @property
    def url(self) -> str:
        """URL of the API servers; it resolves in the cluster's network and in the hub."""
        return f"https://{self.dns_name}:{API_SERVER_PORT}"
