"""What a person writes about one cluster: its control plane, pools, tenants, rotation policy and observability."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from components.spec.pod_network import PodNetwork
from components.spec.pool import Pool, Zone
from components.spec.tenancy import Observability, Rotation, Tenancy
from components.spec.types import ClusterName, ImagePin, KubernetesVersion, Model, TeamName, Uuid, VmSizeName


class Commons(Model):
    """A cluster that all research teams share."""

    kind: Literal["commons"]
    """commons: any team's workloads, by allocation."""


class Dedicated(Model):
    """A cluster that belongs to one team."""

    kind: Literal["dedicated"]
    """dedicated: one team's workloads only."""
    team: TeamName
    """The team that owns the cluster; must be listed in tenancy.teams."""


class Connectivity(StrEnum):
    """How the region's hub reaches the cluster."""

    PRIVATE_LINK = "private-link"
    PEERING = "peering"


class MachineGroup(Model):
    """Control-plane machines of one role."""

    count: Annotated[int, Field(ge=1, le=10_000)]
    """Machines of the role."""
    vm_size: VmSizeName
    """Azure VM size of every machine of the role."""
    zones: tuple[Zone, ...] = Field(min_length=1, max_length=3)
    """Availability zones that the machines are spread over, in turn."""
    image: ImagePin
    """Image of the role's machines, name@version."""

    @model_validator(mode="after")
    def zones_are_distinct(self) -> Self:
        """Refuse a zone named twice, which would unbalance the spread."""
        if len(set(self.zones)) != len(self.zones):
            raise ValueError("zones names a zone twice; name each zone once")
        return self


class ControlPlane(Model):
    """The machines outside the cluster that run it."""

    api_servers: MachineGroup
    """API servers, with controller manager and scheduler beside them."""
    etcd: MachineGroup
    """Members of the etcd that holds everything but events; an odd number."""
    events_etcd: MachineGroup
    """Members of the etcd that holds events; an odd number."""


class Cluster(Model):
    """One Kubernetes cluster: a shard of the region."""

    name: ClusterName
    """Name of the cluster, unique in its region; part of every resource's name."""
    slot: Annotated[int, Field(ge=0, le=30)]
    """Which /14 of the region's address space the cluster takes, the hub's own not counted; never changes."""
    subscription: Uuid | None = None
    """Azure subscription of the cluster, where it is not the region's."""
    purpose: Annotated[Commons | Dedicated, Field(discriminator="kind")]
    """Research commons, or dedicated to one team."""
    kubernetes: KubernetesVersion
    """Kubernetes version, quoted: "1.36.3"."""
    connectivity: Connectivity
    """peering: the hub reaches nodes and pods, and all addresses count in the peered group's 128,000; private-link: API servers only."""
    nat_prefix_length: Annotated[int, Field(ge=28, le=31)] = 28
    """Length of the public prefix of each node subnet's NAT gateway; 28 is 16 public addresses, 31 two."""
    ca_generation: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Raised by one to replace the certificate authorities, which cuts off every machine until it has read its new certificates."""
    pod_network: PodNetwork = PodNetwork()
    """How pods get their addresses, and how they reach the internet."""
    control_plane: ControlPlane
    """API servers and both etcds."""
    pools: tuple[Pool, ...] = Field(min_length=1, max_length=24)
    """Node pools."""
    tenancy: Tenancy
    """Teams and what they are allocated."""
    rotation: Rotation
    """How nodes are drained, replaced and put back."""
    observability: Observability = Observability()
    """What is measured, and how often."""
