"""Validation of a raw region document: duplicates, and references to things that do not exist.

It reads the raw document, so that no error hides another. Values of the wrong type are left to the models of components.spec.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import get_args

from components.plan import addresses, azure_limits
from components.plan.cluster_limits import ETCD_MEMBERS, PODS_PER_NODE
from components.plan.image_validation import suitable_sizes, validate_image
from components.plan.invalid_value import SIZES_LISTED, InvalidValue, Path, Raw, nearest, whole_number
from components.plan.locations import ZONAL_LOCATIONS
from components.plan.pod_network_validation import MOST_PODS, validate_pod_network
from components.plan.pools import addresses_per_machine, layout, subnet_slots
from components.plan.subscription_limits import ALL_FAMILIES, SPOT_FAMILY
from components.plan.vm_sizes import VM_SIZES
from components.spec.cluster import MOST_MACHINES_PER_GROUP
from components.spec.images import ImageCatalog, Role
from components.spec.pool import MOST_PODS_PER_NODE, NODE_SUBNET_SLOTS, NODES_PER_CLUSTER, Interconnect
from components.spec.types import INTERNAL, RegionName

RESERVED_NAME = "base"
SHORTEST_BLOCK, LONGEST_BLOCK = 9, 13
"""Prefix lengths of the largest and the smallest address space of a region."""
MOST_BLOCKS = 32
"""Blocks of /14 in the largest address space: one is for the hub."""
REGION_NAME = re.compile(get_args(RegionName)[1].pattern)
"""Form of a region's name; a name without this form is reported only by the model of components.spec."""
UNKNOWN_SIZE = f"is no VM size that {SIZES_LISTED} lists (a new one is a row of components/plan/vm_sizes.py)"
MOST_ADDRESSES = int(azure_limits.VNET_ADDRESSES.bound or 0)
"""Private addresses of a virtual network."""
ENDPOINT_MARGIN = 32
"""Addresses that a corrected pods_per_node leaves to front ends and private endpoints."""
GROUPS = {"api_servers": Role.API_SERVER, "etcd": Role.ETCD, "events_etcd": Role.ETCD}


def validate_region(document: object, name: str, catalog: ImageCatalog, others: Mapping[str, str]) -> tuple[InvalidValue, ...]:
    """Return all invalid values of a raw region document.

    name is the file's name without suffix; others maps every other region's name to its address space.
    """
    if not isinstance(document, Mapping):
        return ()
    found = [*_region(document, name, others), *_location(document), *_quotas(document), *_prices(document)]
    for path, cluster in _mappings(document, ("clusters",)):
        found += _cluster(path, cluster, catalog, document.get("location"))
    found += _repeated(document, ("clusters",), "name", "cluster")
    found += _slots(document, others)
    return tuple(found)


def _mappings(parent: Raw, path: Path) -> Iterator[tuple[Path, Raw]]:
    """Yield the mappings in the list under the last key of path in parent, with their paths."""
    items = parent.get(str(path[-1]))
    for index, item in enumerate(items if isinstance(items, list) else []):
        if isinstance(item, Mapping):
            yield (*path, index), item


def _repeated(parent: Raw, path: Path, key: str, what: str) -> Iterator[InvalidValue]:
    """Yield members of a list with the name or group of an earlier member."""
    seen: dict[object, str] = {}
    for where, member in _mappings(parent, path):
        value = member.get(key)
        if isinstance(value, bool) or not isinstance(value, int | str):
            continue
        if value in seen:
            yield InvalidValue((*where, key), value, f"is the {key} of {seen[value]}", f"give it a {key} of its own")
        else:
            seen[value] = f"{what} {member.get('name', where[-1])}"


def _region(document: Raw, name: str, others: Mapping[str, str]) -> Iterator[InvalidValue]:
    """Yield invalid values of the region's name and address space, and cluster slots beyond it."""
    if isinstance(document.get("name"), str) and document["name"] != name and REGION_NAME.fullmatch(document["name"]):
        yield InvalidValue(
            ("name",),
            document["name"],
            f"differs from the file's name, {name}.yaml",
            f"write name: {name}, or rename the file" if REGION_NAME.fullmatch(name) else f"rename the file to {document['name']}.yaml",
        )
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


def _slots(document: Raw, others: Mapping[str, str]) -> Iterator[InvalidValue]:
    """Yield cluster slots beyond the region's address space, and slots of an earlier cluster.

    Each remedy is a free slot of its own. If none is left, it is a larger address space that no other region uses.
    """
    own = _network(document.get("address_space"))
    blocks = addresses.blocks_in(str(own)) if own else 0
    count = blocks - 1 if 2 <= blocks <= MOST_BLOCKS else MOST_BLOCKS - 1
    clusters = [(where, cluster, whole_number(cluster.get("slot"))) for where, cluster in _mappings(document, ("clusters",))]
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


