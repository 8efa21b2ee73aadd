"""Decides which instances a request on a scale set is about, and whether they may be touched."""

from __future__ import annotations

from collections.abc import Sequence

from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.machine import power_refusal, refusal
from rehearsal.azure.compute.os_disks import deallocation_refused
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Request, Resource

EVERY = "*"


def name_of(resource: Resource, one: Instance) -> str:
    """Name of an instance as Azure tells it."""
    return f"{resource.id.name}_{one.id}"


def named(resource: Resource, request: Request, *, required: bool) -> list[Instance] | None:
    """The instances that a body's instanceIds name, None where it names none or every one ("*"); AzureError for an id that is none.

    An instance that is being deleted is no active one: https://github.com/kubernetes-sigs/cloud-provider-azure/issues/2356
    """
    ids = (request.body or {}).get("instanceIds")
    if ids is None or ids == []:
        if required:
            raise invalid("Required parameter 'instanceIds' is missing (null).", "instanceIds")
        return None
    if not isinstance(ids, Sequence) or isinstance(ids, str) or not all(isinstance(one, str) for one in ids):
        raise invalid("The value of parameter 'instanceIds' is not a list of strings.", "instanceIds")
    if list(ids) == [EVERY]:
        return None
    instances = state_of(resource).instances
    found = []
    for number in dict.fromkeys(ids):
        one = instances.get(number)
        if one is None or one.going:
            message = f"The provided instanceId {number} is not an active Virtual Machine Scale Set VM instanceId."
            raise invalid(message, "instanceIds")
        found.append(one)
    return found


def check_not_leaving(resource: Resource, deleting: bool, words: str) -> None:
    """Refuse what is asked of a set that is being deleted."""
    if deleting:
        message = f"Operation '{words}' is not allowed on Virtual Machine Scale Set '{resource.id.name}' since it is marked for deletion."
        raise conflict("OperationNotAllowed", message, resource.id.name)


def touchable(resource: Resource, request: Request, task: str, words: str, *, required: bool = False) -> list[Instance]:
    """The instances that an action of the set works on.

    Of all instances those are left out that are protected from scale set actions; naming a protected one is refused, and so is one that
    is at work or in the wrong power state. Azure publishes that protected ones are not touched, not how it says so; this refusal is ours.
    """
    asked = named(resource, request, required=required)
    everything = asked is None
    living = state_of(resource).living() if asked is None else asked
    found = []
    for one in living:
        why = why_not(resource, one, task, words)
        if why is not None and not (everything and (one.protect_from_actions or power_refusal(one, "", task))):
            raise why
        if why is None:
            found.append(one)
    return found


def why_not(resource: Resource, one: Instance, task: str, words: str) -> AzureError | None:
    """Why an action of the set may not touch an instance; None where it may."""
    name = name_of(resource, one)
    if one.protect_from_actions:
        message = (
            f"Operation '{words}' is not allowed on VM '{name}' since it is protected from scale set actions; set its protectionPolicy, or "
            "ask the instance itself."
        )
        return conflict("OperationNotAllowed", message, name)
    return blocked(resource, one, task, words)


def blocked(resource: Resource, one: Instance, task: str, words: str) -> AzureError | None:
    """Why an instance's present state does not allow a task; None where it does."""
    name = name_of(resource, one)
    if task == "deallocate" and state_of(resource).models[one.model].ephemeral:
        return deallocation_refused(name)
    return refusal(one, name, words) or power_refusal(one, name, task)
