"""Counts of the machines behind a resource, planned and in the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from components.plan import naming
from components.plan.model import ClusterPlan
from rehearsal.azure.compute.instances import SetState, state_of
from rehearsal.azure.compute.machine import SUCCEEDED
from rehearsal.azure.compute.virtual_machine import machine_of
from rehearsal.azure.resource import Json, Resource

SCALE_SET = "microsoft.compute/virtualmachinescalesets"
MACHINE = "microsoft.compute/virtualmachines"


def is_scale_set(resource: Resource) -> bool:
    """Return whether a resource is a scale set."""
    return resource.id.type.lower() == SCALE_SET


def machine_count(resource: Resource) -> int:
    """Return the number of machines that are lost with a resource; machines that are being deleted do not count."""
    if is_scale_set(resource):
        return len(state_of(resource).living())
    return int(resource.id.type.lower() == MACHINE)


def provisioned_count(resource: Resource) -> int:
    """Return the number of machines of a scale set that Azure has provisioned; failed machines do not count."""
    return sum(one.state == SUCCEEDED for one in state_of(resource).living())


def billed_sizes(resource: Resource) -> Counter[tuple[str, str]]:
    """Return the machines that Azure bills, by VM size and location: those with hardware, thus not deallocated, evicted or failed ones."""
    location = str(resource.body.get("location"))
    if is_scale_set(resource):
        state = state_of(resource)
        return Counter((state.models[one.model].size, location) for one in state.living() if one.host)
    if resource.id.type.lower() == MACHINE and machine_of(resource).host:
        return Counter([(str(resource.body["properties"]["hardwareProfile"]["vmSize"]), location)])
    return Counter()


def outdated_count(resource: Resource) -> int:
    """Return the number of machines of a scale set that keep an older model; those of a rolling upgrade in progress do not count."""
    state = state_of(resource)
    older = [one for one in state.living() if one.model != state.model]
    return sum(one.protect_from_actions for one in older) if _is_rolling(state) else len(older)


def upgrading_count(resource: Resource) -> int:
    """Return the number of machines of a scale set that a rolling upgrade in progress updates now or later."""
    state = state_of(resource)
    if state.rolling is None or not _is_rolling(state):
        return 0
    left = {*state.rolling["batch"], *state.rolling["pending"]}
    return sum(str(one.id) in left and not one.protect_from_actions for one in state.living())


def _is_rolling(state: SetState) -> bool:
    return state.rolling is not None and bool(state.rolling["running"])


def requested_count(resource: Resource) -> int:
    """Return the capacity of a scale set."""
    return capacity_of_body(resource.body)


def capacity_of_body(body: Json) -> int:
    """Return the capacity in the body of a scale set."""
    return int((body.get("sku") or {}).get("capacity") or 0)


def scale_set_id(cluster: ClusterPlan, name: str) -> str:
    """Return the Azure resource id of a cluster's scale set."""
    return naming.resource_id(cluster.subscription, cluster.resource_group, "Microsoft.Compute", "virtualMachineScaleSets", name)


def scale_sets(cluster: ClusterPlan) -> Iterator[tuple[str, int, int]]:
    """Yield name, machines and addresses per machine of each planned scale set."""
    yield cluster.api_servers.name, cluster.api_servers.count, 1
    for pool in cluster.pools:
        yield from ((one.name, one.capacity, pool.addresses_per_machine) for one in pool.scale_sets)
