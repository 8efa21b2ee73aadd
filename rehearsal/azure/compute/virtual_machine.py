"""Virtual machines: disks and interfaces, power, quota and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import machine as machines
from rehearsal.azure.compute.disks import MACHINE, check_image, deallocation_refused
from rehearsal.azure.compute.instance_operations import preempted
from rehearsal.azure.compute.machine import (
    DELETING,
    TASKS,
    Machine,
    Site,
    busy_refusal,
    power_refusal,
    provisioning_error,
    slowness,
    vacate,
)
from rehearsal.azure.compute.machine_disks import create_disks, deleted_with_machine, replace_os_disk, storage_body
from rehearsal.azure.compute.machine_interfaces import create_interfaces, network_profile, remove_interfaces
from rehearsal.azure.compute.os_images import with_exact_version
from rehearsal.azure.compute.profile_defaults import (
    SECRETS,
    USER_DATA,
    completed_os_profile,
    expands,
    is_ephemeral,
    os_type,
)
from rehearsal.azure.compute.views import boot_diagnostics_view, disk_views, guest_agent_view, guest_is_up, guest_system, power_statuses
from rehearsal.azure.compute.virtual_machine_rules import check_changes, check_machine
from rehearsal.azure.errors import AzureError, conflict
from rehearsal.azure.preconditions import etag
from rehearsal.azure.resource import Json, Operation, Request, Resource, Response, location_key
from rehearsal.azure.resource_type import Action, ResourceType
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.validation import value_at

DONE = "machine_done"
ACTIONS = ("start", "restart", "poweroff", "deallocate", "redeploy", "reimage", "reapply")
_GENERALIZED = {"code": "OSState/generalized", "level": "Info", "displayStatus": "VM generalized"}
_MAINTENANCE = {"Reboot": "reboot", "Redeploy": "redeploy"}


def machine_of(resource: Resource) -> Machine:
    """Return the state of a virtual machine."""
    return cast("Machine", resource.state)


class VirtualMachine(ResourceType):
    """A virtual machine: https://learn.microsoft.com/rest/api/compute/virtual-machines"""

    type = MACHINE
    state_type = Machine
    interruptible = True

    def __init__(self) -> None:
        self.actions: Mapping[str, Action] = {**dict.fromkeys(ACTIONS, self._act), "generalize": self._generalize}
        self.gets: Mapping[str, Action] = {"instanceview": self._instance_view}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a body that breaks a published rule, changes a fixed property, or needs an image that is not available."""
        check_machine(cloud, arm_id, body)
        if previous is not None:
            check_changes(previous, machine_of(previous).power, body)
            machine = machine_of(previous)
            superseded = bool(machine.doing) and cloud.operations[machine.doing].name == "put"
            if not superseded and (error := busy_refusal(machine, arm_id.name, TASKS["update"].words)):
                raise error
        elif image := value_at(body, "properties.storageProfile.imageReference"):
            check_image(cloud, image, location_key(body["location"]))

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add Azure's defaults and remove secrets, which stay in the stored request."""
        if previous is not None:
            body["properties"] = _with_secrets(body["properties"], previous.sent["properties"])
            body.setdefault("zones", previous.sent.get("zones") or [])
        given = {name: value for name, value in body["properties"].items() if name != USER_DATA}
        created = previous.created if previous else cloud.now
        storage = given.get("storageProfile") or {}
        kind = os_type(cloud, storage, given.get("osProfile") or {})
        properties = {
            **given,
            "networkProfile": network_profile(body, previous),
            "storageProfile": with_exact_version(cloud, storage_body(arm_id, storage, kind, _size(body), previous), body, previous),
            "vmId": cloud.stable_uuid(MACHINE, cloud.seed, arm_id.key, cloud.relative(created)),
            "timeCreated": stamp(created),
        }
        if given.get("osProfile"):
            properties["osProfile"] = {"computerName": arm_id.name, **completed_os_profile(given["osProfile"], kind, patches=True)}
        result: Json = {**body, "properties": properties}
        return result

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Take quota for a new machine or for another size."""
        if previous is None:
            made = create_interfaces(cloud, resource)
            try:
                self._quota(cloud, resource, resource.body, 1)
            except AzureError:
                remove_interfaces(cloud, made)
                raise
            resource.state = Machine()
        elif value_at(previous, "properties.hardwareProfile.vmSize") != value_at(resource.body, "properties.hardwareProfile.vmSize"):
            self._quota(cloud, resource, previous, -1)
            try:
                self._quota(cloud, resource, resource.body, 1)
            except AzureError:
                self._quota(cloud, resource, previous, 1)
                raise

    def _quota(self, cloud: Cloud, resource: Resource, body: Json, machines_more: int) -> None:
        capacity = capacity_of(cloud)
        site = _site(resource, body)
        change = capacity.reserve if machines_more > 0 else capacity.release
        change(
            cloud,
            subscription=resource.id.subscription,
            location=site.location,
            size=site.size,
            spot=site.spot,
            machines=1,
            group=site.group,
            zone=site.zone,
        )

    def put_seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float | None:
        """Return None: a PUT ends with its task on the machine."""
        return None

    def begun(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Create the machine and its disks, move it to another size, or update it."""
        create_disks(cloud, resource)
        machine = machine_of(resource)
        _preempt(cloud, machine)
        moved = bool(machine.host) and machine.host.split("/")[2].lower() != _site(resource).size.lower()
        self._begin(cloud, resource, operation, "create" if not machine.power else "resize" if moved else "update")

    def _begin(self, cloud: Cloud, resource: Resource, operation: Operation, task: str) -> None:
        machine, site = machine_of(resource), _site(resource)
        duration = machines.begin(cloud, machine, task, operation.id, machine.turn + 1, site)
        duration *= slowness(cloud, site, machine.tasks) if task == "create" else 1.0
        cloud.events.after(duration, resource.key, DONE, operation.id, machine.turn)

    def event(self, cloud: Cloud, resource: Resource, name: str, args: tuple[Any, ...]) -> None:
        """End a task, or start the effect of a host failure or maintenance."""
        machine = machine_of(resource)
        if name == DONE and machine.doing == args[0] and machine.turn == args[1]:
            self._done(cloud, resource, cloud.operations[args[0]])
        elif name in ("host_failed", "maintenance") and machine.power == machines.RUNNING and not machine.doing:
            task = "recover" if name == "host_failed" else _MAINTENANCE.get(args[0])
            if task is not None:
                self._begin(cloud, resource, cloud.begin_operation(resource.key, name, resource.location), task)

    def _done(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        machine, site = machine_of(resource), _site(resource)
        task = machine.task
        error = machines.end(cloud, machine, site)
        if error is None and task == "create":
            error = provisioning_error(cloud, machine, site)
        if error is None and "local" in TASKS[task].wipes and "os" not in TASKS[task].wipes and _ephemeral(resource):
            machine.os_disk += 1
        if error is None and task == "reimage" and not _ephemeral(resource):
            replace_os_disk(cloud, resource, machine.os_disk)
        cloud.finish_operation(operation, error)

    def _act(self, cloud: Cloud, resource: Resource, request: Request) -> Response:
        """Start a power action, a redeploy or a reimage."""
        task, machine, name = request.action.lower(), machine_of(resource), resource.id.name
        if task == "deallocate" and _ephemeral(resource):
            raise deallocation_refused(name)
        if machine.generalized and task != "deallocate":
            message = f"Operation '{task}' is not allowed on VM '{name}' since the VM is generalized."
            raise conflict("OperationNotAllowed", message, name)
        error = busy_refusal(machine, name, TASKS[task].words) or power_refusal(machine, name, task)
        if error is not None:
            raise error
        if task == "reimage" and _ephemeral(resource) and (request.body or {}).get("tempDisk"):
            task = "reimagetemp"
        operation = cloud.begin_operation(resource.key, task, resource.location)
        self._begin(cloud, resource, operation, task)
        return Response(202, operation=operation)

    def _generalize(self, cloud: Cloud, resource: Resource, request: Request) -> Response:
        """Mark a stopped machine as generalized: https://learn.microsoft.com/rest/api/compute/virtual-machines/generalize

        Refusals: https://github.com/MicrosoftDocs/azure-docs/issues/86809 and https://github.com/Azure/azure-powershell/issues/2818
        """
        machine, name = machine_of(resource), resource.id.name
        if error := busy_refusal(machine, name, "Generalize VM"):
            raise error
        if machine.power == machines.RUNNING:
            message = f"Operation 'generalize' is not allowed on VM '{name}' since it is running; stop or deallocate it first."
            raise conflict("OperationNotAllowed", message, name)
        machine.generalized = True
        return Response(200)

    def deleting(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Pre-empt the running operation."""
        machine = machine_of(resource)
        _preempt(cloud, machine)
        machine.state, machine.doing, machine.task = DELETING, operation.id, "delete"

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float | None:
        return operation_seconds(cloud, "vm.delete", resource.key)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Release host and quota, and delete the disks and interfaces with deleteOption Delete."""
        vacate(cloud, machine_of(resource))
        self._quota(cloud, resource, resource.body, -1)
        for text in deleted_with_machine(resource.properties):
            part = cloud.find(text)
            if part is not None and not part.operation:
                cloud.delete(part)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body, Updating while an action runs, with the instance view or the user data if $expand requests it."""
        machine = machine_of(resource)
        state = machine.state if machine.doing and not resource.operation else resource.properties.get("provisioningState")
        properties = {**resource.properties, "provisioningState": state}
        if expands(query, "instanceView"):
            properties["instanceView"] = _view(cloud, resource)
        if expands(query, USER_DATA) and (user_data := value_at(resource.sent, f"properties.{USER_DATA}")) is not None:
            properties[USER_DATA] = user_data
        return {**resource.body, "etag": etag(resource), "properties": properties}

    def _instance_view(self, cloud: Cloud, resource: Resource, request: Request) -> Response:
        return Response(200, _view(cloud, resource))


def _preempt(cloud: Cloud, machine: Machine) -> None:
    """End the operation that works on a machine for a newer one."""
    if machine.doing and (running := cloud.operations[machine.doing]).running:
        cloud.finish_operation(running, preempted())


def _view(cloud: Cloud, resource: Resource) -> Json:
    machine, properties = machine_of(resource), resource.properties
    view = {
        "computerName": value_at(resource.body, "properties.osProfile.computerName") or resource.id.name,
        "hyperVGeneration": "V2",
        "vmAgent": guest_agent_view(cloud, machine),
        "disks": disk_views(properties["storageProfile"], machine),
        "statuses": [*power_statuses(machine), *([_GENERALIZED] if machine.generalized else [])],
        **boot_diagnostics_view(properties, resource.id.name, properties["vmId"]),
    }
    return {**view, **guest_system(properties["storageProfile"]["osDisk"]["osType"])} if guest_is_up(cloud, machine) else view


def _site(resource: Resource, body: Json | None = None) -> Site:
    """Return the placement of a machine, by its present body or another."""
    whole = resource.body if body is None else body
    group = value_at(whole, "properties.capacityReservation.capacityReservationGroup.id")
    return Site(
        key=resource.key,
        location=resource.location,
        size=_size(whole),
        zone=next(iter(whole.get("zones") or []), ""),
        spot=(value_at(whole, "properties.priority") or "Regular") != "Regular",
        group=str(group or ""),
        constraints=("Proximity Placement Group",) if value_at(whole, "properties.proximityPlacementGroup.id") else (),
    )


def _size(body: Json) -> str:
    return str(value_at(body, "properties.hardwareProfile.vmSize"))


def _ephemeral(resource: Resource) -> bool:
    return is_ephemeral(value_at(resource.body, "properties.storageProfile.osDisk") or {})


def _with_secrets(properties: Json, old: Json) -> Json:
    """Return the properties with the secrets and user data that their sender could not read."""
    known = old.get("osProfile") or {}
    properties = {**({USER_DATA: old[USER_DATA]} if USER_DATA in old else {}), **properties}
    secrets = {name: known[name] for name in SECRETS if name in known}
    return {**properties, "osProfile": {**secrets, **(properties.get("osProfile") or known)}} if known else properties
