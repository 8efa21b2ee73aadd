"""Counts the machines behind a resource: those of a scale set, those of them that run, and those that do not have its present model."""

from __future__ import annotations

from rehearsal.azure.compute.instances import state_of
from rehearsal.azure.compute.machine import SUCCEEDED
from rehearsal.azure.resource import Json, Resource

SCALE_SET = "microsoft.compute/virtualmachinescalesets"
MACHINE = "microsoft.compute/virtualmachines"


def is_scale_set(resource: Resource) -> bool:
    return resource.id.type.lower() == SCALE_SET


def machines(resource: Resource) -> int:
    """Machines that would go with a resource; those that are being deleted already do not count."""
    if is_scale_set(resource):
        return len(state_of(resource).living())
    return int(resource.id.type.lower() == MACHINE)


def provisioned(resource: Resource) -> int:
    """Machines of a scale set that Azure has made, not counting those for which it failed."""
    return sum(one.state == SUCCEEDED for one in state_of(resource).living())


def behind(resource: Resource) -> int:
    """Machines of a scale set that do not have its present model."""
    state = state_of(resource)
    return sum(one.model != state.model for one in state.living())


def planned(resource: Resource) -> int:
    """Capacity of a scale set."""
    return capacity(resource.body)


def capacity(body: Json) -> int:
    """Machines that the body of a scale set asks for."""
    return int((body.get("sku") or {}).get("capacity") or 0)
