"""Read-only views: instance views, sizes of a scale set, bodies of instances and of their network interfaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import Any

from components.plan.vm_sizes import VM_SIZES
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.health import health_of
from rehearsal.azure.compute.instances import PLACEMENT_GROUP_MACHINES, Instance, computer_name, name_of, state_of
from rehearsal.azure.compute.machine import RUNNING, TASKS, Machine
from rehearsal.azure.compute.repairs import repairs_enabled, service_state
from rehearsal.azure.compute.scale_set_body import SECRETS
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
        "statuses": [provisioning_status(str(resource.properties["provisioningState"]), resource.changed)],
    }
    if repairs_enabled(resource):
        view["orchestrationServices"] = [{"serviceName": "AutomaticRepairs", "serviceState": service_state(resource)}]
    return view


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


INSTANCE = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
INTERFACE = f"{INSTANCE}/networkInterfaces"
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


def instance_body(cloud: Cloud, resource: Resource, one: Instance) -> Json:
    """Return the body of an instance: https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/get"""
    state = state_of(resource)
    model = state.models[one.model]
    profile = model.profile
    name = name_of(resource, one)
    own = f"{resource.id.text}/virtualMachines/{one.id}"
    storage = profile.get("storageProfile") or {}
    os_profile = {key: value for key, value in (profile.get("osProfile") or {}).items() if key not in (*SECRETS, "computerNamePrefix")}
    properties: Json = {
        "latestModelApplied": one.model == state.model and one.task not in ("update", "upgrade", "resize"),
        "modelDefinitionApplied": "VirtualMachineScaleSet",
        "vmId": vm_id(cloud, resource, one),
        "hardwareProfile": {"vmSize": model.size},
        "storageProfile": {
            **storage,
            "osDisk": {
                "osType": "Linux",
                "createOption": "FromImage",
                **(storage.get("osDisk") or {}),
                "name": f"{name}_OsDisk_{one.os_disk}",
            },
            "dataDisks": [{**disk, "name": f"{name}_disk{disk.get('lun')}"} for disk in storage.get("dataDisks") or []],
        },
        "osProfile": {"allowExtensionOperations": True, **os_profile, "computerName": computer_name(model, resource.id.name, one.id)},
        "networkProfile": {
            "networkInterfaces": [
                {"id": f"{own}/networkInterfaces/{nic}", "properties": {"primary": primary}}
                for nic, primary in {item.nic: item.nic_primary for item in model.ip_configurations}.items()
            ]
        },
        "networkProfileConfiguration": {
            "networkInterfaceConfigurations": (profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or []
        },
        "diagnosticsProfile": profile.get("diagnosticsProfile") or {},
        "provisioningState": one.state,
        "timeCreated": stamp(one.created),
    }
    if one.protect_from_scale_in or one.protect_from_actions:
        properties["protectionPolicy"] = {
            "protectFromScaleIn": one.protect_from_scale_in,
            "protectFromScaleSetActions": one.protect_from_actions,
        }
    body: Json = {
        "id": own,
        "name": name,
        "type": INSTANCE,
        "location": resource.body["location"],
        "instanceId": str(one.id),
        "sku": {"name": model.size, "tier": model.rest["tier"]},
        "tags": resource.body.get("tags") or {} if one.tags is None else one.tags,
        "properties": properties,
    }
    return {**body, "zones": [one.zone]} if one.zone else body


def power_statuses(machine: Machine) -> list[Json]:
    """Return the provisioning state and power state of a machine."""
    status = provisioning_status(machine.state, machine.settled)
    if machine.error is not None:
        status = {**status, "code": f"ProvisioningState/failed/{machine.error['code']}", "message": machine.error["message"]}
    power = {"code": f"PowerState/{machine.power}", "level": "Info", "displayStatus": f"VM {machine.power}"}
    return [status, power] if machine.power else [status]


def guest_agent_view(cloud: Cloud, machine: Machine) -> Json:
    """Return the status of the guest's agent, unavailable until the guest is up."""
    up = machine.power == RUNNING and machine.ready <= cloud.now and not (machine.task and TASKS[machine.task].boots)
    status = {
        "code": "ProvisioningState/succeeded" if up else "ProvisioningState/Unavailable",
        "level": "Info" if up else "Warning",
        "displayStatus": "Ready" if up else "Not Ready",
        "message": "Guest Agent is running" if up else "VM status blob is found but not yet populated.",
        "time": stamp(cloud.now),
    }
    return {"vmAgentVersion": AGENT if up else "Unknown", "statuses": [status]}


