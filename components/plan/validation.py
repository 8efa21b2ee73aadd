"""Validation of a raw region document: duplicates, and references to things that do not exist.

It reads the raw document, so that no error hides another. Values of the wrong type are left to the models of components.spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from components.plan import addresses
from components.plan.address_validation import validate_address_space, validate_cluster_slots, validate_node_subnets
from components.plan.cluster_limits import ETCD_MEMBERS, PODS_PER_NODE
from components.plan.image_validation import suitable_sizes, validate_image
from components.plan.invalid_value import SIZES_LISTED, InvalidValue, Path, Raw, nearest, whole_number
from components.plan.locations import ZONAL_LOCATIONS
from components.plan.pod_network_validation import MOST_PODS, validate_pod_network
from components.plan.raw_region import control_plane_groups, mappings
from components.plan.rotation_validation import validate_rotation
from components.plan.subscription_limits import ALL_FAMILIES, SPOT_FAMILY
from components.plan.vm_sizes import VM_SIZES
from components.spec.cluster import MOST_MACHINES_PER_GROUP
from components.spec.images import ImageCatalog, Role
from components.spec.pool import MOST_PODS_PER_NODE, Interconnect
from components.spec.types import INTERNAL, RegionName

RESERVED_NAME = "base"
REGION_NAME = re.compile(get_args(RegionName)[1].pattern)
"""Form of a region's name; a name without this form is reported only by the model of components.spec."""
UNKNOWN_SIZE = f"is no VM size that {SIZES_LISTED} lists (a new one is a row of components/plan/vm_sizes.py)"


def validate_region(document: object, name: str, catalog: ImageCatalog, others: Mapping[str, str]) -> tuple[InvalidValue, ...]:
    """Return all invalid values of a raw region document.

    name is the file's name without suffix; others maps every other region's name to its address space.
    """
    if not isinstance(document, Mapping):
        return ()
    found = [
        *_name(document, name),
        *validate_address_space(document, others),
        *_location(document),
        *_quotas(document),
        *_prices(document),
    ]
    for path, cluster in mappings(document, ("clusters",)):
        found += _cluster(path, cluster, catalog, document.get("location"))
    found += _repeated(document, ("clusters",), "name", "cluster")
    found += validate_cluster_slots(document, others)
    return tuple(found)


def _repeated(parent: Raw, path: Path, key: str, what: str) -> Iterator[InvalidValue]:
    """Yield members of a list with the name or group of an earlier member."""
    seen: dict[object, str] = {}
    for where, member in mappings(parent, path):
        value = member.get(key)
        if isinstance(value, bool) or not isinstance(value, int | str):
            continue
        if value in seen:
            yield InvalidValue((*where, key), value, f"is the {key} of {seen[value]}", f"give it a {key} of its own")
        else:
            seen[value] = f"{what} {member.get('name', where[-1])}"


def _name(document: Raw, name: str) -> Iterator[InvalidValue]:
    """Yield a name that differs from the file's."""
    if isinstance(document.get("name"), str) and document["name"] != name and REGION_NAME.fullmatch(document["name"]):
        yield InvalidValue(
            ("name",),
            document["name"],
            f"differs from the file's name, {name}.yaml",
            f"write name: {name}, or rename the file" if REGION_NAME.fullmatch(name) else f"rename the file to {document['name']}.yaml",
        )


def _cluster(path: Path, cluster: Raw, catalog: ImageCatalog, location: object) -> Iterator[InvalidValue]:
    """Yield invalid values of a cluster: name, machine groups, pools and tenancy."""
    if cluster.get("name") == RESERVED_NAME:
        yield InvalidValue(
            (*path, "name"), RESERVED_NAME, "is the base stack's own name in resource groups", "give the cluster another name"
        )
    for key, role, group in control_plane_groups(cluster):
        yield from _machines((*path, "control_plane", key), group, role, cluster, catalog, location)
    for where, pool in mappings(cluster, (*path, "pools")):
        yield from _machines(where, pool, Role.NODE, cluster, catalog, location)
        yield from _interconnect(where, pool)
        yield from _pods(where, pool)
    yield from _repeated(cluster, (*path, "pools"), "name", "pool")
    yield from validate_node_subnets(path, cluster, catalog)
    yield from _tenants(path, cluster)
    yield from validate_rotation(path, cluster, catalog)
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


def _tenants(path: Path, cluster: Raw) -> Iterator[InvalidValue]:
    """Yield references to teams and pools that are not declared."""
    tenancy = cluster.get("tenancy")
    if not isinstance(tenancy, Mapping):
        return
    base = (*path, "tenancy")
    teams = tuple(str(team.get("name")) for _, team in mappings(tenancy, (*base, "teams")))
    pools = tuple(str(pool.get("name")) for _, pool in mappings(cluster, (*path, "pools")))
    yield from _repeated(tenancy, (*base, "teams"), "name", "team")
    yield from _repeated(tenancy, (*base, "teams"), "group", "team")
    for where, allocation in mappings(tenancy, (*base, "allocations")):
        for key, listed, known in (("team", tenancy.get("teams"), teams), ("pool", cluster.get("pools"), pools)):
            value = allocation.get(key)
            if isinstance(value, str) and isinstance(listed, list) and value not in known:
                yield InvalidValue((*where, key), value, f"is no {key} of this cluster", nearest(value, known))
    purpose = cluster.get("purpose")
    owner = purpose.get("team") if isinstance(purpose, Mapping) and purpose.get("kind") == "dedicated" else None
    if isinstance(owner, str) and isinstance(tenancy.get("teams"), list) and owner not in teams:
        yield InvalidValue((*path, "purpose", "team"), owner, "is no team of this cluster", nearest(owner, teams))


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
    for where, price in mappings(document, ("prices",)):
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
    for where, cluster in mappings(document, ("clusters",)):
        groups = [group for _, _, group in control_plane_groups(cluster)]
        pools = [pool for _, pool in mappings(cluster, (*where, "pools"))]
        found |= {size for group in (*groups, *pools) if isinstance(size := group.get("vm_size"), str)}
    return found & set(VM_SIZES)
