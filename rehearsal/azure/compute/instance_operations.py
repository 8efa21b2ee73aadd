"""Operations on instances: one task per instance; an operation ends with its last task."""

from __future__ import annotations

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import machine
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.machine import CREATING, DELETING, provisioning_error, slowness
from rehearsal.azure.compute.os_images import exact_version
from rehearsal.azure.compute.scaling import release_quota, remove_instance, site_of, take_quota
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Operation, Resource

DONE, MODEL_DONE, ACTION_PROCESSED, BATCH_DONE, REPLACE = "instance_done", "model_done", "action_taken", "batch_done", "replace"
"""Events of a scale set: a task on an instance is done; a PUT's model, or an action, was processed; a batch of a rolling upgrade is
done; a removed machine is due for replacement.
"""
MAX_DETAILS = 50
"""Failures that an error lists separately."""


def begin_action(cloud: Cloud, resource: Resource, name: str) -> Operation:
    """Start an operation on instances beside the scale set's PUT or DELETE."""
    state_of(resource).active += 1
    return cloud.begin_operation(resource.key, name, resource.location)


def begin_task(cloud: Cloud, resource: Resource, operation: Operation, one: Instance, task: str) -> None:
    """Start a task on an instance for an operation, which waits for it; a running task of the instance is pre-empted."""
    preempt(cloud, resource, one)
    operation.waits_for += 1
    _run(cloud, resource, operation.id, one, task)


def _run(cloud: Cloud, resource: Resource, operation: str, one: Instance, task: str) -> None:
    state = state_of(resource)
    state.turns += 1
    site = site_of(resource, one)
    seconds = machine.begin(cloud, one, task, operation, state.turns, site)
    if task == "create":
        seconds *= slowness(cloud, site, one.tasks)
    cloud.events.after(seconds, resource.key, DONE, str(one.id), state.turns)


def wait_for_notice(operation: Operation, one: Instance) -> None:
    """Let an operation wait for an instance whose delete starts with a scheduled event."""
    operation.waits_for += 1
    one.doing, one.task, one.state = operation.id, "delete", DELETING


def begin_announced_delete(cloud: Cloud, resource: Resource, one: Instance) -> None:
    """Start the delete that was announced to an instance."""
    one.notice = ""
    _run(cloud, resource, one.doing, one, "delete")


def preempt(cloud: Cloud, resource: Resource, one: Instance) -> None:
    """Pre-empt the task of an instance: its operation fails for this instance."""
    if not one.doing:
        return
    operation = cloud.operations[one.doing]
    one.doing = one.task = ""
    task_ended(cloud, resource, operation, one, preempted())


def preempted() -> AzureError:
    """Return the error of an operation that a newer one replaced."""
    return AzureError(409, "OperationPreempted", "Operation execution has been preempted by a more recent operation.")


def task_ended(cloud: Cloud, resource: Resource, operation: Operation, one: Instance | None, error: AzureError | None) -> None:
    """End one of the tasks that an operation waits for, with or without an error."""
    if not operation.running:
        return
    operation.waits_for -= 1
    about: Json = {"target": str(one.id)} if one is not None else {}
    if one is not None and in_batch(resource, operation, one):
        if error is not None and not one.going:
            _running_upgrade(resource, operation)["failed"][str(one.id)] = error.body()
        _end_batch_task(cloud, resource, operation)
    elif error is not None:
        operation.failures.append({**error.body(), **about})
    if operation.waits_for == 0:
        conclude(cloud, resource, operation)


def _running_upgrade(resource: Resource, operation: Operation) -> Json:
    """Return the state of the rolling upgrade that runs as part of an operation; empty without one."""
    rolling = state_of(resource).rolling
    return rolling if rolling is not None and rolling["running"] and rolling["operation"] == operation.id else {}


def in_batch(resource: Resource, operation: Operation, one: Instance) -> bool:
    """Return whether an instance is in the present batch of an operation's rolling upgrade."""
    return str(one.id) in _running_upgrade(resource, operation).get("batch", ())


def _end_batch_task(cloud: Cloud, resource: Resource, operation: Operation) -> None:
    """Plan the next step of a rolling upgrade after the last task of its batch."""
    rolling, instances = _running_upgrade(resource, operation), state_of(resource).instances
    if not any(number in instances and instances[number].doing == operation.id for number in rolling["batch"]):
        rolling["step"] += 1
        cloud.events.after(0.0, resource.key, BATCH_DONE, operation.id, rolling["step"])


