"""Read-only views: instance views, sizes of a scale set, bodies of instances and of their network interfaces."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from operator import attrgetter

from components.plan.vm_sizes import VM_SIZES
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.health import health_of
from rehearsal.azure.compute.instance_disks import instance_storage
from rehearsal.azure.compute.instance_network import INSTANCE
from rehearsal.azure.compute.instances import PLACEMENT_GROUP_MACHINES, Instance, Model, computer_name, name_of, state_of
from rehearsal.azure.compute.machine import RUNNING, TASKS, Machine
from rehearsal.azure.compute.profile_defaults import (
    LINUX,
    USER_DATA,
    completed_network,
    completed_os_profile,
)
from rehearsal.azure.compute.repairs import service_state
from rehearsal.azure.compute.scale_set_body import without_protected_settings
from rehearsal.azure.compute.scale_set_rules import GALLERY_MACHINES
from rehearsal.azure.resource import Json, Resource


def provisioning_status(state: str, moment: float) -> Json:
    """Return a provisioning state as in an instance view."""
    level = "Error" if state == "Failed" else "Info"
    words = {"Succeeded": "Provisioning succeeded", "Failed": "Provisioning failed"}.get(state, state)
    return {"code": f"ProvisioningState/{state.lower()}", "level": level, "displayStatus": words, "time": stamp(moment)}


def scale_set_instance_view(resource: Resource) -> Json:
    """Return the instance view of a scale set: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/get-instance-view"""
    living = state_of(resource).instances.values()
    counts = Counter(f"ProvisioningState/{one.state.lower()}" for one in living)
    view: Json = {
        "virtualMachine": {"statusesSummary": [{"code": code, "count": count} for code, count in sorted(counts.items())]},
        "extensions": _extension_summaries(resource),
        "statuses": [provisioning_status(str(resource.properties["provisioningState"]), resource.changed)],
    }
    view["orchestrationServices"] = [{"serviceName": "AutomaticRepairs", "serviceState": service_state(resource)}]
    return view


def _extension_summaries(resource: Resource) -> list[Json]:
    """Return the number of instances in each state of each extension: an instance that is provisioned has its extensions."""
    state = state_of(resource)
    counts: dict[str, Counter[str]] = {}
    for one in state.instances.values():
        for extension in (state.models[one.model].profile.get("extensionProfile") or {}).get("extensions") or []:
            counts.setdefault(str(extension.get("name")), Counter())[f"ProvisioningState/{one.state.lower()}"] += 1
    rows = {name: [{"code": code, "count": count} for code, count in sorted(found.items())] for name, found in counts.items()}
    return [{"name": name, "statusesSummary": found} for name, found in rows.items()]


def scale_set_skus(resource: Resource) -> Json:
    """Return the present size with the bounds of its capacity:
    https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/list-skus
    """
    most = PLACEMENT_GROUP_MACHINES if resource.properties["singlePlacementGroup"] else GALLERY_MACHINES
    sku = resource.body["sku"]
    row = {
        "resourceType": resource.id.type,
        "sku": {"name": sku["name"], "tier": sku["tier"]},
        "capacity": {"minimum": 0, "maximum": most, "defaultCapacity": 1, "scaleType": "Automatic"},
    }
    return {"value": [row]}


AGENT = "2.15.0.1"
"""waagent in https://github.com/Azure/azhpc-images (versions.json, 2026-07-29)"""


def vm_id(cloud: Cloud, resource: Resource, one: Instance) -> str:
    """Return the machine's own UUID, which no other machine has."""
    return cloud.stable_uuid(state_of(resource).born, one.id)


def placement_group(cloud: Cloud, resource: Resource, one: Instance) -> str:
    """Return the UUID of an instance's placement group: one for the set, or one for each hundred ids."""
    number = 0 if resource.properties["singlePlacementGroup"] else one.id // PLACEMENT_GROUP_MACHINES
    return cloud.stable_uuid(state_of(resource).born, "placement group", number)


def infiniband_domain(cloud: Cloud, resource: Resource, one: Instance) -> str | None:
    """Return the placement group within which an instance reaches others by InfiniBand; None for a size or set without InfiniBand.

    A set with singlePlacementGroup false has machines of InfiniBand sizes without InfiniBand:
    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups
    """
    size = VM_SIZES.get(state_of(resource).models[one.model].size)
    if size is None or not size.infiniband_ports or not resource.properties["singlePlacementGroup"]:
        return None
    return placement_group(cloud, resource, one)


