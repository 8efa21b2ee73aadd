"""Region file model of a cluster: control plane, pools, tenancy, rotation policy and observability."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, field_validator

from components.spec.pod_network import PodNetwork
from components.spec.pool import Pool, Zone
from components.spec.tenancy import Observability, Rotation, Tenancy
from components.spec.types import ClusterName, ImagePin, KubernetesVersion, Model, TeamName, Uuid, VmSizeName

MOST_MACHINES_PER_GROUP = 10_000
"""Machines of one role of a control plane."""


class Commons(Model):
    """Purpose of a cluster that all research teams share."""

    kind: Literal["commons"]
    """commons: any team's workloads, by allocation."""


class Dedicated(Model):
    """Purpose of a cluster that belongs to one team."""

    kind: Literal["dedicated"]
    """dedicated: one team's workloads only."""
    team: TeamName
    """The team that owns the cluster; must be listed in tenancy.teams."""


class Connectivity(StrEnum):
    """Connection between the region's hub and the cluster."""

    PRIVATE_LINK = "private-link"
    PEERING = "peering"


class MachineGroup(Model):
    """Control-plane machines of one role."""

    count: Annotated[int, Field(ge=1, le=MOST_MACHINES_PER_GROUP)]
    """Number of machines."""
    vm_size: VmSizeName
    """Azure VM size of each machine."""
    zones: tuple[Zone, ...] = Field(min_length=1, max_length=3)
    """Availability zones; machines are assigned to them in turn."""
    image: ImagePin
    """Image of each machine, name@version."""

    @field_validator("zones")
    @classmethod
    def zones_are_distinct(cls, value: tuple[Zone, ...]) -> tuple[Zone, ...]:
        """Reject a repeated zone, which would put more machines into that zone than into the others."""
        twice = [zone.value for zone in value if value.count(zone) > 1]
        if twice:
            raise ValueError(f'lists "{twice[0]}" twice; list each zone once')
        return value


class ControlPlane(Model):
    """Control plane of a cluster, on machines outside the cluster."""

    api_servers: MachineGroup
    """API servers; controller manager and scheduler run on the same machines."""
    etcd: MachineGroup
    """etcd cluster for everything except events; an odd number of members."""
    events_etcd: MachineGroup
    """etcd cluster for events; an odd number of members."""


class Cluster(Model):
    """One Kubernetes cluster of the region."""

    name: ClusterName
    """Name of the cluster, unique in its region; part of the name of each of its resources."""
    slot: Annotated[int, Field(ge=0, le=30)]
    """Index of the cluster's /14 in the region's address space, not counting the hub's /14; never change it."""
    subscription: Uuid | None = None
    """Azure subscription of the cluster, if it differs from the region's."""
    purpose: Annotated[Commons | Dedicated, Field(discriminator="kind")]
    """Shared by all teams (commons), or dedicated to one team."""
    kubernetes: KubernetesVersion
    """Kubernetes version, quoted: "1.36.3"."""
    connectivity: Connectivity
    """peering: the hub reaches nodes and pods, and all addresses count toward the limit of 128,000 per peered group.
    private-link: the hub reaches the API servers only."""
    nat_prefix_length: Annotated[int, Field(ge=28, le=31)] = 28
    """Length of the public IP prefix of each node subnet's NAT gateway: 28 gives 16 public addresses, 31 gives two."""
    ca_generation: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Generation of the certificate authorities; a higher number replaces them, and machines are cut off until they read new ones."""
    pod_network: PodNetwork = PodNetwork()
    """Pod addresses and internet access of pods."""
    control_plane: ControlPlane
    """API servers and both etcd clusters."""
    pools: tuple[Pool, ...] = Field(min_length=1, max_length=24)
    """Node pools."""
    tenancy: Tenancy
    """Teams and their allocations."""
    rotation: Rotation
    """Policy for draining and replacing nodes."""
    observability: Observability = Observability()
    """Settings of metrics."""
