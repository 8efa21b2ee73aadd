"""Plan of a pool's scale sets: number, size, subnet and order of creation."""

from __future__ import annotations

import math

from components.plan import addresses, naming
from components.plan.model import ImagePlan, PoolPlan, ScaleSetPlan
from components.plan.node_labels import POOL_LABEL
from components.plan.vm_sizes import VmSize
from components.spec.images import ImageStore
from components.spec.pool import NODES_PER_CLUSTER, SET_BOUND_INFINIBAND, Capacity, Interconnect, Pool

SET_BOUND_MANAGED_IMAGE = 600
"""Machines of a scale set over several placement groups, from a managed image: PLACEMENT_GROUPS."""
SET_BOUND_GALLERY_IMAGE = 1_000
"""Machines of a scale set over several placement groups, from a gallery image: PLACEMENT_GROUPS."""
JOINS_PER_SECOND = 100
"""Nodes that may join a cluster per second: with 1,000 joins at once, p99 of mutating requests was 1.4 s; with 100 per second, 0.09 s."""
JOIN_SECONDS = math.ceil(NODES_PER_CLUSTER / JOINS_PER_SECOND)
"""Seconds over which new nodes join, the same for all clusters: a time by pool size would change boot files on growth."""


def set_bound(interconnect: Interconnect, store: ImageStore) -> tuple[int, str]:
    """Return the maximum number of machines in one scale set, and the reason."""
    if interconnect is Interconnect.INFINIBAND:
        return SET_BOUND_INFINIBAND, "InfiniBand needs one placement group, which holds 100 machines"
    if store is ImageStore.MANAGED_IMAGE:
        return SET_BOUND_MANAGED_IMAGE, "a scale set from a managed image holds 600 machines"
    return SET_BOUND_GALLERY_IMAGE, "a scale set from a gallery image holds 1,000 machines"


def addresses_per_machine(pods_per_node: int) -> int:
    """Return the private addresses of a machine: its own, and one per pod."""
    return 1 + pods_per_node


def machines_per_subnet(addresses_each: int, machines_per_set: int) -> int:
    """Return the machines of a full node subnet: whole scale sets, at most 1,000 machines, within the subnet's usable addresses."""
    usable = addresses.usable(addresses.Network(f"10.0.0.0/{addresses.NODE_SUBNET_LENGTH}"))
    most = min(addresses.MACHINES_PER_SUBNET, usable // addresses_each)
    return most // machines_per_set * machines_per_set if most >= machines_per_set else most


def subnet_slots(slot: int, nodes: int, per_subnet: int) -> range:
    """Return the node-subnet slots of a pool: at least one, upwards from its own."""
    return range(slot, slot + max(1, math.ceil(nodes / per_subnet)))


def layout(interconnect: Interconnect, store: ImageStore, pods_per_node: int, machines_per_set: int | None) -> tuple[int, int]:
    """Return machines per scale set and per subnet; machines_per_set is the region file's value, which may break a limit."""
    each = addresses_per_machine(pods_per_node)
    usable = addresses.usable(addresses.Network(f"10.0.0.0/{addresses.NODE_SUBNET_LENGTH}"))
    per_set = min(machines_per_set or set_bound(interconnect, store)[0], addresses.MACHINES_PER_SUBNET, usable // each)
    return per_set, machines_per_subnet(each, per_set)


def pool_layout(pool: Pool, store: ImageStore) -> tuple[int, int]:
    """Return machines per scale set and per subnet of a pool."""
    return layout(pool.interconnect, store, pool.pods_per_node, pool.machines_per_set)


def concurrent_sets(pool: Pool, per_set: int) -> int:
    """Return the number of scale sets that are created in parallel; each later set waits for the set that many positions before it."""
    return max(1, pool.create_at_once // per_set)


def plan_pool(cluster: str, pool: Pool, size: VmSize, image: ImagePlan) -> PoolPlan:
    """Return the plan of a pool."""
    per_set, per_subnet = pool_layout(pool, image.definition.store)
    names = [naming.scale_set(cluster, pool.name, index) for index in range(math.ceil(pool.nodes / per_set))]
    parallel = concurrent_sets(pool, per_set)
    infiniband = pool.interconnect is Interconnect.INFINIBAND
    sets = tuple(
        ScaleSetPlan(
            index=index,
            name=name,
            computer_name_prefix=naming.computer_name_prefix(name),
            capacity=min(per_set, pool.nodes - index * per_set),
            bound=set_bound(pool.interconnect, image.definition.store)[0],
            subnet_role=f"nodes-{pool.slot + index * per_set // per_subnet:02d}",
            single_placement_group=infiniband,
            infiniband_domain=name if infiniband else None,
            after=names[index - parallel] if index >= parallel else None,
        )
        for index, name in enumerate(names)
    )
    return PoolPlan(
        spec=pool,
        size=size,
        image=image,
        addresses_per_machine=addresses_per_machine(pool.pods_per_node),
        machines_per_subnet=per_subnet,
        machines_per_set=per_set,
        subnet_roles=tuple(f"nodes-{slot:02d}" for slot in subnet_slots(pool.slot, pool.nodes, per_subnet)),
        scale_sets=sets,
        labels=_labels(pool, size),
        taints=("gpufleet.io/spot=true:NoSchedule",) if pool.capacity is Capacity.SPOT else (),
        join_seconds=JOIN_SECONDS,
    )


def _labels(pool: Pool, size: VmSize) -> dict[str, str]:
    """Return the labels of the pool's nodes: those of the region file, overridden by gpufleet's."""
    own = {
        POOL_LABEL: pool.name,
        "gpufleet.io/interconnect": pool.interconnect.value,
        "gpufleet.io/capacity": pool.capacity.value,
        "gpufleet.io/priority-class": pool.priority_class.value,
    }
    return dict(pool.labels) | own | ({"gpufleet.io/gpu": size.gpu} if size.gpus else {})
