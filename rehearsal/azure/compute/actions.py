"""Decides what the POST actions of a scale set and of its instances do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rehearsal.azure.compute import upgrades
from rehearsal.azure.compute.deletes import delete_all, lower_capacity
from rehearsal.azure.compute.evictions import simulate
from rehearsal.azure.compute.instance_operations import TAKEN, begin_action, begin_task
from rehearsal.azure.compute.instance_selection import blocked, check_not_leaving, named, touchable
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.machine import TASKS
from rehearsal.azure.compute.repairs import set_service_state
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Answer, Operation, Request, Resource

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud
    from rehearsal.azure.resource_type import Action

Begin = Callable[["Cloud", Resource, Operation, Iterable[Instance]], None]


def _leaving(cloud: Cloud, resource: Resource) -> bool:
    return bool(resource.operation) and cloud.operations[resource.operation].name == "delete"


def _begun(cloud: Cloud, resource: Resource, name: str, machines: list[Instance], begin: Begin) -> Answer:
    """Begin an operation on instances; one without any ends at once."""
    operation = begin_action(cloud, resource, name)
    operation.waits_for = 1
    begin(cloud, resource, operation, machines)
    cloud.events.after(0.0, resource.key, TAKEN, operation.id)
    return Answer(202, operation=operation)


def _tasks(task: str) -> Begin:
    def begin(cloud: Cloud, resource: Resource, operation: Operation, machines: Iterable[Instance]) -> None:
        for one in list(machines):
            begin_task(cloud, resource, operation, one, task)

    return begin


def _of_set(name: str) -> Action:
    """An action of the set on the instances that it names, or on all."""

    def act(cloud: Cloud, resource: Resource, request: Request) -> Answer:
        task = wanted(name, request)
        check_not_leaving(resource, _leaving(cloud, resource), TASKS[task].words)
        machines = touchable(resource, request, task, TASKS[task].words)
        return _begun(cloud, resource, name, machines, _tasks(task))

    return act


def wanted(name: str, request: Request) -> str:
    """The task of an action: a reimage takes the local disks too where its body says so."""
    return "reimagetemp" if name == "reimage" and (request.body or {}).get("tempDisk") else name


def _delete(cloud: Cloud, resource: Resource, request: Request) -> Answer:
    """Delete instances by id, whatever protects them: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/delete-instances"""
    check_not_leaving(resource, _leaving(cloud, resource), "Delete VM")
    machines = named(resource, request, required=True)
    chosen = state_of(resource).living() if machines is None else machines
    lower_capacity(cloud, resource, chosen)
    return _begun(cloud, resource, "deleteInstances", chosen, delete_all)


def _upgrade(cloud: Cloud, resource: Resource, request: Request) -> Answer:
    """Bring instances to the latest model: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/update-instances"""
    check_not_leaving(resource, _leaving(cloud, resource), "Update VM")
    machines = touchable(resource, request, "update", "Update VM", required=True)
    return _begun(cloud, resource, "manualUpgrade", machines, upgrades.bring_to_latest)


def act_on_instance(cloud: Cloud, resource: Resource, one: Instance, request: Request) -> Answer:
    """An action of one instance, which no protection blocks; AzureError for one that it has not."""
    name = request.action.lower()
    if name == "simulateeviction":
        return simulate(cloud, resource, one)
    if name not in INSTANCE_ACTIONS:
        known = ", ".join(sorted((*INSTANCE_ACTIONS, "simulateeviction")))
        raise AzureError(400, "InvalidRequestUri", f"'{request.action}' is no action of an instance; known: {known}", target=request.action)
    task = wanted(name, request)
    check_not_leaving(resource, _leaving(cloud, resource), TASKS[task].words)
    why = blocked(resource, one, task, TASKS[task].words)
    if why is not None:
        raise why
    return _begun(cloud, resource, name, [one], _tasks(task))


def delete_instance(cloud: Cloud, resource: Resource, one: Instance) -> Answer:
    """Delete one instance, or tell of the delete that goes on."""
    if one.going:
        return Answer(202, operation=cloud.operations[one.doing])
    lower_capacity(cloud, resource, [one])
    return _begun(cloud, resource, "deleteInstance", [one], delete_all)


INSTANCE_ACTIONS = ("start", "restart", "poweroff", "deallocate", "redeploy", "reimage", "reimageall")
SET_ACTIONS: Mapping[str, Action] = {
    **{name: _of_set(name) for name in INSTANCE_ACTIONS},
    "delete": _delete,
    "manualupgrade": _upgrade,
    "setorchestrationservicestate": set_service_state,
}
