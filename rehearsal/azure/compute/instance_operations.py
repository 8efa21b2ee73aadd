"""Decides how the work of an operation on instances begins and ends: one task an instance, an end when the last has ended."""

from __future__ import annotations

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import machine
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.machine import CREATING, DELETING, provisioning_error, slowness
from rehearsal.azure.compute.scaling import charge, discharge, remove, site_of
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Operation, Resource

DONE, MODEL_DONE, TAKEN, BATCH_DONE, REPLACE = "instance_done", "model_done", "action_taken", "batch_done", "replace"
"""Events of a scale set: a task on an instance is over; a PUT's model, or an action, is taken up in whole; a batch of a rolling upgrade is
over; a removed machine is to be replaced."""
MOST_DETAILS = 50
"""Failures that an error tells one by one."""


def begin_action(cloud: Cloud, resource: Resource, name: str) -> Operation:
    """An operation on instances, beside the one that holds the set."""
    state_of(resource).active += 1
    return cloud.begin(resource.key, name, resource.location)


def begin_task(cloud: Cloud, resource: Resource, operation: Operation, one: Instance, task: str) -> None:
    """Begin a task on an instance for an operation, which waits for it; work that goes on there is pre-empted."""
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
    """Count an instance among those that an operation waits for, which a scheduled event will begin to work on."""
    operation.waits_for += 1
    one.doing, one.task, one.state = operation.id, "delete", DELETING


def begin_noticed(cloud: Cloud, resource: Resource, one: Instance) -> None:
    """Begin the delete that an instance was announced."""
    one.notice = ""
    _run(cloud, resource, one.doing, one, "delete")


def preempt(cloud: Cloud, resource: Resource, one: Instance) -> None:
    """End what works on an instance: that operation fails for it."""
    if not one.doing:
        return
    operation = cloud.operations[one.doing]
    one.doing = one.task = ""
    give_up(cloud, resource, operation, one, preempted())


def preempted() -> AzureError:
    """The end of an operation that another one overtook."""
    return AzureError(409, "OperationPreempted", "Operation execution has been preempted by a more recent operation.")


def give_up(cloud: Cloud, resource: Resource, operation: Operation, one: Instance | None, error: AzureError | None) -> None:
    """One of the things that an operation waits for has ended, with an error or without."""
    if not operation.running:
        return
    operation.waits_for -= 1
    if error is not None:
        about: Json = {"target": str(one.id)} if one is not None else {}
        operation.failures.append({**error.body(), **about})
    if operation.waits_for == 0:
        conclude(cloud, resource, operation)


def conclude(cloud: Cloud, resource: Resource, operation: Operation) -> None:
    """End an operation that waits for nothing more; a rolling upgrade goes on with its next batch instead."""
    state = state_of(resource)
    if state.rolling is not None and state.rolling["operation"] == operation.id and state.rolling["running"]:
        cloud.events.after(0.0, resource.key, BATCH_DONE, operation.id)
        return
    failures = operation.failures
    if operation.name == "put":
        if len(state.counted()) >= int(resource.body["sku"]["capacity"]):
            failures = [one for one in failures if not one.get("spare")]
    elif operation.name != "delete":
        state.active -= 1
    cloud.finish(operation, error_of(failures))


def overtake(cloud: Cloud, operation: Operation | None) -> None:
    """End an operation of the whole set for a newer one; the instances that it works on are the newer one's business."""
    if operation is not None and operation.running:
        operation.waits_for = 0
        cloud.finish(operation, preempted())


def error_of(failures: list[Json]) -> AzureError | None:
    """What an operation's failures come to: the first one's code, and each as a detail."""
    if not failures:
        return None
    first = failures[0]
    details = tuple(AzureError(409, one["code"], one["message"], target=one.get("target")) for one in failures[:MOST_DETAILS])
    if len(failures) == 1:
        return AzureError(409, first["code"], first["message"], target=first.get("target"))
    message = f"{first['message']} ({len(failures)} instances failed.)"
    return AzureError(409, first["code"], message, details=details)


def done(cloud: Cloud, resource: Resource, number: str, turn: int) -> None:
    """A task's time is over: what it did to the instance, and to the operation."""
    one = state_of(resource).instances.get(number)
    if one is None or one.turn != turn or not one.doing:
        return
    operation = cloud.operations[one.doing]
    if one.task == "delete":
        remove(cloud, resource, one)
        if one.owes:
            cloud.events.after(0.0, resource.key, REPLACE, operation.id, one.repairs)
        else:
            give_up(cloud, resource, operation, one, None)
        return
    task = one.task
    error = machine.end(cloud, one, site_of(resource, one))
    if task == "create":
        _created(cloud, resource, operation, one, error)
        return
    if "os" in machine.TASKS[task].wipes and error is None:
        one.os_model = one.model
    if machine.TASKS[task].boots:
        one.health = ""
    give_up(cloud, resource, operation, one, error)


def _created(cloud: Cloud, resource: Resource, operation: Operation, one: Instance, error: AzureError | None) -> None:
    """A machine without hardware is none: it goes, and its addresses with it. So does one that failed while others are made to spare."""
    state = state_of(resource)
    if error is None:
        error = provisioning_error(cloud, one, site_of(resource, one))
    if error is not None and (state.spare or not one.host):
        hand_on_charge(cloud, resource, one)
        remove(cloud, resource, one)
        if state.spare:
            operation.failures.append({**error.body(), "target": str(one.id), "spare": True})
            error = None
    if state.spare:
        shed(cloud, resource)
    give_up(cloud, resource, operation, one, error)


def shed(cloud: Cloud, resource: Resource) -> None:
    """Where as many machines of an overprovisioned set are up as it is to have, let the others go; which ones count is settled then."""
    state = state_of(resource)
    up = sum(1 for one in state.instances.values() if not one.going and one.state != CREATING)
    if up < len(state.counted()):
        return
    for one in state.living():
        if one.state == CREATING and one.doing:
            hand_on_charge(cloud, resource, one)
    for one in state.living():
        if not one.charged:
            operation = cloud.operations[one.doing or state.put]
            if one.doing:
                _run(cloud, resource, operation.id, one, "delete")
            else:
                begin_task(cloud, resource, operation, one, "delete")
    state.spare = False


def hand_on_charge(cloud: Cloud, resource: Resource, one: Instance) -> None:
    """Let a machine that stays count against quota instead of one that goes, where overprovisioning made one that does not count."""
    state = state_of(resource)
    heirs = [other for other in state.instances.values() if not other.charged and not other.going] if one.charged and state.spare else []
    for other in sorted(heirs, key=lambda heir: heir.state == CREATING):
        if other.state == CREATING and one.state == CREATING:
            return
        if pass_charge(cloud, resource, one, other):
            return


def pass_charge(cloud: Cloud, resource: Resource, giver: Instance, taker: Instance) -> bool:
    """Let one machine count against quota instead of another; False where there is not enough for it, and then nothing has changed."""
    models = state_of(resource).models
    discharge(cloud, resource, models[giver.model], (giver,))
    giver.charged, taker.charged = False, True
    try:
        charge(cloud, resource, models[taker.model], (taker,))
    except AzureError:
        giver.charged, taker.charged = True, False
        charge(cloud, resource, models[giver.model], (giver,))
        return False
    return True
