"""Rolling upgrades of scale sets: batches within the policy's bounds, in one operation that ends with the upgrade.

https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-configure-rolling-upgrades
"""

from __future__ import annotations

from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import scale_set_rules
from rehearsal.azure.compute.health import HEALTHY, health_of
from rehearsal.azure.compute.instance_operations import BATCH_DONE, begin_action, conclude, preempted
from rehearsal.azure.compute.instances import Instance, new_rolling, state_of
from rehearsal.azure.compute.machine import CREATING, FAILED
from rehearsal.azure.compute.upgrades import bring_to_model
from rehearsal.azure.errors import AzureError, conflict, not_found
from rehearsal.azure.resource import SUCCEEDED, Json, Operation, Resource

_DEFAULTS = {
    "maxBatchInstancePercent": 20,
    "maxUnhealthyInstancePercent": 20,
    "maxUnhealthyUpgradedInstancePercent": 20,
    "pauseTimeBetweenBatches": "PT0S",
    "prioritizeUnhealthyInstances": False,
    "maxSurge": False,
    "rollbackFailedInstancesOnPolicyBreach": False,
}
"""https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/create-or-update#rollingupgradepolicy"""
HEALTH_SECONDS = 300.0
"""Time after the guest is up within which an upgraded instance must become healthy:
https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-automatic-upgrade
"""
RECHECK_SECONDS = 10.0
"""Seconds between two checks of an instance that is busy or not yet healthy; Azure publishes no value."""
_UNHEALTHY = "Instance found to be unhealthy or unreachable."
"""https://github.com/microsoft/AzureTRE/issues/1591"""
_MORE = "For details on rolling upgrades, use http://aka.ms/AzureVMSSRollingUpgrade"


def policy_of(resource: Resource) -> Json:
    """Return the rolling upgrade policy in force, with Azure's defaults."""
    return {**_DEFAULTS, **((resource.properties.get("upgradePolicy") or {}).get("rollingUpgradePolicy") or {})}


def is_rolling(resource: Resource) -> bool:
    """Return whether a rolling upgrade of the scale set runs."""
    rolling = state_of(resource).rolling
    return rolling is not None and bool(rolling["running"])


def begin_rolling(cloud: Cloud, resource: Resource, operation: Operation, *, reimage: tuple[str, ...] = ()) -> bool:
    """Start a rolling upgrade as part of an operation; return False without instances that it would upgrade.

    It upgrades the instances behind the model, and those of reimage, whose OS disk has an older image.
    """
    state = state_of(resource)
    behind = [one for one in state.living() if one.model != state.model or str(one.id) in reimage]
    if all(one.protect_from_actions for one in behind):
        return False
    state.rolling = {
        **new_rolling(operation.id, cloud.now),
        "pending": [str(one.id) for one in behind],
        "reimage": list(reimage),
    }
    _plan(cloud, resource, 0.0)
    return True


def start_upgrade(cloud: Cloud, resource: Resource, name: str, reimage: tuple[str, ...] = ()) -> Operation:
    """Start a rolling upgrade that a client requests, and return its operation; it ends at once without instances to upgrade."""
    operation = begin_action(cloud, resource, name)
    if not begin_rolling(cloud, resource, operation, reimage=reimage):
        conclude(cloud, resource, operation)
    elif not resource.operation:
        resource.operation = operation.id
        cloud.set_provisioning_state(resource, "Updating")
    return operation


def _latest(resource: Resource) -> Json:
    rolling = state_of(resource).rolling
    if rolling is None:
        raise not_found("Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades", "latest", resource.id.group)
    return rolling


def _plan(cloud: Cloud, resource: Resource, seconds: float) -> None:
    """Plan the next step of the running upgrade; an earlier plan lapses."""
    rolling = _latest(resource)
    rolling["step"] += 1
    cloud.events.after(seconds, resource.key, BATCH_DONE, rolling["operation"], rolling["step"])