def _cluster(path: Path, cluster: Raw, catalog: ImageCatalog, location: object) -> Iterator[InvalidValue]:
    """Yield invalid values of a cluster: name, machine groups, pools and tenancy."""
    if cluster.get("name") == RESERVED_NAME:
        yield InvalidValue(
            (*path, "name"), RESERVED_NAME, "is the base stack's own name in resource groups", "give the cluster another name"
        )
    plane = cluster.get("control_plane")
    for key, role in GROUPS.items():
        group = plane.get(key) if isinstance(plane, Mapping) else None
        if isinstance(group, Mapping):
            yield from _machines((*path, "control_plane", key), group, role, cluster, catalog, location)
    for where, pool in _mappings(cluster, (*path, "pools")):
        yield from _machines(where, pool, Role.NODE, cluster, catalog, location)
        yield from _interconnect(where, pool)
        yield from _pods(where, pool)
    yield from _repeated(cluster, (*path, "pools"), "name", "pool")
    yield from _subnet_overlaps(path, cluster, catalog)
    yield from _tenants(path, cluster)
    yield from _budget(path, cluster)
    yield from validate_pod_network(path, cluster)


def _machines(path: Path, group: Raw, role: Role, cluster: Raw, catalog: ImageCatalog, location: object) -> Iterator[InvalidValue]:
    """Yield invalid VM sizes and images of a group of machines."""
    size, pin = group.get("vm_size"), group.get("image")
    if isinstance(size, str) and size not in VM_SIZES:
        yield InvalidValue((*path, "vm_size"), size, UNKNOWN_SIZE, nearest(size, suitable_sizes(role, group, catalog)))
    if role is not Role.NODE:
        yield from _count(path, role, group)
    if isinstance(pin, str):
        yield from validate_image((*path, "image"), pin, role, group, cluster, catalog, location)


def _count(path: Path, role: Role, group: Raw) -> Iterator[InvalidValue]:
    """Yield more machines of a control plane than the model accepts, with the bound of the plan, which is lower."""
    count = whole_number(group.get("count"))
    if count is None or count <= MOST_MACHINES_PER_GROUP:
        return
    most = addresses.usable(addresses.control_subnet(addresses.hub_block(str(INTERNAL)), "api")) - 1
    reason, remedy = (
        ("is more than the 7 members that etcd suggests", ETCD_MEMBERS.remedy)
        if role is Role.ETCD
        else (f"is more than the {most} API servers that their subnet holds", f"write at most {most}")
    )
    yield InvalidValue((*path, "count"), count, reason, remedy, replaces_model_error=True)


def _pods(path: Path, pool: Raw) -> Iterator[InvalidValue]:
    """Yield more pods per node than the model accepts, with the bound of the plan, which is lower."""
    pods = whole_number(pool.get("pods_per_node"))
    if pods is not None and pods > MOST_PODS_PER_NODE:
        reason = f"is more than {MOST_PODS}: {PODS_PER_NODE.reason}"
        yield InvalidValue((*path, "pods_per_node"), pods, reason, f"write at most {MOST_PODS}", replaces_model_error=True)


def _interconnect(path: Path, pool: Raw) -> Iterator[InvalidValue]:
    """Yield InfiniBand on a VM size without it."""
    size = VM_SIZES.get(pool["vm_size"]) if isinstance(pool.get("vm_size"), str) else None
    if size and pool.get("interconnect") == Interconnect.INFINIBAND.value and not size.infiniband_ports:
        yield InvalidValue((*path, "interconnect"), "infiniband", f"{size.name} has no InfiniBand", "write interconnect: ethernet")


def _subnet_overlaps(path: Path, cluster: Raw, catalog: ImageCatalog) -> Iterator[InvalidValue]:
    """Yield pools of a cluster that would use the same node subnet as an earlier pool.

    If they do so because the cluster exceeds the addresses of its network, yield the pool with the most addresses in their place.
    """
    pools = [(where, pool, slots) for where, pool in _mappings(cluster, (*path, "pools")) if (slots := _pool_slots(pool, catalog))]
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
    _, per_subnet = layout(Interconnect(pool["interconnect"]), catalog.definition(pin).store, values["pods_per_node"] or 1, per_set)
    return subnet_slots(values["slot"] or 0, values["nodes"] or 0, per_subnet)


def _pool_addresses(pool: Raw) -> int:
    """Return the private addresses of a raw pool with valid numbers."""
    return int(pool["nodes"] * addresses_per_machine(pool["pods_per_node"]))


def _control_plane_addresses(cluster: Raw) -> int:
    """Return the private addresses of a raw cluster besides its pools, with a margin for front ends and endpoints."""
    plane = cluster.get("control_plane")
    groups = [plane.get(key) for key in GROUPS] if isinstance(plane, Mapping) else []
    return ENDPOINT_MARGIN + sum(whole_number(group.get("count")) or 0 for group in groups if isinstance(group, Mapping))