def _common(model: Model) -> Json:
    """Return what all instances of a model have in common; it is computed once."""
    if "network" not in model.shown:
        profile = model.profile
        os_profile = completed_os_profile(profile.get("osProfile") or {}, model.os_type, patches=model.os_type == LINUX)
        os_profile.pop("computerNamePrefix", None)
        own = ("securityProfile", "diagnosticsProfile", "licenseType")
        model.shown.update(
            os_profile=os_profile if profile.get("osProfile") else None,
            network=completed_network(profile.get("networkProfile") or {}),
            hardware={"vmSize": model.size, **(profile.get("hardwareProfile") or {})},
            extensions=without_protected_settings(profile.get("extensionProfile") or {})["extensions"],
            rest={"diagnosticsProfile": {}, **{name: profile[name] for name in own if profile.get(name)}},
            interfaces={item.nic: item.nic_primary for item in model.ip_configurations},
        )
    return model.shown


def _extension(resource: Resource, own: str, extension: Json) -> Json:
    """Return an extension of the model as a resource of an instance."""
    kind, name = f"{INSTANCE}/extensions", str(extension.get("name"))
    inner = {"autoUpgradeMinorVersion": False, **(extension.get("properties") or {}), "provisioningState": "Succeeded"}
    return {"name": name, "id": f"{own}/extensions/{name}", "type": kind, "location": resource.body["location"], "properties": inner}


def instance_body(cloud: Cloud, resource: Resource, one: Instance) -> Json:
    """Return the body of an instance: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/get"""
    state = state_of(resource)
    model = state.models[one.model]
    common = _common(model)
    own = f"{resource.id.text}/virtualMachines/{one.id}"
    properties: Json = {
        "latestModelApplied": one.model == state.model and one.task not in ("update", "upgrade", "resize"),
        "modelDefinitionApplied": "VirtualMachineScaleSet",
        "vmId": vm_id(cloud, resource, one),
        "hardwareProfile": common["hardware"],
        "storageProfile": instance_storage(cloud, resource, one),
        "networkProfile": {
            "networkInterfaces": [
                {"id": f"{own}/networkInterfaces/{nic}", "properties": {"primary": primary}}
                for nic, primary in common["interfaces"].items()
            ]
        },
        "networkProfileConfiguration": {"networkInterfaceConfigurations": common["network"]["networkInterfaceConfigurations"]},
        **common["rest"],
        "provisioningState": one.state,
        "timeCreated": stamp(one.created),
    }
    if common["os_profile"] is not None:
        properties["osProfile"] = {**common["os_profile"], "computerName": computer_name(model, resource.id.name, one.id)}
    if one.protect_from_scale_in or one.protect_from_actions:
        properties["protectionPolicy"] = {
            "protectFromScaleIn": one.protect_from_scale_in,
            "protectFromScaleSetActions": one.protect_from_actions,
        }
    body: Json = {
        "id": own,
        "name": name_of(resource, one),
        "type": INSTANCE,
        "location": resource.body["location"],
        "instanceId": str(one.id),
        "sku": {"name": model.size, "tier": model.rest["tier"]},
        "tags": resource.body.get("tags") or {} if one.tags is None else one.tags,
        "etag": f'"{one.tasks}"',
        "properties": properties,
    }
    if resources := [_extension(resource, own, extension) for extension in common["extensions"]]:
        body["resources"] = resources
    for name in ("identity", "plan"):
        if resource.body.get(name):
            body[name] = resource.body[name]
    return {**body, "zones": [one.zone]} if one.zone else body


_FIELDS = attrgetter(*(one.name for one in fields(Instance)))


def view_inputs(cloud: Cloud, resource: Resource, one: Instance) -> tuple[object, ...]:
    """Return everything that instance_body and instance_view read, apart from the scale set's id and body and the present time.

    While these, the id, and the body without its capacity and provisioning state are equal, so are the views: a view that reads more
    adds it here.
    """
    state = state_of(resource)
    return (state.born, state.model, state.models[one.model], one.ready <= cloud.now, _FIELDS(one))


def instance_user_data(resource: Resource, one: Instance) -> Json:
    """Return the user data of an instance's model as a property, empty without any."""
    profile = state_of(resource).models[one.model].profile
    return {USER_DATA: profile[USER_DATA]} if USER_DATA in profile else {}


def power_statuses(machine: Machine) -> list[Json]:
    """Return the provisioning state and power state of a machine."""
    status = provisioning_status(machine.state, machine.settled)
    if machine.error is not None:
        status = {**status, "code": f"ProvisioningState/failed/{machine.error['code']}", "message": machine.error["message"]}
    power = {"code": f"PowerState/{machine.power}", "level": "Info", "displayStatus": f"VM {machine.power}"}
    return [status, power] if machine.power else [status]