def next_batch(cloud: Cloud, resource: Resource, operation_id: str, step: int = 0) -> None:
    """Judge the batch when its guests are up, and then start the next one or end the upgrade."""
    rolling = state_of(resource).rolling
    if rolling is None or rolling["operation"] != operation_id or not rolling["running"] or step not in (0, rolling["step"]):
        return
    if rolling["closing"]:
        rolling["upgraded"] += [number for number in rolling["batch"] if number not in rolling["upgraded"]]
        end_rolling(cloud, resource, rolling["closing"], None)
        return
    batch = _present(resource, rolling["batch"])
    wait = _seconds_to_wait(cloud, resource, rolling, batch)
    if wait > 0:
        _plan(cloud, resource, wait)
        return
    _close_batch(cloud, resource, rolling, batch)
    error = _breach_after(cloud, resource, rolling) if batch else None
    waiting = _waiting(resource, rolling)
    if error is None and waiting and batch:
        pause = scale_set_rules.span_seconds(policy_of(resource)["pauseTimeBetweenBatches"], "pauseTimeBetweenBatches")
        if pause:
            _plan(cloud, resource, pause)
            return
    _continue(cloud, resource, rolling, waiting, error)


def _present(resource: Resource, numbers: list[str]) -> list[Instance]:
    """Return the instances of the numbers that exist and are not being deleted."""
    instances = state_of(resource).instances
    return [instances[number] for number in numbers if number in instances and not instances[number].going]


def _waiting(resource: Resource, rolling: Json) -> list[Instance]:
    """Return the instances that the upgrade still has to update, busy ones too; protected ones are skipped."""
    return [one for one in _present(resource, rolling["pending"]) if not one.protect_from_actions]


def _seconds_to_wait(cloud: Cloud, resource: Resource, rolling: Json, batch: list[Instance]) -> float:
    """Return the seconds until the batch can be judged: its guests are up, and healthy or out of time."""
    live = [one for one in batch if str(one.id) not in rolling["failed"]]
    ready = max((one.ready for one in live), default=0.0)
    if ready > cloud.now:
        return ready - cloud.now
    if any(one.doing for one in live):
        return RECHECK_SECONDS
    until = float(rolling["until"]) or cloud.now + HEALTH_SECONDS
    rolling["until"] = until
    if cloud.now < until and any(is_unhealthy(cloud, resource, one) for one in live):
        return min(RECHECK_SECONDS, until - cloud.now)
    return 0.0


def _close_batch(cloud: Cloud, resource: Resource, rolling: Json, batch: list[Instance]) -> None:
    """Record the batch's instances as upgraded or failed."""
    for one in batch:
        number = str(one.id)
        if number not in rolling["failed"] and is_unhealthy(cloud, resource, one):
            rolling["failed"][number] = {"code": "InstanceUnhealthy", "message": _UNHEALTHY}
        rolling["upgraded"].append(number)
    rolling |= {"batch": [], "until": 0.0}


def is_unhealthy(cloud: Cloud, resource: Resource, one: Instance) -> bool:
    """Return whether an instance counts as unhealthy; one that is being created has no health yet."""
    return one.state == FAILED or (one.state != CREATING and health_of(cloud, resource, one) not in (HEALTHY, None))


def _continue(cloud: Cloud, resource: Resource, rolling: Json, waiting: list[Instance], error: AzureError | None) -> None:
    """End the upgrade, wait for busy instances, or start the next batch."""
    error = error or (_breach_before(cloud, resource, rolling) if waiting else None)
    if error is not None:
        _fault(cloud, resource, rolling, error)
    elif not waiting:
        end_rolling(cloud, resource, "Completed", None)
    elif idle := [one for one in waiting if not one.doing]:
        _start_batch(cloud, resource, rolling, next_instances(cloud, resource, idle))
    else:
        _plan(cloud, resource, RECHECK_SECONDS)


