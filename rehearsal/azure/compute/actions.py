"""POST actions of scale sets and instances, and the selection of the instances that a request names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import rolling_upgrades, upgrades
from rehearsal.azure.compute.deletes import delete_instances, lower_capacity
from rehearsal.azure.compute.disks import deallocation_refused
from rehearsal.azure.compute.health import source_of
from rehearsal.azure.compute.instance_operations import ACTION_PROCESSED, begin_action, begin_task
from rehearsal.azure.compute.instances import Instance, name_of, state_of
from rehearsal.azure.compute.machine import TASKS, busy_refusal, power_refusal
from rehearsal.azure.compute.os_images import older_images
from rehearsal.azure.compute.platform_events import simulate_eviction
from rehearsal.azure.compute.repairs import set_service_state
from rehearsal.azure.compute.scale_set_rules import rolling_needs_health
from rehearsal.azure.concurrent_operations import DELETE, LISTED, OTHERS, REQUEST, ROLLING, SET_DELETE, SET_REQUEST, refusal
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Operation, Request, Resource, Response
from rehearsal.azure.resource_type import Action
from rehearsal.azure.scenario import scenario_of

EVERY = "*"


def named_instances(resource: Resource, request: Request, *, required: bool) -> list[Instance] | None:
    """Return the instances in a body's instanceIds, None for no ids or every one ("*"); AzureError for an invalid id."""
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
            raise refusal(DELETE, LISTED, "instanceIds", name=number)
        found.append(one)
    return found


def check_not_being_deleted(resource: Resource, deleting: bool, words: str) -> None:
    """Refuse a request for a scale set that is being deleted."""
    if deleting:
        raise refusal(SET_DELETE, SET_REQUEST, resource.id.name, words=words, name=resource.id.name)


def selected_instances(resource: Resource, request: Request, task: str, words: str, *, required: bool = False) -> list[Instance]:
    """Return the instances that an action of the scale set works on.

    An action on all instances skips those that are protected from scale set actions. An action that names a protected instance is
    refused, as is one that names a busy instance or one in the wrong power state. Azure publishes that it skips protected instances,
    but not the refusal; this refusal is assumed.
    """
    requested = named_instances(resource, request, required=required)
    everything = requested is None
    living = state_of(resource).living() if requested is None else requested
    found = []
    for one in living:
        error = action_refusal(resource, one, task, words)
        if error is not None and not (everything and (one.protect_from_actions or power_refusal(one, "", task))):
            raise error
        if error is None:
            found.append(one)
    return found


def action_refusal(resource: Resource, one: Instance, task: str, words: str) -> AzureError | None:
    """Return why an action of the scale set is not allowed on an instance; None if it is allowed."""
    name = name_of(resource, one)
    if one.protect_from_actions:
        message = (
            f"Operation '{words}' is not allowed on VM '{name}' since it is protected from scale set actions; set its protectionPolicy, or "
            "ask the instance itself."
        )
        return conflict("OperationNotAllowed", message, name)
    return state_refusal(resource, one, task, words)


def state_refusal(resource: Resource, one: Instance, task: str, words: str) -> AzureError | None:
    """Return why an instance's present state does not allow a task; None if it does."""
    name = name_of(resource, one)
    if task == "deallocate" and state_of(resource).models[one.model].ephemeral:
        return deallocation_refused(name)
    return busy_refusal(one, name, words) or power_refusal(one, name, task)


Begin = Callable[[Cloud, Resource, Operation, Iterable[Instance]], None]


def _being_deleted(cloud: Cloud, resource: Resource) -> bool:
    return bool(resource.operation) and cloud.operations[resource.operation].name == "delete"


def check_concurrent(cloud: Cloud, resource: Resource) -> None:
    """Refuse the scenario's share of requests while Azure works on instances of the scale set.

    Azure refuses requests that arrive while it accepts another one. The model accepts each request at once, so the scenario decides.
    """
    rate = scenario_of(cloud).concurrent_requests
    if rate and state_of(resource).active and cloud.draw("concurrent", resource.key, cloud.relative(cloud.now)) < rate:
        raise refusal(OTHERS, REQUEST, resource.id.name)


def _start(cloud: Cloud, resource: Resource, name: str, machines: list[Instance], begin: Begin) -> Response:
    """Start an operation on instances; an operation without instances ends at once."""
    operation = begin_action(cloud, resource, name)
    operation.waits_for = 1
    begin(cloud, resource, operation, machines)
    cloud.events.after(0.0, resource.key, ACTION_PROCESSED, operation.id)
    return Response(202, operation=operation)


def _tasks(task: str) -> Begin:
    def begin(cloud: Cloud, resource: Resource, operation: Operation, machines: Iterable[Instance]) -> None:
        for one in list(machines):
            begin_task(cloud, resource, operation, one, task)

    return begin


