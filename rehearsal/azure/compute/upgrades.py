"""Updates of instances to the latest model: by name, all at once, or in batches while enough instances are healthy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import scale_set_rules
from rehearsal.azure.compute.health import HEALTHY, health_of
from rehearsal.azure.compute.instance_operations import BATCH_DONE, begin_action, begin_task, conclude
from rehearsal.azure.compute.instances import Instance, Model, SetState, state_of
from rehearsal.azure.compute.machine import FAILED
from rehearsal.azure.compute.scaling import release_addresses, release_quota, take_addresses, take_quota
from rehearsal.azure.errors import AzureError, conflict, not_found
from rehearsal.azure.resource import Json, Operation, Resource, Response

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
_TOLERATED = {"before": "maxUnhealthyInstancePercent", "after": "maxUnhealthyUpgradedInstancePercent"}


def out_of_date(state: SetState) -> list[Instance]:
    """Return the instances that are behind the model, idle, and not protected from scale set actions."""
    return [one for one in state.living() if one.model != state.model and not one.doing and not one.protect_from_actions]


def needs_reimage(old: Model, new: Model) -> bool:
    """Return whether a change of models replaces a machine's OS disk: another image.

    New customData and SSH keys reach the guest only with a reimage, which an update does not do:
    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-upgrade-policy
    """
    return old.image != new.image


def needs_other_hardware(old: Model, new: Model) -> bool:
    """Return whether a change of models moves the machine: another VM size, or another proximity placement group."""
    return old.size.lower() != new.size.lower() or old.rest["proximityPlacementGroup"] != new.rest["proximityPlacementGroup"]


def bring_to_latest(cloud: Cloud, resource: Resource, operation: Operation, machines: Iterable[Instance]) -> None:
    """Start to update instances to the latest model: an update, a new OS disk for another image, or other hardware for another size."""
    state = state_of(resource)
    latest = state.models[state.model]
    for one in list(machines):
        old = state.models[one.model]
        task = "resize" if needs_other_hardware(old, latest) else "upgrade" if needs_reimage(old, latest) else "update"
        try:
            _take_resources(cloud, resource, one, old, latest)
        except AzureError as refused:
            one.state, one.error = FAILED, refused.body()
            operation.failures.append({**refused.body(), "target": str(one.id)})
            continue
        one.model = state.model
        begin_task(cloud, resource, operation, one, task)


def _take_resources(cloud: Cloud, resource: Resource, one: Instance, old: Model, new: Model) -> None:
    """Take the quota and addresses of another model for a machine; AzureError, and then the machine has its former ones."""
    if (old.size.lower(), old.spot, old.reservation) != (new.size.lower(), new.spot, new.reservation):
        release_quota(cloud, resource, old, (one,))
        try:
            take_quota(cloud, resource, new, (one,))
        except AzureError:
            take_quota(cloud, resource, old, (one,))
            raise
    if old.ip_configurations != new.ip_configurations:
        one.addresses = _other_addresses(cloud, one, old, new)


def _other_addresses(cloud: Cloud, one: Instance, old: Model, new: Model) -> tuple[int, ...]:
    """Return addresses by the new model's ipConfigurations: those with the same NIC, name and subnet are preserved."""
    had = {(item.nic, item.name, item.subnet.lower()): (item, own) for item, own in zip(old.ip_configurations, one.addresses, strict=True)}
    missing = [item for item in new.ip_configurations if (item.nic, item.name, item.subnet.lower()) not in had]
    more = iter(take_addresses(cloud, missing, 1)[0] if missing else ())
    preserved = [had.pop((item.nic, item.name, item.subnet.lower()), None) for item in new.ip_configurations]
    release_addresses(cloud, *(tuple(zip(*had.values(), strict=True)) or ((), ())))
    return tuple(next(more) if found is None else found[1] for found in preserved)


def policy_of(resource: Resource) -> Json:
    """Return the rolling upgrade policy in force, with Azure's defaults."""
    return {**_DEFAULTS, **((resource.properties.get("upgradePolicy") or {}).get("rollingUpgradePolicy") or {})}


def begin_rolling(cloud: Cloud, resource: Resource) -> None:
    """Start a rolling upgrade if instances are behind the model and none is running."""
    state = state_of(resource)
    if not out_of_date(state) or (state.rolling is not None and state.rolling["running"]):
        return
    operation = begin_action(cloud, resource, "rollingUpgrade")
    state.rolling = {"operation": operation.id, "running": True, "code": "RollingForward", "batch": [], "upgraded": []}
    state.rolling |= {"started": cloud.now, "ended": cloud.now}
    cloud.events.after(0.0, resource.key, BATCH_DONE, operation.id)