def guest_is_up(cloud: Cloud, machine: Machine) -> bool:
    """Return whether the guest's agent runs."""
    return machine.power == RUNNING and machine.ready <= cloud.now and not (machine.task and TASKS[machine.task].boots)


def guest_agent_view(cloud: Cloud, machine: Machine, reported: str = "") -> Json:
    """Return the status of the guest's agent, unavailable until the guest is up. reported is its time, the present time if empty."""
    up = guest_is_up(cloud, machine)
    status = {
        "code": "ProvisioningState/succeeded" if up else "ProvisioningState/Unavailable",
        "level": "Info" if up else "Warning",
        "displayStatus": "Ready" if up else "Not Ready",
        "message": "Guest Agent is running" if up else "VM status blob is found but not yet populated.",
        "time": reported or stamp(cloud.now),
    }
    return {"vmAgentVersion": AGENT if up else "Unknown", "statuses": [status]}


def guest_system(os_type: str) -> Json:
    """Return the operating system that the guest's agent reports; only that of the node images is known."""
    return {"osName": "ubuntu", "osVersion": "24.04"} if os_type == LINUX else {}


def disk_views(storage: Json, machine: Machine) -> list[Json]:
    """Return the state of each disk of a storageProfile."""
    names = [disk.get("name") for disk in (storage.get("osDisk") or {}, *(storage.get("dataDisks") or []))]
    return [{"name": name, "statuses": [provisioning_status("Succeeded", machine.settled)]} for name in names if name]


def boot_diagnostics_view(profile: Json, name: str, vm_id: str) -> Json:
    """Return the places of the console's screenshot and log, if boot diagnostics are enabled; empty ones in managed storage.

    https://learn.microsoft.com/azure/virtual-machines/boot-diagnostics
    """
    diagnostics = (profile.get("diagnosticsProfile") or {}).get("bootDiagnostics") or {}
    if not diagnostics.get("enabled"):
        return {}
    if not diagnostics.get("storageUri"):
        return {"bootDiagnostics": {}}
    container = f"bootdiagnostics-{name.replace('-', '').replace('_', '')[:9].lower()}-{vm_id}"
    base = f"{str(diagnostics['storageUri']).rstrip('/')}/{container}/{name}.{vm_id}"
    return {
        "bootDiagnostics": {
            "consoleScreenshotBlobUri": f"{base}.screenshot.bmp",
            "serialConsoleLogBlobUri": f"{base}.serialconsole.log",
        }
    }


def _extension_views(agent: Json, profile: Json, machine: Machine) -> Json:
    """Return an agent's status with its handlers of extensions, and the extensions."""
    extensions = (profile.get("extensionProfile") or {}).get("extensions") or []
    if not extensions:
        return {}
    found = [(str(one.get("name")), one.get("properties") or {}) for one in extensions]
    kinds = [
        (name, {"type": f"{one.get('publisher')}.{one.get('type')}", "typeHandlerVersion": str(one.get("typeHandlerVersion"))})
        for name, one in found
    ]
    ready = {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Ready"}
    done = provisioning_status("Succeeded", machine.settled)
    return {
        "vmAgent": {**agent, "extensionHandlers": [{**kind, "status": ready} for _, kind in kinds]},
        "extensions": [{"name": name, **kind, "statuses": [done]} for name, kind in kinds],
    }


def instance_view(cloud: Cloud, resource: Resource, one: Instance, reported: str = "") -> Json:
    """Return the instance view of an instance; reported is the time of its agent's status, the present time if empty.

    https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/get-instance-view
    """
    model = state_of(resource).models[one.model]
    storage = instance_storage(cloud, resource, one)
    view: Json = {
        "platformUpdateDomain": 0,
        "platformFaultDomain": one.fault_domain,
        "placementGroupId": placement_group(cloud, resource, one),
        "computerName": computer_name(model, resource.id.name, one.id),
        "hyperVGeneration": "V2",
        "vmAgent": guest_agent_view(cloud, one, reported),
        "disks": disk_views(storage, one),
        "statuses": power_statuses(one),
        **boot_diagnostics_view(model.profile, name_of(resource, one), vm_id(cloud, resource, one)),
    }
    if guest_is_up(cloud, one):
        view |= guest_system(model.os_type)
        view |= _extension_views(view["vmAgent"], model.profile, one)
    health = health_of(cloud, resource, one)
    if health is not None:
        level = "Info" if health == "Healthy" else "Error" if health == "Unhealthy" else "Warning"
        view["vmHealth"] = {
            "status": {"code": f"HealthState/{health.lower()}", "level": level, "displayStatus": f"The VM is {health.lower()}"}
        }
    return view
