"""Changes of machines that Azure starts: Spot evictions, maintenance after a notice, and host failures."""

from __future__ import annotations

from collections.abc import Iterable

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.deletes import delete_instances, lower_capacity, terminate
from rehearsal.azure.compute.instance_operations import ACTION_PROCESSED, begin_action, begin_task
from rehearsal.azure.compute.instances import Instance, name_of, state_of
from rehearsal.azure.compute.machine import RUNNING
from rehearsal.azure.errors import conflict
from rehearsal.azure.resource import Resource, Response
from rehearsal.azure.scheduled_events import EventType, scheduled_events_of

PREEMPT_SECONDS = 30.0
"""Seconds of notice before an eviction: https://learn.microsoft.com/azure/virtual-machine-scale-sets/use-spot"""


def simulate_eviction(cloud: Cloud, resource: Resource, one: Instance) -> Response:
    """Evict one Spot machine on request: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/simulate-eviction"""
    if not state_of(resource).models[one.model].spot:
        message = f"Operation 'Simulate Eviction' is not allowed on VM '{name_of(resource, one)}' since it is not a Spot VM."
        raise conflict("OperationNotAllowed", message, name_of(resource, one))
    evict(cloud, resource, (str(one.id),))
    return Response(204)


def evict(cloud: Cloud, resource: Resource, numbers: Iterable[str]) -> None:
    """Announce the eviction of running Spot machines; other instances stay."""
    models = state_of(resource).models
    spot = [one for one in _running(resource, numbers) if models[one.model].spot]
    _announce(cloud, resource, spot, "Preempt", cloud.now + PREEMPT_SECONDS)


def maintain(cloud: Cloud, resource: Resource, kind: EventType, notice: float, numbers: Iterable[str]) -> None:
    """Announce a maintenance (Freeze, Reboot or Redeploy) to running machines, with a notice in seconds."""
    _announce(cloud, resource, _running(resource, numbers), kind, cloud.now + notice)


def fail_hosts(cloud: Cloud, resource: Resource, numbers: Iterable[str]) -> None:
    """Fail the hosts of machines: Azure moves the machines to other hosts without notice, and local disks are lost."""
    broken = _running(resource, numbers)
    if not broken:
        return
    operation = begin_action(cloud, resource, "hostFailure")
    for one in broken:
        begin_task(cloud, resource, operation, one, "recover")
    broken_ids = [str(one.id) for one in broken]
    scheduled_events_of(cloud).announce(cloud, key=resource.key, instances=broken_ids, event_type="Redeploy", not_before=cloud.now)


def start_announced_event(cloud: Cloud, resource: Resource, event_id: str, kind: str, numbers: Iterable[str]) -> None:
    """Start what was announced, because it was approved or is due."""
    numbers = list(numbers)
    if kind == "Terminate":
        terminate(cloud, resource, event_id, numbers)
        return
    instances = state_of(resource).instances
    met = [one for one in (instances.get(number) for number in numbers) if one is not None and one.notice == event_id and not one.going]
    for one in met:
        one.notice = ""
    if not met or kind == "Freeze":
        return
    if kind == "Preempt":
        _evict_now(cloud, resource, met)
        return
    operation = begin_action(cloud, resource, "maintenance")
    for one in met:
        begin_task(cloud, resource, operation, one, "redeploy" if kind == "Redeploy" else "reboot")


def _evict_now(cloud: Cloud, resource: Resource, met: list[Instance]) -> None:
    """Evict by each machine's policy: a deleted machine lowers the capacity, a deallocated one stays with its quota."""
    operation = begin_action(cloud, resource, "evict")
    operation.waits_for = 1
    models = state_of(resource).models
    deleted = [one for one in met if models[one.model].profile.get("evictionPolicy", "Deallocate") == "Delete"]
    if deleted:
        lower_capacity(cloud, resource, deleted)
        delete_instances(cloud, resource, operation, deleted)
    for one in met:
        if one not in deleted:
            begin_task(cloud, resource, operation, one, "deallocate")
    cloud.events.after(0.0, resource.key, ACTION_PROCESSED, operation.id)


def _announce(cloud: Cloud, resource: Resource, machines: list[Instance], kind: EventType, moment: float) -> None:
    for one in machines:
        one.notice = scheduled_events_of(cloud).announce(
            cloud, key=resource.key, instances=(str(one.id),), event_type=kind, not_before=moment
        )


def _running(resource: Resource, numbers: Iterable[str]) -> list[Instance]:
    """Return the given instances that run and wait for no event."""
    instances = state_of(resource).instances
    found = (instances.get(number) for number in dict.fromkeys(numbers))
    return [one for one in found if one is not None and one.power == RUNNING and not one.going and not one.notice]
