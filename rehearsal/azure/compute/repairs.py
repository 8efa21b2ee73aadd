"""Automatic repairs of unhealthy instances: selection, action, rate, and suspension after repeated failures.

https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-automatic-instance-repairs
"""

from __future__ import annotations

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import scale_set_rules
from rehearsal.azure.compute.deletes import delete_instances
from rehearsal.azure.compute.health import EXTENSION_2, HEALTHY, INITIALIZING, UNHEALTHY, UNKNOWN, health_of, source_of
from rehearsal.azure.compute.instance_operations import begin_action, begin_task, preempted, task_ended
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.machine import RUNNING, SUCCEEDED
from rehearsal.azure.compute.scaling import add_instances
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Operation, Request, Resource, Response

SWEEP, OPERATION = "repairs", "automaticRepair"
SHARE_PERCENT = 5
"""Share of a set's instances that are repaired at a time, at least one; source above."""
RECHECK_SECONDS = 60.0
"""Seconds until the next check while more instances are unhealthy than can be repaired at a time; Azure publishes no value."""
MAX_CONSECUTIVE_REPAIRS = 3
"""Repairs of one instance without a healthy state between them, after which the service suspends itself; Azure publishes no value."""
_TASKS = {"Reimage": "reimage", "Restart": "restart"}


def set_health(cloud: Cloud, resource: Resource, number: str, health: str) -> None:
    """Record the health that an instance's application reports: Healthy, Unhealthy, or with the extension's version 2 Unknown."""
    state = state_of(resource)
    one = state.instances.get(number)
    if one is None:
        raise invalid(f"The provided instanceId {number} is not an active Virtual Machine Scale Set VM instanceId.", "instanceIds")
    source = source_of(state.models[one.model].profile)
    allowed = (HEALTHY, UNHEALTHY, UNKNOWN) if source == EXTENSION_2 else (HEALTHY, UNHEALTHY) if source else ()
    if health not in allowed:
        reports = ", ".join(allowed) or "nothing: its model names no source of health"
        raise invalid(f"The health '{health}' is none that instance {number} reports; it reports {reports}.", "health")
    one.health = health
    if health == HEALTHY:
        one.repairs = 0
    else:
        plan_sweep(cloud, resource, one.settled + _grace(resource))


def repairs_enabled(resource: Resource) -> bool:
    """Return whether automatic repairs are enabled for the scale set."""
    return bool((resource.properties.get("automaticRepairsPolicy") or {}).get("enabled"))


def service_state(resource: Resource) -> str:
    """Return Running, Suspended or NotRunning, as in an instance view."""
    return "NotRunning" if not repairs_enabled(resource) else "Suspended" if state_of(resource).suspended else "Running"


def plan_sweep(cloud: Cloud, resource: Resource, moment: float) -> None:
    """Schedule a check of the instances at a time, unless an earlier one is scheduled."""
    state = state_of(resource)
    if repairs_enabled(resource) and (state.sweep <= cloud.now or moment < state.sweep):
        state.sweep = max(moment, cloud.now)
        cloud.events.at(state.sweep, resource.key, SWEEP)


def sweep(cloud: Cloud, resource: Resource) -> None:
    """Repair unhealthy instances past their grace period, within the allowed rate, and schedule the next check."""
    state = state_of(resource)
    if state.sweep > cloud.now:
        return
    state.sweep = 0.0
    if not repairs_enabled(resource) or state.suspended:
        return
    grace = _grace(resource)
    ill = [one for one in state.living() if _needs_repair(cloud, resource, one)]
    due = [one for one in ill if one.settled + grace <= cloud.now]
    free = max(1, len(state.living()) * SHARE_PERCENT // 100) - _under_repair(cloud, resource)
    for one in due[: max(free, 0)]:
        if one.repairs >= MAX_CONSECUTIVE_REPAIRS:
            state.suspended = True
            return
        _repair(cloud, resource, one)
    later = [one.settled + grace for one in ill if one not in due]
    if len(due) > max(free, 0):
        later.append(cloud.now + RECHECK_SECONDS)
    if later:
        plan_sweep(cloud, resource, min(later))


def _needs_repair(cloud: Cloud, resource: Resource, one: Instance) -> bool:
    """Return whether an instance needs a repair: protected, busy, stopped and never provisioned ones do not."""
    if one.doing or one.state != SUCCEEDED or one.power != RUNNING or one.protect_from_scale_in or one.protect_from_actions:
        return False
    return one.ready <= cloud.now and health_of(cloud, resource, one) not in (HEALTHY, INITIALIZING, None)


def _grace(resource: Resource) -> float:
    policy = resource.properties.get("automaticRepairsPolicy") or {}
    return scale_set_rules.span_seconds(policy.get("gracePeriod", "PT10M"), "gracePeriod")


def _under_repair(cloud: Cloud, resource: Resource) -> int:
    """Return the number of running repairs; the removal of a machine and the creation of its replacement are one."""
    works = {one.doing for one in state_of(resource).instances.values() if one.doing}
    return sum(1 for work in works if cloud.operations[work].name == OPERATION)


def _repair(cloud: Cloud, resource: Resource, one: Instance) -> None:
    operation = begin_action(cloud, resource, OPERATION)
    action = (resource.properties.get("automaticRepairsPolicy") or {}).get("repairAction", "Replace")
    one.repairs += 1
    if action in _TASKS:
        begin_task(cloud, resource, operation, one, _TASKS[action])
        return
    operation.waits_for = 1
    delete_instances(cloud, resource, operation, (one,))
    # The replacement waits for the removal, but not for the terminate notice before it.
    if one.notice:
        replace(cloud, resource, operation, one.repairs)
    else:
        one.owes = True
        task_ended(cloud, resource, operation, None, None)


def replace(cloud: Cloud, resource: Resource, operation: Operation, repairs: int) -> None:
    """Create a machine of the latest model as replacement, unless the whole set is being deleted."""
    if resource.operation and cloud.operations[resource.operation].name == "delete":
        task_ended(cloud, resource, operation, None, preempted())
        return
    try:
        (new,) = add_instances(cloud, resource, 1)
    except AzureError as refused:
        task_ended(cloud, resource, operation, None, refused)
        return
    new.repairs = repairs
    begin_task(cloud, resource, operation, new, "create")
    task_ended(cloud, resource, operation, None, None)


def set_service_state(cloud: Cloud, resource: Resource, request: Request) -> Response:
    """Suspend or resume repairs: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/set-orchestration-service-state"""
    body = request.body or {}
    if body.get("serviceName") != "AutomaticRepairs" or body.get("action") not in ("Suspend", "Resume"):
        raise invalid("serviceName must be 'AutomaticRepairs' and action 'Suspend' or 'Resume'.", "action")
    state = state_of(resource)
    state.suspended = body["action"] == "Suspend"
    if not state.suspended:
        for one in state.instances.values():
            one.repairs = 0
        plan_sweep(cloud, resource, cloud.now)
    return Response(200)