def instance_view(cloud: Cloud, resource: Resource, one: Instance) -> Json:
    """Return the instance view of an instance:
    https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-set-vms/get-instance-view
    """
    model = state_of(resource).models[one.model]
    name = name_of(resource, one)
    view: Json = {
        "platformUpdateDomain": 0,
        "platformFaultDomain": one.fault_domain,
        "placementGroupId": placement_group(cloud, resource, one),
        "computerName": computer_name(model, resource.id.name, one.id),
        "hyperVGeneration": "V2",
        "vmAgent": guest_agent_view(cloud, one),
        "disks": [{"name": f"{name}_OsDisk_{one.os_disk}", "statuses": [provisioning_status("Succeeded", one.settled)]}],
        "statuses": power_statuses(one),
    }
    health = health_of(cloud, resource, one)
    if health is not None:
        level = "Info" if health == "Healthy" else "Error" if health == "Unhealthy" else "Warning"
        view["vmHealth"] = {
            "status": {"code": f"HealthState/{health.lower()}", "level": level, "displayStatus": f"The VM is {health.lower()}"}
        }
    return view


def instance_interfaces(resource: Resource, one: Instance) -> Iterator[Json]:
    """Yield an instance's network interfaces with their addresses.

    https://learn.microsoft.com/rest/api/virtualnetwork/network-interface-in-vm-ss/list-virtual-machine-scale-set-vm-network-interfaces
    """
    model = state_of(resource).models[one.model]
    own = f"{resource.id.text}/virtualMachines/{one.id}"
    configured = (model.profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or []
    addresses = iter(one.addresses)
    for nic in configured:
        inner = nic.get("properties") or {}
        text = f"{own}/networkInterfaces/{nic['name']}"
        configurations = inner.get("ipConfigurations") or []
        properties: Json = {
            "provisioningState": "Succeeded",
            "primary": bool(inner.get("primary", len(configured) == 1)),
            "enableAcceleratedNetworking": bool(inner.get("enableAcceleratedNetworking", False)),
            "enableIPForwarding": bool(inner.get("enableIPForwarding", False)),
            "virtualMachine": {"id": own},
            "ipConfigurations": [_configuration(text, item, next(addresses), len(configurations)) for item in configurations],
        }
        if inner.get("networkSecurityGroup"):
            properties["networkSecurityGroup"] = inner["networkSecurityGroup"]
        yield {"name": nic["name"], "id": text, "type": INTERFACE, "location": resource.body["location"], "properties": properties}


def _configuration(nic: str, item: Mapping[str, Any], address: int, count: int) -> Json:
    inner = item.get("properties") or {}
    properties: Json = {
        "provisioningState": "Succeeded",
        "privateIPAddress": str(IPv4Address(address)),
        "privateIPAllocationMethod": "Dynamic",
        "privateIPAddressVersion": inner.get("privateIPAddressVersion", "IPv4"),
        "subnet": {"id": inner["subnet"]["id"]},
        "primary": bool(inner.get("primary", count == 1)),
    }
    for name in ("loadBalancerBackendAddressPools", "applicationSecurityGroups"):
        if inner.get(name):
            properties[name] = inner[name]
    return {"name": item["name"], "id": f"{nic}/ipConfigurations/{item['name']}", "properties": properties}