def next_batch(cloud: Cloud, resource: Resource, operation_id: str) -> None:
    """Start the next batch after the guests are up and healthy, or end the upgrade."""
    state = state_of(resource)
    rolling = state.rolling
    if rolling is None or rolling["operation"] != operation_id or not rolling["running"]:
        return
    operation = cloud.operations[operation_id]
    batch = [state.instances[number] for number in rolling["batch"] if number in state.instances]
    ready = max((one.ready for one in batch), default=0.0)
    if ready > cloud.now:
        cloud.events.at(ready, resource.key, BATCH_DONE, operation_id)
        return
    if batch:
        rolling["upgraded"] += rolling["batch"]
        rolling["batch"] = []
        error = _breach(cloud, resource, [one for one in state.living() if str(one.id) in set(rolling["upgraded"])], "after")
        pause = scale_set_rules.span_seconds(policy_of(resource)["pauseTimeBetweenBatches"], "pauseTimeBetweenBatches")
        if error is None and out_of_date(state) and not operation.failures and pause:
            cloud.events.after(pause, resource.key, BATCH_DONE, operation_id)
            return
    else:
        error = None
    _continue_rolling(cloud, resource, operation, rolling, error)


def _continue_rolling(cloud: Cloud, resource: Resource, operation: Operation, rolling: Json, error: AzureError | None) -> None:
    state = state_of(resource)
    waiting = out_of_date(state)
    error = error or (_breach(cloud, resource, state.living(), "before") if waiting else None)
    if error is not None or operation.failures or not waiting:
        end_rolling(cloud, resource, "Faulted" if error or operation.failures else "Completed", error)
        return
    policy = policy_of(resource)
    count = max(1, len(state.living()) * int(policy["maxBatchInstancePercent"]) // 100)
    if policy["prioritizeUnhealthyInstances"]:
        waiting.sort(key=lambda one: health_of(cloud, resource, one) == HEALTHY)
    batch = waiting[:count]
    rolling["batch"] = [str(one.id) for one in batch]
    bring_to_latest(cloud, resource, operation, batch)
    if operation.waits_for == 0:
        cloud.events.after(0.0, resource.key, BATCH_DONE, operation.id)


def _breach(cloud: Cloud, resource: Resource, among: list[Instance], when: str) -> AzureError | None:
    """Return the end of a rolling upgrade for too many unhealthy instances: of all before a batch, or of the upgraded ones after it."""
    name = _TOLERATED[when]
    bound = int(policy_of(resource)[name])
    total = len(state_of(resource).living())
    unhealthy = sum(1 for one in among if health_of(cloud, resource, one) not in (HEALTHY, None))
    if total == 0 or unhealthy * 100 <= bound * total:
        return None
    pascal = name[0].upper() + name[1:]
    message = (
        f"Rolling Upgrade failed after exceeding the {pascal} value defined in the RollingUpgradePolicy. {unhealthy * 100 // total}% of "
        f"instances are in an unhealthy state {when} being upgraded - more than the threshold of {bound}%."
    )
    return AzureError(409, f"{pascal}ExceededInRollingUpgrade", message, target=resource.id.name)


def end_rolling(cloud: Cloud, resource: Resource, code: str, error: AzureError | None) -> None:
    """End the running rolling upgrade: Completed, Faulted or Cancelled."""
    state = state_of(resource)
    rolling = state.rolling
    if rolling is None or not rolling["running"]:
        return
    rolling |= {"running": False, "code": code, "ended": cloud.now}
    operation = cloud.operations[rolling["operation"]]
    if error is not None:
        operation.failures.insert(0, error.body())
    if operation.waits_for == 0 and operation.running:
        conclude(cloud, resource, operation)


def cancel_rolling_upgrade(cloud: Cloud, resource: Resource) -> Response:
    """Stop a rolling upgrade after its present batch:
    https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-rolling-upgrades/cancel
    """
    rolling = state_of(resource).rolling
    if rolling is None or not rolling["running"]:
        raise conflict("OperationNotAllowed", f"No rolling upgrade of '{resource.id.name}' is in progress.", resource.id.name)
    end_rolling(cloud, resource, "Cancelled", None)
    return Response(202, operation=cloud.operations[rolling["operation"]])


def latest_rolling_upgrade(cloud: Cloud, resource: Resource) -> Json:
    """Return the latest rolling upgrade, as `rollingUpgrades/latest`; AzureError without one."""
    rolling = state_of(resource).rolling
    if rolling is None:
        raise not_found("Microsoft.Compute/virtualMachineScaleSets/rollingUpgrades", "latest", resource.id.group)
    operation = cloud.operations.get(rolling["operation"])
    failures: list[Any] = operation.failures if operation is not None else []
    name = "Cancel" if rolling["code"] == "Cancelled" else "Start"
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
                "lastAction": name,
                "lastActionTime": stamp(rolling["ended"]),
            },
            "progress": {
                "successfulInstanceCount": len(rolling["upgraded"]),
                "failedInstanceCount": len([one for one in failures if "target" in one]),
                "inProgressInstanceCount": len(rolling["batch"]),
                "pendingInstanceCount": len(out_of_date(state_of(resource))),
            },
            **({"error": failures[0]} if failures else {}),
        },
    }
