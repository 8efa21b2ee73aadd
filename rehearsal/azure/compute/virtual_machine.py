"""Virtual machines: disks and interfaces, power, quota and events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.capacity import capacity_of
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute import machine as machines
from rehearsal.azure.compute.disks import MACHINE, check_image, create_disk, deallocation_refused, is_ephemeral
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
from rehearsal.azure.compute.scale_set_body import SECRETS, identity_body
from rehearsal.azure.compute.views import guest_agent_view, power_statuses
from rehearsal.azure.compute.virtual_machine_rules import check_changes, check_machine
from rehearsal.azure.errors import AzureError, conflict
from rehearsal.azure.references import references
from rehearsal.azure.resource import Json, Operation, Request, Resource, Response, location_key
from rehearsal.azure.resource_type import Action, ResourceType
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.validation import value_at

DONE = "machine_done"
ACTIONS = ("start", "restart", "poweroff", "deallocate", "redeploy", "reimage")
_MAINTENANCE = {"Reboot": "reboot", "Redeploy": "redeploy"}


def machine_of(resource: Resource) -> Machine:
    """Return the state of a virtual machine."""
    return cast("Machine", resource.state)


class VirtualMachine(ResourceType):
    """A virtual machine: https://learn.microsoft.com/rest/api/compute/virtual-machines"""

    type = MACHINE
    state_type = Machine

    def __init__(self) -> None:
        self.actions: Mapping[str, Action] = dict.fromkeys(ACTIONS, self._act)
        self.gets: Mapping[str, Action] = {"instanceview": self._instance_view}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a body that breaks a published rule, changes a fixed property, or needs an image that is not available."""
        check_machine(cloud, arm_id, body)
        if previous is not None:
            check_changes(previous, machine_of(previous).power, body)
            if error := busy_refusal(machine_of(previous), arm_id.name, TASKS["update"].words):
                raise error
        elif image := value_at(body, "properties.storageProfile.imageReference"):
            check_image(cloud, image, location_key(body["location"]))

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add Azure's defaults and remove secrets, which stay in the stored request."""
        if previous is not None:
            body["properties"] = _with_secrets(body["properties"], previous.sent["properties"])
            body.setdefault("zones", previous.sent.get("zones") or [])
        given = body["properties"]
        os_profile = {name: value for name, value in (given.get("osProfile") or {}).items() if name not in SECRETS}
        storage = {**(given.get("storageProfile") or {})}
        storage["dataDisks"] = _data_disks(storage.get("dataDisks") or [], previous)
        own = {"osType": "Linux", "deleteOption": "Detach", "name": f"{arm_id.name}_OsDisk_1"}
        storage["osDisk"] = {**own, **(storage.get("osDisk") or {})}
        if previous is not None and (known := value_at(previous.body, "properties.storageProfile.osDisk.managedDisk")):
            storage["osDisk"]["managedDisk"] = known
        created = previous.created if previous else cloud.now
        properties = {
            **given,
            "storageProfile": storage,
            "vmId": cloud.stable_uuid(MACHINE, cloud.seed, arm_id.key, cloud.relative(created)),
            "timeCreated": stamp(created),
        }
        if os_profile:
            properties["osProfile"] = {"allowExtensionOperations": True, "secrets": [], "computerName": arm_id.name, **os_profile}
        result: Json = {**body, "properties": properties}
        if body.get("identity"):
            result["identity"] = identity_body(cloud, arm_id.key, body["identity"])
        return result

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Take quota for a new machine or for another size."""
        if previous is None:
            self._quota(cloud, resource, resource.body, 1)
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
        _create_disks(cloud, resource)
        machine = machine_of(resource)
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
        cloud.finish_operation(operation, error)

    def _act(self, cloud: Cloud, resource: Resource, request: Request) -> Response:
        """Start a power action, a redeploy or a reimage."""
        task, machine, name = request.action.lower(), machine_of(resource), resource.id.name
        if task == "deallocate" and _ephemeral(resource):
            raise deallocation_refused(name)
        if task == "reimage" and not _ephemeral(resource):
            message = f"The Reimage operation is only supported for virtual machines with ephemeral OS disks, which '{name}' has not."
            raise conflict("OperationNotAllowed", message, name)
        error = busy_refusal(machine, name, TASKS[task].words) or power_refusal(machine, name, task)
        if error is not None:
            raise error
        if task == "reimage" and (request.body or {}).get("tempDisk"):
            task = "reimagetemp"
        operation = cloud.begin_operation(resource.key, task, resource.location)
        self._begin(cloud, resource, operation, task)
        return Response(202, operation=operation)

    def deleting(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Pre-empt the running operation."""
        machine = machine_of(resource)
        if machine.doing and (running := cloud.operations[machine.doing]).running:
            cloud.finish_operation(running, preempted())
        machine.state, machine.doing, machine.task = DELETING, operation.id, "delete"

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float | None:
        return operation_seconds(cloud, "vm.delete", resource.key)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Release host and quota, and delete the disks and interfaces with deleteOption Delete."""
        vacate(cloud, machine_of(resource))
        self._quota(cloud, resource, resource.body, -1)
        for text in _deleted_with_machine(resource.properties):
            part = cloud.find(text)
            if part is not None and not part.operation:
                cloud.delete(part)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body, Updating while an action runs, with the instance view if $expand requests it."""
        machine = machine_of(resource)
        state = machine.state if machine.doing and not resource.operation else resource.properties.get("provisioningState")
        properties = {**resource.properties, "provisioningState": state}
        if "instanceview" in str(query.get("$expand", "")).lower():
            properties["instanceView"] = _view(cloud, resource)
        return {**resource.body, "properties": properties}

    def _instance_view(self, cloud: Cloud, resource: Resource, request: Request) -> Response:
        return Response(200, _view(cloud, resource))


