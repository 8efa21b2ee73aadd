"""Decides which unhealthy instances Azure repairs by itself, how, how many at a time, and when it gives up.

https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-automatic-instance-repairs
"""

from __future__ import annotations

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import scale_set_rules
from rehearsal.azure.compute.deletes import delete_all
from rehearsal.azure.compute.health import HEALTHY, INITIALIZING, RICH, UNHEALTHY, UNKNOWN, health_of, source_of
from rehearsal.azure.compute.instance_operations import begin_action, begin_task, give_up, preempted
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.machine import RUNNING, SUCCEEDED
from rehearsal.azure.compute.scaling import add
from rehearsal.azure.errors import AzureError, invalid
from rehearsal.azure.resource import Answer, Operation, Request, Resource

SWEEP, OPERATION = "repairs", "automaticRepair"
SHARE_PERCENT = 5
"""Of a set's instances at most this share is repaired at a time, and at least one; the page above."""
AGAIN_SECONDS = 60.0
"""When to look again while more are unhealthy than may be repaired at a time; Azure publishes no figure."""
MOST_IN_A_ROW = 3
"""Repairs in a row without a healthy machine between them after which the service suspends itself; Azure publishes no figure."""
_TASKS = {"Reimage": "reimage", "Restart": "restart"}


def set_health(cloud: Cloud, resource: Resource, number: str, health: str) -> None:
    """An instance's application reports its health: Healthy, Unhealthy, or with the extension's version 2 Unknown."""
    state = state_of(resource)
    one = state.instances.get(number)
    if one is None:
        raise invalid(f"The provided instanceId {number} is not an active Virtual Machine Scale Set VM instanceId.", "instanceIds")
    source = source_of(state.models[one.model].profile)
    allowed = (HEALTHY, UNHEALTHY, UNKNOWN) if source == RICH else (HEALTHY, UNHEALTHY) if source else ()
    if health not in allowed:
        told = ", ".join(allowed) or "nothing: its model names no source of health"
        raise invalid(f"The health '{health}' is none that instance {number} reports; it reports {told}.", "health")
    one.health = health
    if health == HEALTHY:
        one.repairs = 0
    else:
        plan_sweep(cloud, resource, one.settled + _grace(resource))


def enabled(resource: Resource) -> bool:
    """Whether the scale set is to be repaired."""
    return bool((resource.properties.get("automaticRepairsPolicy") or {}).get("enabled"))


def service_state(resource: Resource) -> str:
    """Running, Suspended or Not Running, as an instance view tells it."""
    return "Not Running" if not enabled(resource) else "Suspended" if state_of(resource).suspended else "Running"


def plan_sweep(cloud: Cloud, resource: Resource, moment: float) -> None:
    """Look at a moment which instances need a repair, unless that is done earlier anyway."""
    state = state_of(resource)
    if enabled(resource) and (state.sweep <= cloud.now or moment < state.sweep):
        state.sweep = max(moment, cloud.now)
        cloud.events.at(state.sweep, resource.key, SWEEP)


def sweep(cloud: Cloud, resource: Resource) -> None:
    """Repair what is unhealthy and past its grace period, as many as may be at a time, and look again when more may be."""
    state = state_of(resource)
    if state.sweep > cloud.now:
        return
    state.sweep = 0.0
    if not enabled(resource) or state.suspended:
        return
    grace = _grace(resource)
    ill = [one for one in state.living() if _is_ill(cloud, resource, one)]
    due = [one for one in ill if one.settled + grace <= cloud.now]
    free = max(1, len(state.living()) * SHARE_PERCENT // 100) - _under_repair(cloud, resource)
    for one in due[: max(free, 0)]:
        if one.repairs >= MOST_IN_A_ROW:
            state.suspended = True
            return
        _repair(cloud, resource, one)
    later = [one.settled + grace for one in ill if one not in due]
    if len(due) > max(free, 0):
        later.append(cloud.now + AGAIN_SECONDS)
    if later:
        plan_sweep(cloud, resource, min(later))


def _is_ill(cloud: Cloud, resource: Resource, one: Instance) -> bool:
    """Whether repairs are meant for it: not what is protected, at work, off, or was never provisioned."""
    if one.doing or one.state != SUCCEEDED or one.power != RUNNING or one.protect_from_scale_in or one.protect_from_actions:
        return False
    return one.ready <= cloud.now and health_of(cloud, resource, one) not in (HEALTHY, INITIALIZING, None)


def _grace(resource: Resource) -> float:
    policy = resource.properties.get("automaticRepairsPolicy") or {}
    return scale_set_rules.span_seconds(policy.get("gracePeriod", "PT10M"), "gracePeriod")


def _under_repair(cloud: Cloud, resource: Resource) -> int:
    """Repairs that go on: the removal of a machine and the making of its replacement are one."""
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
    delete_all(cloud, resource, operation, (one,))
    # A replacement waits for the removal, but not for the notice that goes before it.
    if one.notice:
        replace(cloud, resource, operation, one.repairs)
    else:
        one.owes = True
        give_up(cloud, resource, operation, None, None)


def replace(cloud: Cloud, resource: Resource, operation: Operation, repairs: int) -> None:
    """Make a machine of the latest model in the place of an unhealthy one, unless the whole set is going."""
    if resource.operation and cloud.operations[resource.operation].name == "delete":
        give_up(cloud, resource, operation, None, preempted())
        return
    try:
        (new,) = add(cloud, resource, 1)
    except AzureError as refused:
        give_up(cloud, resource, operation, None, refused)
        return
    new.repairs = repairs
    begin_task(cloud, resource, operation, new, "create")
    give_up(cloud, resource, operation, None, None)


def set_service_state(cloud: Cloud, resource: Resource, request: Request) -> Answer:
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
    return Answer(200)