def _tenants(path: Path, cluster: Raw) -> Iterator[InvalidValue]:
    """Yield references to teams and pools that are not declared."""
    tenancy = cluster.get("tenancy")
    if not isinstance(tenancy, Mapping):
        return
    base = (*path, "tenancy")
    teams = tuple(str(team.get("name")) for _, team in _mappings(tenancy, (*base, "teams")))
    pools = tuple(str(pool.get("name")) for _, pool in _mappings(cluster, (*path, "pools")))
    yield from _repeated(tenancy, (*base, "teams"), "name", "team")
    yield from _repeated(tenancy, (*base, "teams"), "group", "team")
    for where, allocation in _mappings(tenancy, (*base, "allocations")):
        for key, listed, known in (("team", tenancy.get("teams"), teams), ("pool", cluster.get("pools"), pools)):
            value = allocation.get(key)
            if isinstance(value, str) and isinstance(listed, list) and value not in known:
                yield InvalidValue((*where, key), value, f"is no {key} of this cluster", nearest(value, known))
    purpose = cluster.get("purpose")
    owner = purpose.get("team") if isinstance(purpose, Mapping) and purpose.get("kind") == "dedicated" else None
    if isinstance(owner, str) and isinstance(tenancy.get("teams"), list) and owner not in teams:
        yield InvalidValue((*path, "purpose", "team"), owner, "is no team of this cluster", nearest(owner, teams))


def _budget(path: Path, cluster: Raw) -> Iterator[InvalidValue]:
    """Yield a rotation budget of more machines than the cluster has."""
    rotation = cluster.get("rotation")
    budget = rotation.get("budget") if isinstance(rotation, Mapping) else None
    machines = whole_number(budget.get("machines")) if isinstance(budget, Mapping) else None
    counts = [whole_number(pool.get("nodes")) for _, pool in _mappings(cluster, (*path, "pools"))]
    known = [count for count in counts if count is not None and 0 <= count <= NODES_PER_CLUSTER]
    nodes = sum(known)
    if machines is not None and len(known) == len(counts) and machines > nodes > 0:
        reason = f"is more than the cluster's {nodes:,} machines"
        yield InvalidValue((*path, "rotation", "budget", "machines"), machines, reason, f"write at most {nodes}", replaces_model_error=True)


FAMILIES = (*sorted({size.family for size in VM_SIZES.values()}), ALL_FAMILIES, SPOT_FAMILY)


def _location(document: Raw) -> Iterator[InvalidValue]:
    """Yield the location if it is no Azure location with availability zones."""
    location = document.get("location")
    if isinstance(location, str) and location not in ZONAL_LOCATIONS:
        remedy = nearest(location, ZONAL_LOCATIONS)
        yield InvalidValue(("location",), location, "is no location of public Azure with availability zones", remedy)


def _quotas(document: Raw) -> Iterator[InvalidValue]:
    """Yield quotas of unknown families and repeated quotas."""
    quotas = document.get("quotas")
    seen: dict[tuple[str, str], int] = {}
    for index, quota in enumerate(quotas if isinstance(quotas, list) else ()):
        family = quota.get("family") if isinstance(quota, Mapping) else None
        if not isinstance(family, str):
            continue
        where = ("quotas", index, "family")
        if family not in FAMILIES:
            reason = (
                f"is neither {ALL_FAMILIES} (all families together) nor {SPOT_FAMILY} (spot) nor the family of a size in {SIZES_LISTED}"
            )
            yield InvalidValue(where, family, reason, nearest(family, FAMILIES))
        subscription = quota.get("subscription")
        key = (family, subscription if isinstance(subscription, str) else str(document.get("subscription")))
        if key in seen:
            reason = f"is declared already, by quotas[{seen[key]}]"
            yield InvalidValue(where, family, reason, "leave one of the two out; a grant is one number per family and subscription")
        seen.setdefault(key, index)


def _prices(document: Raw) -> Iterator[InvalidValue]:
    """Yield negotiated prices of unknown sizes, of sizes that the region does not use, and repeated ones."""
    used = _sizes_in_use(document)
    seen: dict[str, int] = {}
    for where, price in _mappings(document, ("prices",)):
        size = price.get("vm_size")
        if not isinstance(size, str):
            continue
        path = (*where, "vm_size")
        if size not in VM_SIZES:
            yield InvalidValue(path, size, UNKNOWN_SIZE, nearest(size, tuple(sorted(used)) or tuple(VM_SIZES)))
        elif size not in used:
            yield InvalidValue(path, size, "is the size of no machine of this region", f"leave it out; in use: {', '.join(sorted(used))}")
        if size in seen:
            yield InvalidValue(path, size, f"has a price already, in prices[{seen[size]}]", "leave one of the two out")
        seen.setdefault(size, int(where[-1]))


def _sizes_in_use(document: Raw) -> set[str]:
    """Return the known VM sizes of all pools and control planes."""
    found: set[str] = set()
    for where, cluster in _mappings(document, ("clusters",)):
        plane = cluster.get("control_plane")
        groups = [plane.get(key) for key in GROUPS] if isinstance(plane, Mapping) else []
        pools = [pool for _, pool in _mappings(cluster, (*where, "pools"))]
        found |= {size for group in (*groups, *pools) if isinstance(group, Mapping) and isinstance(size := group.get("vm_size"), str)}
    return found & set(VM_SIZES)
