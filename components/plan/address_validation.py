"""Validation of the addresses of a raw region document: its address space, the slots of clusters, and the node subnets of pools."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from components.plan import addresses, azure_limits
from components.plan.invalid_value import InvalidValue, Path, Raw, whole_number
from components.plan.pools import addresses_per_machine, layout, subnet_slots
from components.plan.raw_region import control_plane_groups, mappings
from components.spec.images import ImageCatalog
from components.spec.pool import MOST_PODS_PER_NODE, NODE_SUBNET_SLOTS, NODES_PER_CLUSTER, Interconnect
from components.spec.types import INTERNAL

SHORTEST_BLOCK, LONGEST_BLOCK = 9, 13
"""Prefix lengths of the largest and the smallest address space of a region."""
MOST_BLOCKS = 32
"""Blocks of /14 in the largest address space: one is for the hub."""
MOST_ADDRESSES = int(azure_limits.VNET_ADDRESSES.bound or 0)
"""Private addresses of a virtual network."""
ENDPOINT_MARGIN = 32
"""Addresses that a corrected pods_per_node leaves to front ends and private endpoints."""


def validate_address_space(document: Raw, others: Mapping[str, str]) -> Iterator[InvalidValue]:
    """Yield an address space of an invalid size, and one that overlaps another region's; others maps region names to address spaces."""
    own = _network(document.get("address_space"))
    if own is None:
        return
    blocks = addresses.blocks_in(str(own))
    if not 2 <= blocks <= MOST_BLOCKS:
        yield InvalidValue(
            ("address_space",),
            str(own),
            f"holds {blocks} blocks of /14: one is for the hub, and one for each cluster slot, of which there are at most 31",
            "use a block of /9 to /13",
        )
    for other, text in sorted(others.items()):
        network = _network(text)
        if network is not None and own.overlaps(network):
            free = _free_block(own.prefixlen, [*map(_network, others.values())])
            yield InvalidValue(("address_space",), str(own), f"overlaps {text} of region {other}", free)


def validate_cluster_slots(document: Raw, others: Mapping[str, str]) -> Iterator[InvalidValue]:
    """Yield cluster slots beyond the region's address space, and slots of an earlier cluster.

    Each remedy is a free slot of its own. If none is left, it is a larger address space that no other region uses.
    """
    own = _network(document.get("address_space"))
    blocks = addresses.blocks_in(str(own)) if own else 0
    count = blocks - 1 if 2 <= blocks <= MOST_BLOCKS else MOST_BLOCKS - 1
    clusters = [(where, cluster, whole_number(cluster.get("slot"))) for where, cluster in mappings(document, ("clusters",))]
    taken = {slot for _, _, slot in clusters}
    free = iter([slot for slot in range(count) if slot not in taken])
    names: dict[int, object] = {}
    for where, cluster, slot in clusters:
        if slot is None or slot < 0:
            continue
        beyond = slot >= count and count == blocks - 1
        if beyond or slot in names:
            lowest = next(free, None)
            wanted = max(len(clusters), slot + 1)
            remedy = f"slot {lowest} is free" if lowest is not None else _larger_block(own, wanted, [*map(_network, others.values())])
            last = f"{count} cluster slots of {own}, 0 to {count - 1}" if count > 1 else f"only cluster slot of {own}, 0"
            reason = f"is beyond the {last}" if beyond else f"is the slot of cluster {names[slot]}"
            yield InvalidValue((*where, "slot"), slot, reason, remedy, replaces_model_error=beyond)
        names.setdefault(slot, cluster.get("name", where[-1]))


def _larger_block(own: ipaddress.IPv4Network | None, slots: int, taken: Sequence[ipaddress.IPv4Network | None]) -> str:
    """Return the remedy of an address space without a free slot: one with a number of slots that no other region uses."""
    shorter = range((own.prefixlen if own else LONGEST_BLOCK) - 1, SHORTEST_BLOCK - 1, -1)
    lengths = [length for length in shorter if addresses.blocks_in(f"10.0.0.0/{length}") > slots]
    grown = (own.supernet(new_prefix=length) for length in lengths if own)
    elsewhere = (block for length in lengths for block in INTERNAL.subnets(new_prefix=length))
    found = next((block for block in (*grown, *elsewhere) if _is_free(block, taken)), None)
    larger = f"write address_space: {found}, or " if found else ""
    return f"all slots are used: {larger}move a cluster to another region"


def _is_free(block: ipaddress.IPv4Network, taken: Iterable[ipaddress.IPv4Network | None]) -> bool:
    """Return True if a block overlaps none of the networks."""
    return not any(network is not None and block.overlaps(network) for network in taken)