def _view(cloud: Cloud, resource: Resource) -> Json:
    machine = machine_of(resource)
    name = value_at(resource.body, "properties.osProfile.computerName") or resource.id.name
    return {
        "computerName": name,
        "hyperVGeneration": "V2",
        "vmAgent": guest_agent_view(cloud, machine),
        "statuses": power_statuses(machine),
    }


def _site(resource: Resource, body: Json | None = None) -> Site:
    """Return the placement of a machine, by its present body or another."""
    whole = resource.body if body is None else body
    group = value_at(whole, "properties.capacityReservation.capacityReservationGroup.id")
    return Site(
        key=resource.key,
        location=resource.location,
        size=str(value_at(whole, "properties.hardwareProfile.vmSize")),
        zone=next(iter(whole.get("zones") or []), ""),
        spot=(value_at(whole, "properties.priority") or "Regular") != "Regular",
        group=str(group or ""),
        constraints=("Proximity Placement Group",) if value_at(whole, "properties.proximityPlacementGroup.id") else (),
    )


def _ephemeral(resource: Resource) -> bool:
    return is_ephemeral(value_at(resource.body, "properties.storageProfile.osDisk") or {})


def _with_secrets(properties: Json, old: Json) -> Json:
    """Return the properties with the secrets that their sender could not read."""
    known = old.get("osProfile") or {}
    secrets = {name: known[name] for name in SECRETS if name in known}
    return {**properties, "osProfile": {**secrets, **(properties.get("osProfile") or known)}} if known else properties


def _data_disks(given: list[Json], previous: Resource | None) -> list[Json]:
    """Return the requested data disks, those of the existing machine with their ids."""
    known = {disk["lun"]: disk for disk in value_at(previous.body, "properties.storageProfile.dataDisks") or []} if previous else {}
    preserved = ("name", "managedDisk")
    return [{**{name: value for name, value in known.get(disk["lun"], {}).items() if name in preserved}, **disk} for disk in given]


def _create_disks(cloud: Cloud, resource: Resource) -> None:
    """Create the managed disks of the machine, and write their ids into its body."""
    storage = resource.properties["storageProfile"]
    disks = [(storage["osDisk"], storage["osDisk"]["name"])]
    disks += [(disk, disk.get("name") or f"{resource.id.name}_DataDisk_{disk['lun']}") for disk in storage["dataDisks"]]
    for disk, name in disks:
        if not is_ephemeral(disk) and not (disk.get("managedDisk") or {}).get("id"):
            text = create_disk(cloud, resource, name, {"createOption": "FromImage", **disk})
            disk |= {"name": name, "managedDisk": {"storageAccountType": "Premium_LRS", **(disk.get("managedDisk") or {}), "id": text}}
    cloud.index.add(resource.id, references(resource.body, resource.key))


def _deleted_with_machine(properties: Json) -> list[str]:
    """Return the ids of the disks and interfaces with deleteOption Delete."""
    storage = properties.get("storageProfile") or {}
    disks = [storage.get("osDisk") or {}, *(storage.get("dataDisks") or [])]
    found = [value_at(one, "managedDisk.id") for one in disks if one.get("deleteOption") == "Delete"]
    nics = (properties.get("networkProfile") or {}).get("networkInterfaces") or []
    found += [one.get("id") for one in nics if (one.get("properties") or {}).get("deleteOption") == "Delete"]
    return [str(one) for one in found if one]
