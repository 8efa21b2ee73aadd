"""Region file model of a node pool."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from components.spec.types import ImagePin, LabelKey, LabelValue, Model, PoolName, ReservationGroupId, VmSizeName

NODES_PER_CLUSTER = 7_500
"""Largest cluster of the published design: https://openai.com/index/scaling-kubernetes-to-7500-nodes/"""

PLACEMENT_GROUPS = (
    "https://github.com/MicrosoftDocs/azure-compute-docs/blob/0c6223e9484d9281f960129ff81c76e16e2eb2cf/"
    "articles/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups.md"
)
SET_BOUND_INFINIBAND = 100
"""Machines of a scale set in one placement group, which InfiniBand requires: PLACEMENT_GROUPS."""

NODE_SUBNET_SLOTS = 24
"""Node subnets in the address block of a cluster."""

MOST_PODS_PER_NODE = 255
"""Pods of a machine: with its own address, the 256 addresses of an Azure network interface."""


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
    """Purchase option of the pool's machines."""

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
    """First node-subnet slot of the pool, 0 to 23. Each slot holds up to 1,000 machines; a larger pool also uses the following slots."""
    vm_size: VmSizeName
    """Azure VM size of each machine, for example Standard_ND96isr_H100_v5."""
    nodes: Annotated[int, Field(ge=0, le=NODES_PER_CLUSTER)]
    """Number of machines."""
    zone: Zone
    """Availability zone of all machines of the pool."""
    interconnect: Interconnect
    """infiniband: scale sets of at most 100 machines, each one InfiniBand domain; ethernet: up to 1,000."""
    pods_per_node: Annotated[int, Field(ge=1, le=MOST_PODS_PER_NODE)]
    """Pods with their own address per machine; the machine uses one more address."""
    image: ImagePin
    """The pool's only image pin, name@version, as published in node-images/versions.yaml."""
    priority_class: PriorityClass = PriorityClass.NORMAL
    """Priority class of the workloads that the pool is for; nodes have it as a label."""
    capacity: Capacity = Capacity.REGULAR
    """regular, spot, or reserved (needs reservation_group)."""
    reservation_group: ReservationGroupId | None = None
    """Resource id of the capacity reservation group of reserved machines."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict, max_length=32)
    """Kubernetes labels that nodes register with."""
    largest_gang: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)] | None = None
    """Machines of the largest gang that a job may request from this pool; with InfiniBand, it must fit in one scale set."""
    machines_per_set: Annotated[int, Field(ge=1, le=NODES_PER_CLUSTER)] | None = None
    """Machines per scale set, if fewer than Azure's limit."""
    create_at_once: Annotated[int, Field(ge=1, le=5_000)] = 1_000
    """Machines that an update creates at the same time; an image needs one replica per 50 of them, over all its pools."""
    load_balanced: bool = False
    """True: add the machines to the cluster's internal ingress load balancer, which a peered hub can reach."""

    @field_validator("reservation_group")
    @classmethod
    def reservation_matches_capacity(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Require a reservation group exactly if the capacity is reserved."""
        capacity = info.data.get("capacity")
        if capacity is Capacity.RESERVED and value is None:
            raise PydanticCustomError(
                "reservation", "is missing, and capacity: reserved needs it; add the group's id, or write another capacity"
            )
        if value is not None and capacity in (Capacity.REGULAR, Capacity.SPOT):
            reason = f"a reservation has no effect on machines of capacity {capacity.value}"
            raise PydanticCustomError("reservation", f"{reason}; write capacity: reserved, or leave reservation_group out")
        return value

    @field_validator("largest_gang")
    @classmethod
    def gang_fits_the_pool(cls, value: int | None, info: ValidationInfo) -> int | None:
        """Require at least as many machines in the pool as in its largest gang."""
        nodes = info.data.get("nodes")
        if value is not None and nodes is not None and value > nodes:
            bound = SET_BOUND_INFINIBAND if info.data.get("interconnect") is Interconnect.INFINIBAND else NODES_PER_CLUSTER
            remedies = [
                f"write at most {min(nodes, bound)}" if nodes else "leave largest_gang out",
                "raise nodes" if value <= bound else "",
            ]
            raise ValueError(f"is more than the pool's {nodes} machines; {', or '.join(filter(None, remedies))}")
        return value