def _of_set(name: str) -> Action:
    """Return an action of the scale set on the instances that a request names, or on all."""

    def act(cloud: Cloud, resource: Resource, request: Request) -> Response:
        task = task_of_action(name, request)
        check_not_being_deleted(resource, _being_deleted(cloud, resource), TASKS[task].words)
        check_concurrent(cloud, resource)
        machines = selected_instances(resource, request, task, TASKS[task].words)
        return _start(cloud, resource, name, machines, _tasks(task))

    return act


def task_of_action(name: str, request: Request) -> str:
    """Return the task of an action: a reimage with tempDisk also replaces the local disks."""
    return "reimagetemp" if name == "reimage" and (request.body or {}).get("tempDisk") else name


def _delete(cloud: Cloud, resource: Resource, request: Request) -> Response:
    """Delete instances by id, also protected ones:
    https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/delete-instances
    """
    check_not_being_deleted(resource, _being_deleted(cloud, resource), "Delete VM")
    check_concurrent(cloud, resource)
    machines = named_instances(resource, request, required=True)
    chosen = state_of(resource).living() if machines is None else machines
    lower_capacity(cloud, resource, chosen)
    return _start(cloud, resource, "deleteInstances", chosen, delete_instances)


def _upgrade(cloud: Cloud, resource: Resource, request: Request) -> Response:
    """Update instances to the latest model: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/update-instances"""
    check_not_being_deleted(resource, _being_deleted(cloud, resource), "Update VM")
    check_concurrent(cloud, resource)
    machines = selected_instances(resource, request, "update", "Update VM", required=True)
    return _start(cloud, resource, "manualUpgrade", machines, upgrades.bring_to_latest)


def check_not_rolling(resource: Resource, words: str, request: str) -> None:
    """Refuse a request for a scale set of which a rolling upgrade runs."""
    if rolling_upgrades.is_rolling(resource):
        raise refusal(ROLLING, request, resource.id.name, words=words, name=resource.id.name)


def _rolling_upgrade(name: str) -> Action:
    """Return an action that starts a rolling upgrade: of the instances behind the model, and with osRollingUpgrade of those with an older
    image. Azure has a newer image only behind a reference to the latest version; versions of extensions are not modelled.
    """

    def act(cloud: Cloud, resource: Resource, _request: Request) -> Response:
        words = f"Start {name}"
        check_not_being_deleted(resource, _being_deleted(cloud, resource), words)
        check_not_rolling(resource, words, ROLLING)
        if source_of(state_of(resource).models[state_of(resource).model].profile) is None:
            raise rolling_needs_health()
        older = older_images(cloud, resource) if name == "osRollingUpgrade" else ()
        return Response(202, operation=rolling_upgrades.start_upgrade(cloud, resource, name, older))

    return act


def _reapply(cloud: Cloud, resource: Resource, _request: Request) -> Response:
    """Apply the network profile to the set again, which changes no machine here:
    https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/reapply
    """
    check_not_being_deleted(resource, _being_deleted(cloud, resource), "Reapply VM Scale Set")
    return _start(cloud, resource, "reapply", [], _tasks("update"))


def _to_several_placement_groups(cloud: Cloud, resource: Resource, _request: Request) -> Response:
    """Set singlePlacementGroup to false, which cannot be undone, despite the action's name:
    https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/convert-to-single-placement-group
    """
    check_not_being_deleted(resource, _being_deleted(cloud, resource), "Convert to single placement group")
    for properties in (resource.properties, resource.sent["properties"]):
        properties["singlePlacementGroup"] = False
    resource.changed = cloud.now
    resource.version += 1
    return Response(200)


def act_on_instance(cloud: Cloud, resource: Resource, one: Instance, request: Request) -> Response:
    """Start an action of one instance, which protection does not block."""
    name = request.action.lower()
    if name == "simulateeviction":
        return simulate_eviction(cloud, resource, one)
    task = task_of_action(name, request)
    check_not_being_deleted(resource, _being_deleted(cloud, resource), TASKS[task].words)
    check_concurrent(cloud, resource)
    error = state_refusal(resource, one, task, TASKS[task].words)
    if error is not None:
        raise error
    return _start(cloud, resource, name, [one], _tasks(task))


def delete_instance(cloud: Cloud, resource: Resource, one: Instance) -> Response:
    """Delete one instance, or return the running delete."""
    if one.going:
        return Response(202, operation=cloud.operations[one.doing])
    check_concurrent(cloud, resource)
    lower_capacity(cloud, resource, [one])
    return _start(cloud, resource, "deleteInstance", [one], delete_instances)


INSTANCE_ACTIONS = ("start", "restart", "poweroff", "deallocate", "redeploy", "reimage", "reimageall")
SET_ACTIONS: Mapping[str, Action] = {
    **{name: _of_set(name) for name in INSTANCE_ACTIONS},
    "converttosingleplacementgroup": _to_several_placement_groups,
    "delete": _delete,
    "manualupgrade": _upgrade,
    "osrollingupgrade": _rolling_upgrade("osRollingUpgrade"),
    "extensionrollingupgrade": _rolling_upgrade("extensionRollingUpgrade"),
    "reapply": _reapply,
    "setorchestrationservicestate": set_service_state,
}
