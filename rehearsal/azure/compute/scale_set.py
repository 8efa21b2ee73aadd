"""Uniform scale sets: effects of a PUT, and events of their instances.

The capacity is the requested one. After a successful PUT there are as many instances. After a PUT that failed for lack of hardware
there are fewer, and the next PUT creates the missing ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import platform_events, repairs, rolling_upgrades, upgrades
from rehearsal.azure.compute.actions import SET_ACTIONS, check_not_rolling
from rehearsal.azure.compute.deletes import delete_instances, delete_set
from rehearsal.azure.compute.disks import check_image
from rehearsal.azure.compute.instance_operations import ACTION_PROCESSED, MODEL_DONE, begin_task, end_task, preempted, supersede, task_ended
from rehearsal.azure.compute.instances import Model, SetState, dump, load, model_of, state_of
from rehearsal.azure.compute.machine import CREATING
from rehearsal.azure.compute.profile_defaults import USER_DATA, expands
from rehearsal.azure.compute.scale_set_body import complete_request, response_body
from rehearsal.azure.compute.scale_set_rules import check_changes, check_scale_set, requested_capacity
from rehearsal.azure.compute.scaling import add_instances, remove_instance, scale_in_victims, surplus_machines, take_addresses_again
from rehearsal.azure.compute.views import scale_set_instance_view, scale_set_skus
from rehearsal.azure.concurrent_operations import SET_PUT
from rehearsal.azure.errors import AzureError
from rehearsal.azure.preconditions import etag
from rehearsal.azure.resource import Json, Operation, Request, Resource, Response, location_key
from rehearsal.azure.resource_type import Action, ResourceType
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.scheduled_events import scheduled_events_of
from rehearsal.azure.validation import value_at

SCALE_SET = "Microsoft.Compute/virtualMachineScaleSets"
_IMAGE = "properties.virtualMachineProfile.storageProfile.imageReference"


class ScaleSet(ResourceType):
    """A scale set: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets"""

    type = SCALE_SET
    actions: Mapping[str, Action] = SET_ACTIONS
    interruptible = True

    def __init__(self) -> None:
        self.gets: Mapping[str, Action] = {"instanceview": self._instance_view, "skus": self._skus}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a body that breaks a published rule, changes a fixed property, or needs an image that is not available."""
        if previous is not None:
            check_not_rolling(previous, "Update Virtual Machine Scale Set", SET_PUT)
        whole = complete_request(body, previous)
        check_scale_set(whole)
        image = value_at(whole, _IMAGE)
        more = requested_capacity(whole) > (len(state_of(previous).counted()) if previous else 0)
        if previous is not None:
            check_changes(previous.sent, whole)
        if image and (previous is None or more or image != value_at(previous.sent, _IMAGE)):
            check_image(cloud, image, location_key(whole["location"]))

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add Azure's defaults and remove secrets; what the PUT leaves out is added to the stored request."""
        body.update(complete_request(body, previous))
        return response_body(cloud, arm_id, body, previous)

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Take quota and addresses for new machines; check that enough machines can be deleted."""
        if resource.state is None:
            resource.state = SetState()
        state = state_of(resource)
        before = (state.model, dict(state.models))
        os_type = value_at(resource.body, "properties.virtualMachineProfile.storageProfile.osDisk.osType")
        model = model_of({**resource.sent, "sku": resource.body["sku"]}, str(os_type))
        state.model = _number_of(state, model)
        state.models[state.model] = model
        more = int(resource.body["sku"]["capacity"]) - len(state.counted())
        try:
            if more > 0:
                surplus = surplus_machines(resource, more)
                add_instances(cloud, resource, more, surplus)
                state.spare = state.spare or surplus > 0
            elif more < 0:
                scale_in_victims(resource, -more)
        except AzureError:
            state.model, state.models = before
            raise
        # Creations of an earlier PUT continue: https://github.com/Azure/azure-rest-api-specs/issues/22434
        supersede(cloud, cloud.operations.get(state.put))

    def put_seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float | None:
        """Return None: a PUT ends with its last instance."""
        return None

    def begun(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Create and delete machines, and update all to the new model in upgrade mode Automatic."""
        state = state_of(resource)
        if not state.born:
            state.born = cloud.stable_uuid(SCALE_SET, operation.id)
            state.turns = int(state.born[:8], 16) << 20
        resource.properties["uniqueId"] = state.born
        state.put, operation.waits_for = operation.id, 1
        cloud.events.after(
            operation_seconds(cloud, "scale_set.put", resource.key, resource.version), resource.key, MODEL_DONE, operation.id
        )
        for one in state.instances.values():
            if one.doing and not cloud.operations[one.doing].running:
                one.doing = operation.id
                operation.waits_for += 1
        for one in state.living():
            if one.state == CREATING and not one.doing:
                begin_task(cloud, resource, operation, one, "create")
        fewer = len(state.counted()) - int(resource.body["sku"]["capacity"])
        if fewer > 0:
            delete_instances(cloud, resource, operation, scale_in_victims(resource, fewer))
        if _mode(resource) == "Automatic":
            upgrades.bring_to_latest(cloud, resource, operation, upgrades.out_of_date(state))

    def deleting(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Delete all instances before the set."""
        operation.waits_for = 1
        supersede(cloud, cloud.operations.get(state_of(resource).put))
        rolling_upgrades.end_rolling(cloud, resource, "Cancelled", preempted())
        delete_set(cloud, resource, operation)
        cloud.events.after(operation_seconds(cloud, "scale_set.delete", resource.key), resource.key, ACTION_PROCESSED, operation.id)

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float | None:
        """Return None: a delete ends with the last instance."""
        return None

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Release the resources of its instances, and forget its scheduled events."""
        for one in list(state_of(resource).instances.values()):
            remove_instance(cloud, resource, one)
        scheduled_events_of(cloud).forget(resource.key)

    def restored(self, cloud: Cloud, resource: Resource) -> None:
        """Allocate the saved addresses again; quota and hosts are saved with the capacity."""
        take_addresses_again(cloud, resource)

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        """Run a scheduled event."""
        match name:
            case "instance_done":
                end_task(cloud, resource, args[0], args[1])
            case "model_done" | "action_taken":
                self._taken(cloud, resource, cloud.operations[args[0]], name)
            case "batch_done":
                rolling_upgrades.next_batch(cloud, resource, *args)
            case "replace":
                repairs.replace(cloud, resource, cloud.operations[args[0]], args[1])
            case "repairs":
                repairs.sweep(cloud, resource)
            case "scheduled_event":
                platform_events.start_announced_event(cloud, resource, args[0], args[1], args[2])
            case "evict":
                platform_events.evict(cloud, resource, args[0])
            case "host_failed":
                platform_events.fail_hosts(cloud, resource, args[0])
            case "maintenance":
                platform_events.maintain(cloud, resource, args[0], args[1], args[2])
            case _:
                super().event(cloud, resource, name, args)

    def _taken(self, cloud: Cloud, resource: Resource, operation: Operation, name: str) -> None:
        if name == MODEL_DONE and _mode(resource) == "Rolling" and operation.running:
            rolling_upgrades.begin_rolling(cloud, resource, operation)
        task_ended(cloud, resource, operation, None, None)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body, Updating while an operation runs, with the user data if $expand requests it."""
        properties = resource.properties
        if not resource.operation and state_of(resource).active:
            properties = {**properties, "provisioningState": "Updating"}
        user_data = value_at(resource.sent, f"properties.virtualMachineProfile.{USER_DATA}")
        if user_data is not None and expands(query, USER_DATA):
            properties = {**properties, "virtualMachineProfile": {**properties["virtualMachineProfile"], USER_DATA: user_data}}
        return {**resource.body, "etag": etag(resource), "properties": properties}

    def _instance_view(self, cloud: Cloud, resource: Resource, request: Request) -> Response:
        return Response(200, scale_set_instance_view(resource))

    def _skus(self, cloud: Cloud, resource: Resource, request: Request) -> Response:
        return Response(200, scale_set_skus(resource))

    def dump(self, state: Any) -> Any:
        return dump(state)

    def load(self, data: Any) -> Any:
        return load(data)


def _mode(resource: Resource) -> str:
    return str((resource.properties.get("upgradePolicy") or {}).get("mode"))


def _number_of(state: SetState, model: Model) -> int:
    """Return the number of a model version: that of an equal known one, else a new one."""
    for number, known in state.models.items():
        if known == model:
            return number
    return max(state.models, default=-1) + 1
