"""What a person writes about one node pool: the machines, how they are bought, joined and imaged."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from components.spec.types import ImagePin, LabelKey, LabelValue, Model, PoolName, ReservationGroupId, VmSizeName

NODES_PER_CLUSTER = 7_500
"""Largest cluster that the published design ran: https://openai.com/index/scaling-kubernetes-to-7500-nodes/"""

NODE_SUBNET_SLOTS = 24
"""Node subnets that a cluster's address block holds."""


class Zone(StrEnum):
    """Availability zone of an Azure region."""

    ONE = "1"
    TWO = "2"
    THREE = "3"


class Interconnect(StrEnum):
    """Network between the GPUs of different machines."""

    INFINIBAND = "infiniband"
    ETHERNET = "ethernet"


class Capacity(StrEnum):
    """How the pool's machines are bought."""

    REGULAR = "regular"
    SPOT = "spot"
    RESERVED = "reserved"


class PriorityClass(StrEnum):
    """Default priority of the pool's workloads, lowest first."""

    BALLOON = "balloon"
    LOW = "low"
    NORMAL = "normal"
    HIGH = "high"


class Pool(Model):
    """One node pool: machines of one size, zone and image."""

    name: PoolName
    """Name of the pool, unique in its cluster; part of every scale set's and node's name."""
    slot: Annotated[int, Field(ge=0, lt=NODE_SUBNET_SLOTS)]
    """First of the cluster's 24 node-subnet slots (0 to 23) that the pool's machines fill, up to 1,000 machines a slot, upwards."""
    vm_size: VmSizeName
    """Azure VM size of every machine, for example Standard_ND96isr_H100_v5."""
    nodes: Annotated[int, Field(ge=0, le=NODES_PER_CLUSTER)]
    """Machines in the pool."""
    zone: Zone
    """Availability zone of all of the pool's machines."""
    interconnect: Interconnect
    """infiniband: scale sets of at most 100 machines, each one InfiniBand domain; ethernet: up to 1,000."""
    pods_per_node: Annotated[int, Field(ge=1, le=255)]
    """Pods with an address of their own per machine; the machine takes one address more."""
    image: ImagePin
    """The pool's only image pin, name@version, as published in node-images/versions.yaml."""
    priority_class: PriorityClass = PriorityClass.NORMAL
    """Priority class of the work that the pool is meant for; nodes carry it as a label."""
    capacity: Capacity = Capacity.REGULAR
    """regular, spot, or reserved (needs reservation_group)."""
    reservation_group: ReservationGroupId | None = None
    """Resource id of the capacity reservation group that reserved machines draw on."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, max_length=32)
    """Kubernetes labels that the pool's nodes carry from registration."""
    largest_gang: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)] | None = None
    """Machines of the largest gang that jobs may ask of this pool; on InfiniBand it must fit one scale set."""
    machines_per_set: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)] | None = None
    """Machines per scale set, where fewer than Azure's bound are wanted."""
    create_at_once: Annotated[int, Field(ge=1, le=5_000)] = 1_000
    """Machines that an update creates at once; every 50 over all pools of an image need one image replica."""
    load_balanced: bool = False
    """True puts the machines behind the cluster's internal ingress load balancer, which the hub reaches where it is peered."""

    @model_validator(mode="after")
    def reservation_matches_capacity(self) -> Self:
        """Demand a reservation group for reserved capacity, and none otherwise."""
        if (self.capacity is Capacity.RESERVED) != (self.reservation_group is not None):
            raise ValueError(
                f"capacity {self.capacity.value} {'needs a' if self.capacity is Capacity.RESERVED else 'takes no'} reservation_group; "
                "give reservation_group exactly where capacity is reserved"
            )
        return self

    @model_validator(mode="after")
    def gang_fits_the_pool(self) -> Self:
        """Demand that the largest gang finds machines enough in an undisturbed pool."""
        if self.largest_gang is not None and self.largest_gang > self.nodes:
            reason = f"a gang of {self.largest_gang} never fits a pool of {self.nodes} machines"
            raise ValueError(f"{reason}; give largest_gang at most {self.nodes}, or more nodes")
        return self
