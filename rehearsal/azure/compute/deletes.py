"""Deletes of instances: the capacity decreases at once, and a machine with a terminate notice gets the notice first."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import scale_set_rules
from rehearsal.azure.compute.instance_operations import (
    begin_announced_delete,
    begin_task,
    delete_surplus,
    move_charge,
    preempt,
    task_ended,
    wait_for_notice,
)
from rehearsal.azure.compute.instances import Instance, Model, state_of
from rehearsal.azure.compute.machine import CREATING, RUNNING
from rehearsal.azure.resource import Operation, Resource
from rehearsal.azure.scheduled_events import scheduled_events_of


def lower_capacity(cloud: Cloud, resource: Resource, going: Collection[Instance]) -> None:
    """Subtract an explicit delete from sku.capacity, in the body of a GET and in the base of the next PATCH.

    https://github.com/Azure/aks-engine/blob/f634f52ff4f6/pkg/operations/kubernetesupgrade/upgrader.go (it restores the count each
    time)
    """
    state = state_of(resource)
    for one in going:
        if not one.charged:
            # A surplus machine is deleted instead of a counted one: move the charge of one that is still being created.
            making = next((other for other in state.living() if other.charged and other.state == CREATING), None)
            if making is not None:
                move_charge(cloud, resource, making, one)
    lower = max(0, int(resource.body["sku"]["capacity"]) - len(going))
    resource.body = {**resource.body, "sku": {**resource.body["sku"], "capacity": lower}}
    resource.sent = {**resource.sent, "sku": {**resource.sent["sku"], "capacity": lower}}
    resource.version += 1


def delete_instances(cloud: Cloud, resource: Resource, operation: Operation, machines: Iterable[Instance]) -> None:
    """Start to delete instances for an operation, after the terminate notice if their model has one.

    Every instance gets its own notice, and all instances of one call the same NotBefore:
    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-terminate-notification
    """
    for one in list(machines):
        notice = notice_seconds(state_of(resource).models[one.model])
        if notice is None or one.power != RUNNING:
            begin_task(cloud, resource, operation, one, "delete")
            continue
        preempt(cloud, resource, one)
        wait_for_notice(operation, one)
        one.notice = scheduled_events_of(cloud).announce(
            cloud, key=resource.key, instances=(str(one.id),), event_type="Terminate", not_before=cloud.now + notice
        )
    if state_of(resource).spare:
        delete_surplus(cloud, resource)


def notice_seconds(model: Model) -> float | None:
    """Return the seconds of notice before a delete, None if the model has none; Spot machines have none."""
    settings = (model.profile.get("scheduledEventsProfile") or {}).get("terminateNotificationProfile") or {}
    if not settings.get("enable") or model.spot:
        return None
    return scale_set_rules.span_seconds(settings.get("notBeforeTimeout", "PT5M"), "notBeforeTimeout")


def terminate(cloud: Cloud, resource: Resource, event_id: str, numbers: Iterable[str]) -> None:
    """Delete the instances that wait for a scheduled event, which was approved or is due."""
    for number in numbers:
        one = state_of(resource).instances.get(number)
        if one is not None and one.notice == event_id and one.going:
            begin_announced_delete(cloud, resource, one)


def delete_set(cloud: Cloud, resource: Resource, operation: Operation) -> None:
    """Start to delete a whole scale set: other operations end, and running deletes continue."""
    state = state_of(resource)
    state.spare = False
    going = [one for one in state.instances.values() if one.going]
    for one in going:
        earlier, one.doing, one.owes = cloud.operations[one.doing], operation.id, False
        operation.waits_for += 1
        task_ended(cloud, resource, earlier, one, None)
    delete_instances(cloud, resource, operation, state.living())
