"""Creation and removal of a scale set's instances: ids, zones, fault domains, addresses, quota, and the order of scale-in."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, Model, ModelIpConfiguration, SetState, state_of
from rehearsal.azure.compute.machine import Site, vacate
from rehearsal.azure.errors import AzureError, conflict
from rehearsal.azure.network.address_pools import pool_of
from rehearsal.azure.network.public_addresses import mark_public, take_public
from rehearsal.azure.resource import Resource
from rehearsal.azure.scheduled_events import scheduled_events_of

OVERPROVISION = 0.2
"""Machines created beyond the requested ones, as a share: Azure recommends addresses for a fifth more, and publishes no other value.
https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups
"""


def site_of(resource: Resource, one: Instance, model: Model | None = None) -> Site:
    """Return the placement of an instance, by its model or by another one."""
    chosen = model or state_of(resource).models[one.model]
    group = chosen.rest["proximityPlacementGroup"]
    return Site(
        key=f"{resource.key}/virtualmachines/{one.id}",
        location=resource.location,
        size=chosen.size,
        zone=one.zone,
        spot=chosen.spot,
        group=chosen.reservation,
        constraints=("Proximity Placement Group",) if group else (),
    )


def surplus_machines(resource: Resource, count: int) -> int:
    """Return the number of machines that overprovisioning creates beyond count new ones."""
    return math.ceil(count * OVERPROVISION) if resource.properties.get("overprovision") else 0


def add_instances(cloud: Cloud, resource: Resource, count: int, surplus: int = 0) -> list[Instance]:
    """Create instances of the present model, with addresses, and with quota except for the surplus: all, or AzureError and none."""
    state = state_of(resource)
    model = state.models[state.model]
    made = _spread(cloud, resource, state, count + surplus)
    for one in made[count:]:
        one.charged = False
    take_quota(cloud, resource, model, made)
    try:
        addresses = take_addresses(cloud, model.ip_configurations, len(made))
    except AzureError:
        release_quota(cloud, resource, model, made)
        raise
    each = model.public_addresses
    try:
        public = take_public(cloud, each * len(made))
    except AzureError:
        release_quota(cloud, resource, model, made)
        for own in addresses:
            release_addresses(cloud, model.ip_configurations, own)
        raise
    for number, (one, own) in enumerate(zip(made, addresses, strict=True)):
        one.addresses, one.public = own, public[each * number : each * (number + 1)]
        state.instances[str(one.id)] = one
    state.next_id += len(made)
    return made


def _spread(cloud: Cloud, resource: Resource, state: SetState, count: int) -> list[Instance]:
    """Return new instances, each in the zone and then the fault domain with the fewest."""
    zones = resource.body.get("zones") or [""]
    domains = range(int(resource.properties["platformFaultDomainCount"]))
    living = state.living()
    by_zone = Counter(one.zone for one in living)
    by_domain = Counter((one.zone, one.fault_domain) for one in living)
    made = []
    for number in range(state.next_id, state.next_id + count):
        zone = min(zones, key=by_zone.__getitem__)
        domain = min(domains, key=[by_domain[zone, one] for one in domains].__getitem__)
        by_zone[zone] += 1
        by_domain[zone, domain] += 1
        made.append(Instance(id=number, created=cloud.now, model=state.model, os_model=state.model, zone=zone, fault_domain=domain))
    return made


def take_addresses(cloud: Cloud, ip_configurations: Sequence[ModelIpConfiguration], machines: int) -> list[tuple[int, ...]]:
    """Allocate an address for each ipConfiguration of the machines, in the order of the ip_configurations: all, or AzureError and none."""
    per_subnet = Counter(item.subnet for item in ip_configurations)
    taken: dict[str, list[int]] = {}
    try:
        for subnet, each in per_subnet.items():
            taken[subnet] = pool_of(cloud, subnet).take(each * machines)
    except AzureError:
        for subnet, addresses in taken.items():
            pool_of(cloud, subnet).release(addresses)
        raise
    if len(per_subnet) == 1:
        (addresses,), each = taken.values(), len(ip_configurations)
        return [tuple(addresses[start : start + each]) for start in range(0, each * machines, each)]
    ahead = {subnet: iter(addresses) for subnet, addresses in taken.items()}
    return [tuple(next(ahead[item.subnet]) for item in ip_configurations) for _ in range(machines)]


def release_addresses(cloud: Cloud, ip_configurations: Sequence[ModelIpConfiguration], addresses: Sequence[int]) -> None:
    """Release a machine's addresses."""
    by_subnet = defaultdict(list)
    for item, address in zip(ip_configurations, addresses, strict=True):
        by_subnet[item.subnet].append(address)
    for subnet, own in by_subnet.items():
        pool_of(cloud, subnet).release(own)


