"""Decides who is in a load balancer's backend pool, and which of them answer its probe.

https://learn.microsoft.com/azure/load-balancer/backend-pool-management,
https://learn.microsoft.com/azure/load-balancer/load-balancer-custom-probe-overview
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.azure.arm_id import parse
from rehearsal.azure.compute.instances import Model, state_of
from rehearsal.azure.compute.machine import RUNNING, Machine
from rehearsal.azure.errors import invalid
from rehearsal.azure.network.load_balancers import POOLS, RULES, SETS
from rehearsal.azure.network.network_resource_type import id_of, list_of, properties_of, users_by_type
from rehearsal.azure.network.private_addresses import addresses_held
from rehearsal.azure.network.subnets import INTERFACES
from rehearsal.azure.resource import Json, Resource

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

MEMBERS_PER_POOL = 5_000
"""https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#load-balancer"""
HEALTHY = "Healthy"
MACHINES = "microsoft.compute/virtualmachines"


@dataclass(frozen=True, slots=True)
class BackendMember:
    """One ipConfiguration in a pool: id of the interface or scale set that it is of, instance id (empty outside a scale set), names of the
    interface and of itself, IPv4 address as an integer, and whether its machine runs, is up and has not been called unhealthy."""

    owner: str
    instance: str
    interface: str
    configuration: str
    address: int
    answers: bool


def backend_members(cloud: Cloud, pool_id: str) -> Iterator[BackendMember]:
    """Every member of a pool, by the order in which interfaces and scale sets joined it; none for a pool that does not exist."""
    for key in cloud.index.users(pool_id.lower()):
        user = cloud.resources[key]
        kind = user.id.type.lower()
        if kind == INTERFACES:
            yield from _of_interface(cloud, user, pool_id.lower())
        elif kind == SETS:
            yield from _of_set(cloud, user, pool_id.lower())


def probe_answers(cloud: Cloud, load_balancer: str) -> dict[str, list[BackendMember]]:
    """By name of the pool, the members that traffic goes to: those that answer where a rule of the pool has a probe, else all.

    load_balancer is an id; AzureError ResourceNotFound.
    """
    found = cloud.get(load_balancer)
    rules = [properties_of(rule) for rule in list_of(found.body, RULES)]
    probed = {id_of(rule.get("backendAddressPool")).lower() for rule in rules if id_of(rule.get("probe"))}
    return {
        str(pool["name"]): [one for one in backend_members(cloud, pool["id"]) if one.answers or pool["id"].lower() not in probed]
        for pool in list_of(found.body, POOLS)
    }


def check_pool_room(cloud: Cloud, pool_id: str, more: int) -> None:
    """Refuse more members than a pool holds. Azure publishes the bound and not the code; this one is assumed."""
    members = sum(1 for _ in backend_members(cloud, pool_id))
    if members + more > MEMBERS_PER_POOL:
        name = parse(pool_id).name
        message = (
            f"Backend pool {name} has {members} members and would get {more} more, of at most {MEMBERS_PER_POOL}. Spread them over several "
            "load balancers."
        )
        raise invalid(message, pool_id, "LoadBalancerBackendPoolMemberCountLimitReached")


def _of_interface(cloud: Cloud, interface: Resource, pool: str) -> Iterator[BackendMember]:
    held = addresses_held(interface)
    machines = [cloud.get(one) for one in users_by_type(cloud, interface).get(MACHINES, [])]
    answers = any(_answers(cloud, one.state) for one in machines)
    for item in list_of(interface.body, "ipConfigurations"):
        name = str(item["name"])
        if _in_pool(item, pool) and name.lower() in held:
            yield BackendMember(interface.id.text, "", interface.id.name, name, held[name.lower()], answers)


def _of_set(cloud: Cloud, scale_set: Resource, pool: str) -> Iterator[BackendMember]:
    state = state_of(scale_set)
    places = {number: _places_in_pool(model, pool) for number, model in state.models.items()}
    for number, instance in state.instances.items():
        if instance.going or not instance.addresses:
            continue
        answers = _answers(cloud, instance) and instance.health in ("", HEALTHY)
        for place in places[instance.model]:
            one = state.models[instance.model].places[place]
            yield BackendMember(scale_set.id.text, number, one.nic, one.name, instance.addresses[place], answers)


def _places_in_pool(model: Model, pool: str) -> list[int]:
    """Numbers of a model's ipConfigurations that are in a pool."""
    interfaces = (model.profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or ()
    named = {
        (str(nic["name"]), str(item["name"])) for nic in interfaces for item in list_of(nic, "ipConfigurations") if _in_pool(item, pool)
    }
    return [number for number, place in enumerate(model.places) if (place.nic, place.name) in named]


def _in_pool(item: Json, pool: str) -> bool:
    return any(id_of(one).lower() == pool for one in list_of(item, "loadBalancerBackendAddressPools"))


def _answers(cloud: Cloud, machine: object) -> bool:
    return isinstance(machine, Machine) and machine.power == RUNNING and bool(machine.ready) and machine.ready <= cloud.now