def next_instances(cloud: Cloud, resource: Resource, idle: list[Instance]) -> list[Instance]:
    """Return the next batch: at least one instance and at most maxBatchInstancePercent of the set, of one zone unless the policy crosses.

    Unhealthy instances make the batch smaller, so that they and the batch stay within maxUnhealthyInstancePercent.
    """
    policy, living = policy_of(resource), state_of(resource).living()
    count = max(1, len(living) * int(policy["maxBatchInstancePercent"]) // 100)
    ill = {one.id for one in living if is_unhealthy(cloud, resource, one)}
    if policy["prioritizeUnhealthyInstances"]:
        idle = sorted(idle, key=lambda one: one.id not in ill)
    if not policy.get("enableCrossZoneUpgrade"):
        idle = [one for one in idle if one.zone == idle[0].zone]
    if not ill:
        return idle[:count]
    healthy = max(0, len(living) * int(policy["maxUnhealthyInstancePercent"]) // 100 - len(ill))
    chosen: list[Instance] = []
    for one in idle:
        if len(chosen) < count and (one.id in ill or healthy > 0 or not chosen):
            chosen.append(one)
            healthy -= one.id not in ill
    return chosen


def _start_batch(cloud: Cloud, resource: Resource, rolling: Json, batch: list[Instance]) -> None:
    operation, latest = cloud.operations[rolling["operation"]], state_of(resource).model
    rolling["batch"] = [str(one.id) for one in batch]
    rolling["pending"] = [number for number in rolling["pending"] if number not in rolling["batch"]]
    for one in batch:
        number = str(one.id)
        rolling["former"][number] = one.model
        refused = bring_to_model(cloud, resource, operation, one, latest, reimage=number in rolling["reimage"])
        if refused is not None:
            rolling["failed"][number] = refused.body()
    if not any(one.doing for one in batch):
        _plan(cloud, resource, 0.0)


def _breach_before(cloud: Cloud, resource: Resource, rolling: Json) -> AzureError | None:
    """Return the error for too many unhealthy instances before a batch: https://github.com/opencb/opencga/issues/987 (during an upgrade)
    and https://github.com/hashicorp/terraform-provider-azurerm/issues/15196 (before its first batch).
    """
    living, bound = state_of(resource).living(), int(policy_of(resource)["maxUnhealthyInstancePercent"])
    ill = sum(is_unhealthy(cloud, resource, one) for one in living)
    if ill * 100 <= bound * len(living):
        return None
    share = ill * 100 // len(living)
    if rolling["upgraded"]:
        message = (
            "Rolling Upgrade failed after exceeding the MaxUnhealthyInstancePercent value defined in the RollingUpgradePolicy. "
            f"{share}% of instances are in an unhealthy state - more than the threshold of {bound}%. To apply upgrades, consider "
            "increasing the MaxUnhealthyInstancePercent value."
        )
        return AzureError(409, "MaxUnhealthyInstancePercentExceededInRollingUpgrade", message)
    message = (
        "Rolling Upgrade failed due to exceeding the MaxUnhealthyInstancePercent value (defined in the RollingUpgradePolicy) before any "
        f"batch was attempted. {share}% of instances are in an unhealthy state, more than the threshold of {bound}% configured in the "
        f"RollingUpgradePolicy. The most impactful error is: {_UNHEALTHY} {_MORE}"
    )
    return AzureError(409, "MaxUnhealthyInstancePercentExceededBeforeRollingUpgrade", message)


def _breach_after(cloud: Cloud, resource: Resource, rolling: Json) -> AzureError | None:
    """Return the error for too many unhealthy upgraded instances after a batch: https://github.com/microsoft/AzureTRE/issues/1591"""
    living, bound = state_of(resource).living(), int(policy_of(resource)["maxUnhealthyUpgradedInstancePercent"])
    ill = [one for one in _present(resource, rolling["upgraded"]) if is_unhealthy(cloud, resource, one)]
    if len(ill) * 100 <= bound * len(living):
        return None
    known = [rolling["failed"].get(str(one.id), {}).get("message", _UNHEALTHY) for one in ill]
    message = (
        "Rolling Upgrade failed after exceeding the MaxUnhealthyUpgradedInstancePercent value defined in the RollingUpgradePolicy. "
        f"{len(ill) * 100 // len(living)}% of instances are in an unhealthy state after being upgraded - more than the threshold of "
        f"{bound}%. The most impactful error is: {known[0]} First failed instance ID is: {ill[0].id}."
    )
    return AzureError(409, "MaxUnhealthyUpgradedInstancePercentExceededInRollingUpgrade", message)


def _fault(cloud: Cloud, resource: Resource, rolling: Json, error: AzureError) -> None:
    """End the upgrade with an error; first restore the failed instances' former model if the policy requires it."""
    ill = [one for one in _present(resource, rolling["upgraded"]) if not one.doing and is_unhealthy(cloud, resource, one)]
    if not ill or not policy_of(resource)["rollbackFailedInstancesOnPolicyBreach"]:
        end_rolling(cloud, resource, "Faulted", error)
        return
    operation = cloud.operations[rolling["operation"]]
    operation.failures.insert(0, error.body())
    rolling |= {"closing": "Faulted", "code": "Faulted", "batch": [str(one.id) for one in ill]}
    for one in ill:
        number = str(one.id)
        rolling["failed"].setdefault(number, {"code": "InstanceUnhealthy", "message": _UNHEALTHY})
        bring_to_model(cloud, resource, operation, one, rolling["former"][number], reimage=number in rolling["reimage"])
    if not any(one.doing for one in ill):
        _plan(cloud, resource, 0.0)


def end_rolling(cloud: Cloud, resource: Resource, code: str, error: AzureError | None) -> None:
    """End the running rolling upgrade, and its operation: Completed, Faulted or Cancelled."""
    rolling = state_of(resource).rolling
    if rolling is None or not rolling["running"]:
        return
    rolling |= {"running": False, "code": code, "ended": cloud.now, "batch": []}
    operation = cloud.operations[rolling["operation"]]
    if error is None and code == "Cancelled":
        error = preempted()
    if error is not None:
        operation.failures.insert(0, error.body())
    if operation.waits_for == 0 and operation.running:
        conclude(cloud, resource, operation)
    if rolling["cancel"]:
        conclude(cloud, resource, cloud.operations[rolling["cancel"]])
        if not resource.operation:
            cloud.set_provisioning_state(resource, SUCCEEDED)


def cancel_rolling_upgrade(cloud: Cloud, resource: Resource) -> Operation:
    """Stop a rolling upgrade after its present batch, and return the operation of the cancellation. The upgrade's own operation is
    pre-empted, which is assumed: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-rolling-upgrades/cancel
    """
    if not is_rolling(resource):
        # https://github.com/hashicorp/terraform-provider-azurerm/pull/15634
        raise conflict("OperationNotAllowed", "There is no ongoing Rolling Upgrade to cancel.", resource.id.name)
    rolling = _latest(resource)
    if rolling["cancel"]:
        return cloud.operations[rolling["cancel"]]
    operation = begin_action(cloud, resource, "cancelRollingUpgrade")
    rolling["cancel"] = operation.id
    rolling["closing"] = rolling["closing"] or "Cancelled"
    if not any(one.doing == rolling["operation"] for one in _present(resource, rolling["batch"])):
        _plan(cloud, resource, 0.0)
    return operation


def progress_of(resource: Resource) -> Json:
    """Return the counts of a scale set's latest rolling upgrade, which add up to its machines: one that it did not update is successful."""
    rolling, living = _latest(resource), [str(one.id) for one in state_of(resource).living()]
    failed = sum(number in rolling["failed"] for number in living)
    batch = sum(number in rolling["batch"] and number not in rolling["failed"] for number in living)
    pending = sum(number in rolling["pending"] for number in living)
    return {
        "successfulInstanceCount": len(living) - failed - batch - pending,
        "failedInstanceCount": failed,
        "inProgressInstanceCount": batch,
        "pendingInstanceCount": pending,
    }


def latest_rolling_upgrade(cloud: Cloud, resource: Resource) -> Json:
    """Return the latest rolling upgrade, as `rollingUpgrades/latest`; AzureError without one."""
    rolling = _latest(resource)
    operation = cloud.operations.get(rolling["operation"])
    failures = [] if operation is None or rolling["running"] else operation.failures
    return {
        "id": f"{resource.id.text}/rollingUpgrades/latest",
        "name": "latest",
        "type": "Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades",
        "location": resource.body["location"],
        "properties": {
            "policy": policy_of(resource),
            "runningStatus": {
                "code": rolling["code"],
                "startTime": stamp(rolling["started"]),
                "lastAction": "Cancel" if rolling["cancel"] else "Start",
                "lastActionTime": stamp(rolling["ended"]),
            },
            "progress": progress_of(resource),
            **({"error": failures[0]} if failures and rolling["code"] == "Faulted" else {}),
        },
    }