def conclude(cloud: Cloud, resource: Resource, operation: Operation) -> None:
    """End an operation that waits for no more tasks, unless a rolling upgrade still runs as part of it."""
    state = state_of(resource)
    if _running_upgrade(resource, operation):
        return
    failures = operation.failures
    if operation.name == "put":
        if len(state.counted()) >= int(resource.body["sku"]["capacity"]):
            failures = [one for one in failures if not one.get("spare")]
    elif operation.name != "delete":
        state.active -= 1
    cloud.finish_operation(operation, error_of(failures))


def supersede(cloud: Cloud, operation: Operation | None) -> None:
    """End an operation of the whole set for a newer one, which continues its tasks."""
    if operation is not None and operation.running:
        operation.waits_for = 0
        cloud.finish_operation(operation, preempted())


def error_of(failures: list[Json]) -> AzureError | None:
    """Return the error of an operation's failures: the first one's code, and each as a detail."""
    if not failures:
        return None
    first = failures[0]
    details = tuple(AzureError(409, one["code"], one["message"], target=one.get("target")) for one in failures[:MAX_DETAILS])
    if len(failures) == 1:
        return AzureError(409, first["code"], first["message"], target=first.get("target"))
    message = f"{first['message']} ({len(failures)} instances failed.)"
    return AzureError(409, first["code"], message, details=details)


def end_task(cloud: Cloud, resource: Resource, number: str, turn: int) -> None:
    """End a task: apply its effect to the instance, and report it to the operation."""
    one = state_of(resource).instances.get(number)
    if one is None or one.turn != turn or not one.doing:
        return
    operation = cloud.operations[one.doing]
    if one.task == "delete":
        remove_instance(cloud, resource, one)
        if one.owes:
            cloud.events.after(0.0, resource.key, REPLACE, operation.id, one.repairs)
        else:
            task_ended(cloud, resource, operation, one, None)
        return
    task = one.task
    error = machine.end(cloud, one, site_of(resource, one))
    if task == "create":
        _created(cloud, resource, operation, one, error)
        return
    if "os" in machine.TASKS[task].wipes and error is None:
        _replaced_os_disk(cloud, resource, one)
    if machine.TASKS[task].boots:
        one.health = ""
    task_ended(cloud, resource, operation, one, error)


def _replaced_os_disk(cloud: Cloud, resource: Resource, one: Instance) -> None:
    """Record the model and the image version of a new OS disk."""
    one.os_model = one.model
    one.image = exact_version(cloud, state_of(resource).models[one.model].image, resource.location)


def _created(cloud: Cloud, resource: Resource, operation: Operation, one: Instance, error: AzureError | None) -> None:
    """End a creation. A machine without hardware is removed, as is a failed one while overprovisioned ones are being created."""
    state = state_of(resource)
    if error is None:
        _replaced_os_disk(cloud, resource, one)
        error = provisioning_error(cloud, one, site_of(resource, one))
    if error is not None and (state.spare or not one.host):
        transfer_charge(cloud, resource, one)
        remove_instance(cloud, resource, one)
        if state.spare:
            operation.failures.append({**error.body(), "target": str(one.id), "spare": True})
            error = None
    if state.spare:
        delete_surplus(cloud, resource)
    task_ended(cloud, resource, operation, one, error)


def delete_surplus(cloud: Cloud, resource: Resource) -> None:
    """Delete the surplus machines of an overprovisioned set, after as many as its capacity are up."""
    state = state_of(resource)
    up = sum(1 for one in state.instances.values() if not one.going and one.state != CREATING)
    if up < len(state.counted()):
        return
    for one in state.living():
        if one.state == CREATING and one.doing:
            transfer_charge(cloud, resource, one)
    for one in state.living():
        if not one.charged:
            operation = cloud.operations[one.doing or state.put]
            if one.doing:
                _run(cloud, resource, operation.id, one, "delete")
            else:
                begin_task(cloud, resource, operation, one, "delete")
    state.spare = False


def transfer_charge(cloud: Cloud, resource: Resource, one: Instance) -> None:
    """Move the quota charge of a machine that is removed to one that overprovisioning created without a charge."""
    state = state_of(resource)
    heirs = [other for other in state.instances.values() if not other.charged and not other.going] if one.charged and state.spare else []
    for other in sorted(heirs, key=lambda heir: heir.state == CREATING):
        if other.state == CREATING and one.state == CREATING:
            return
        if move_charge(cloud, resource, one, other):
            return


def move_charge(cloud: Cloud, resource: Resource, giver: Instance, taker: Instance) -> bool:
    """Move the quota charge from one machine to another; return False, without a change, if the quota is not enough."""
    models = state_of(resource).models
    release_quota(cloud, resource, models[giver.model], (giver,))
    giver.charged, taker.charged = False, True
    try:
        take_quota(cloud, resource, models[taker.model], (taker,))
    except AzureError:
        giver.charged, taker.charged = True, False
        take_quota(cloud, resource, models[giver.model], (giver,))
        return False
    return True