def _network(value: object) -> ipaddress.IPv4Network | None:
    """Return the network of a text, None if it is none."""
    try:
        return ipaddress.IPv4Network(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _free_block(length: int, taken: list[ipaddress.IPv4Network | None]) -> str:
    """Return a remedy with the first block in 10.0.0.0/8 that no other region uses: of a valid length, or a smaller one if none is left."""
    shortest = min(max(length, SHORTEST_BLOCK), LONGEST_BLOCK)
    blocks = (block for longer in range(shortest, LONGEST_BLOCK + 1) for block in INTERNAL.subnets(new_prefix=longer))
    found = next((block for block in blocks if _is_free(block, taken)), None)
    if found is None:
        return f"no /{LONGEST_BLOCK} is free: make the address space of another region smaller"
    return f"{found} is free" if found.prefixlen == shortest else f"no /{shortest} is free, but {found} is"


def validate_node_subnets(path: Path, cluster: Raw, catalog: ImageCatalog) -> Iterator[InvalidValue]:
    """Yield pools of a cluster that would use the same node subnet as an earlier pool.

    If they do so because the cluster exceeds the addresses of its network, yield the pool with the most addresses in their place.
    """
    pools = [(where, pool, slots) for where, pool in mappings(cluster, (*path, "pools")) if (slots := _pool_slots(pool, catalog))]
    found = list(_overlaps(pools))
    largest = max(pools, key=lambda entry: _pool_addresses(entry[1]), default=None)
    if not found or largest is None or (used := sum(_pool_addresses(pool) for _, pool, _ in pools)) <= MOST_ADDRESSES:
        yield from found
        return
    where, pool, _ = largest
    pods, nodes = pool["pods_per_node"], pool["nodes"]
    others = used - _pool_addresses(pool) + _control_plane_addresses(cluster)
    fewer = (MOST_ADDRESSES - others) // nodes - 1
    per_machine = addresses_per_machine(pods)
    remedy = f"write at most {fewer}" if fewer >= 1 else "lower nodes"
    yield InvalidValue(
        (*where, "pods_per_node"),
        pods,
        f"gives each of {nodes:,} machines {per_machine} addresses, so that this cluster's pools need {used:,} of at most "
        f"{MOST_ADDRESSES:,} {azure_limits.VNET_ADDRESSES.name}: {azure_limits.VNET_ADDRESSES.reason}",
        f"{remedy}, or move machines to another cluster",
    )
    lowered = {**pool, "pods_per_node": max(fewer, 1)}
    corrected = [(place, lowered if place == where else each) for place, each, _ in pools]
    yield from _overlaps([(place, each, slots) for place, each in corrected if (slots := _pool_slots(each, catalog))])


def _overlaps(pools: Sequence[tuple[Path, Raw, range]]) -> Iterator[InvalidValue]:
    """Yield pools with a node-subnet slot of an earlier pool."""
    taken: dict[int, str] = {}
    proposed: set[int] = set()
    for where, pool, slots in pools:
        clash = next((slot for slot in slots if slot in taken), None)
        if clash is not None:
            used = proposed | {slot for place, _, others in pools if place != where for slot in others}
            free = addresses.free_slot(len(slots), used)
            proposed |= set(range(free, free + len(slots))) if free is not None else set()
            remedy = (
                f"slot {free} is free for its {len(slots)}" if free is not None else "no run of free slots is left; use another cluster"
            )
            span = f"{slots[0]}" if len(slots) == 1 else f"{slots[0]} to {slots[-1]}"
            yield InvalidValue(
                (*where, "slot"), slots[0], f"lets its machines fill node subnets {span}, and {clash} is pool {taken[clash]}'s", remedy
            )
        taken |= {slot: str(pool.get("name")) for slot in slots if slot not in taken}


def _pool_slots(pool: Raw, catalog: ImageCatalog) -> range | None:
    """Return the node-subnet slots of a raw pool, None if values are missing or invalid."""
    found = raw_pool_layout(pool, catalog)
    return subnet_slots(pool["slot"], pool["nodes"], found[1]) if found else None


def raw_pool_layout(pool: Raw, catalog: ImageCatalog) -> tuple[int, int] | None:
    """Return machines per scale set and per subnet of a raw pool, None if values are missing or invalid."""
    numbers: dict[str, Callable[[int], bool]] = {
        "slot": lambda value: 0 <= value < NODE_SUBNET_SLOTS,
        "nodes": lambda value: 0 <= value <= NODES_PER_CLUSTER,
        "pods_per_node": lambda value: 1 <= value <= MOST_PODS_PER_NODE,
    }
    values = {key: whole_number(pool.get(key)) for key in numbers}
    if any(value is None or not numbers[key](value) for key, value in values.items()):
        return None
    pin = pool.get("image")
    if pool.get("interconnect") not in tuple(Interconnect) or not isinstance(pin, str) or pin not in catalog.pins():
        return None
    given = whole_number(pool.get("machines_per_set"))
    per_set = given if given and 1 <= given <= NODES_PER_CLUSTER else None
    return layout(Interconnect(pool["interconnect"]), catalog.definition(pin).store, values["pods_per_node"] or 1, per_set)


def _pool_addresses(pool: Raw) -> int:
    """Return the private addresses of a raw pool with valid numbers."""
    return int(pool["nodes"] * addresses_per_machine(pool["pods_per_node"]))


def _control_plane_addresses(cluster: Raw) -> int:
    """Return the private addresses of a raw cluster besides its pools, with a margin for front ends and endpoints."""
    return ENDPOINT_MARGIN + sum(whole_number(group.get("count")) or 0 for _, _, group in control_plane_groups(cluster))