def take_addresses_again(cloud: Cloud, resource: Resource) -> None:
    """Allocate the addresses of all instances of a set from a saved state."""
    state = state_of(resource)
    by_subnet = defaultdict(list)
    for one in state.instances.values():
        for item, address in zip(state.models[one.model].ip_configurations, one.addresses, strict=True):
            by_subnet[item.subnet].append(address)
        mark_public(cloud, one.public, taken=True)
    for subnet, addresses in by_subnet.items():
        pool_of(cloud, subnet).take_again(addresses)


def take_quota(cloud: Cloud, resource: Resource, model: Model, machines: Iterable[Instance]) -> None:
    """Take quota for the machines of a model that count against it: for all, or AzureError and for none."""
    done: Counter[str] = Counter()
    try:
        for zone, count in _by_zone(model, machines).items():
            _quota(cloud, resource, model, zone, count)
            done[zone] = count
    except AzureError:
        for zone, count in done.items():
            _quota(cloud, resource, model, zone, -count)
        raise


def release_quota(cloud: Cloud, resource: Resource, model: Model, machines: Iterable[Instance]) -> None:
    """Release the quota of machines of a model."""
    for zone, count in _by_zone(model, machines).items():
        _quota(cloud, resource, model, zone, -count)


def _by_zone(model: Model, machines: Iterable[Instance]) -> Counter[str]:
    """Return the number of machines that count against quota; by zone only for capacity reservations, which have a zone."""
    return Counter(one.zone if model.reservation else "" for one in machines if one.charged)


def _quota(cloud: Cloud, resource: Resource, model: Model, zone: str, machines: int) -> None:
    capacity = capacity_of(cloud)
    change = capacity.reserve if machines > 0 else capacity.release
    change(
        cloud,
        subscription=resource.id.subscription,
        location=resource.location,
        size=model.size,
        spot=model.spot,
        machines=abs(machines),
        group=model.reservation,
        zone=zone,
    )


def remove_instance(cloud: Cloud, resource: Resource, one: Instance) -> None:
    """Remove an instance: release its host, addresses and quota."""
    state = state_of(resource)
    model = state.models[one.model]
    del state.instances[str(one.id)]
    vacate(cloud, one)
    release_addresses(cloud, model.ip_configurations, one.addresses)
    mark_public(cloud, one.public, taken=False)
    release_quota(cloud, resource, model, (one,))
    scheduled_events_of(cloud).withdraw(cloud, resource.key, (str(one.id),))
    _forget_models(state)


def _forget_models(state: SetState) -> None:
    """Remove models that no instance uses."""
    if len(state.models) > 1:
        used = {state.model} | {number for one in state.instances.values() for number in (one.model, one.os_model)}
        used |= set((state.rolling or {}).get("former", {}).values())
        state.models = {number: model for number, model in state.models.items() if number in used}


def scale_in_victims(resource: Resource, count: int) -> list[Instance]:
    """Return the instances that a smaller capacity deletes, in order; AzureError if too many are protected.

    The selection balances zones, then fault domains (not for OldestVM and NewestVM), then applies the policy:
    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-scale-in-policy
    """
    living = state_of(resource).counted()
    free = [one for one in living if not (one.protect_from_scale_in or one.protect_from_actions)]
    if len(free) < count:
        message = (
            f"The capacity cannot be lowered by {count}: {len(living) - len(free)} of {len(living)} instances are protected from scale-in. "
            "Remove their protection, or delete instances by id."
        )
        raise conflict("OperationNotAllowed", message, "sku.capacity")
    rule = next(iter((resource.properties.get("scaleInPolicy") or {}).get("rules") or []), "Default")
    by_zone = Counter(one.zone for one in living)
    by_domain = Counter((one.zone, one.fault_domain) for one in living)
    chosen = []
    for _ in range(count):
        fullest = max(by_zone[one.zone] for one in free)
        among = [one for one in free if by_zone[one.zone] == fullest]
        if rule == "Default":
            most = max(by_domain[one.zone, one.fault_domain] for one in among)
            among = [one for one in among if by_domain[one.zone, one.fault_domain] == most]
        going = min(among, key=lambda one: one.id) if rule == "OldestVM" else max(among, key=lambda one: one.id)
        free.remove(going)
        by_zone[going.zone] -= 1
        by_domain[going.zone, going.fault_domain] -= 1
        chosen.append(going)
    return chosen
