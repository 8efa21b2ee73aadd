"""Instance document of the metadata service: the compute and network sections of a machine.

https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service#instance-metadata
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import instances_of, state_of
from rehearsal.azure.resource import Json, Resource


def instance_document(cloud: Cloud, machine: Resource) -> Json:
    """Return the whole document of an instance of a scale set, or of a single machine."""
    return {"compute": _compute(cloud, machine), "network": {"interface": _interfaces(cloud, machine)}}


def _compute(cloud: Cloud, machine: Resource) -> Json:
    body, properties = machine.body, machine.properties
    scale_set = cloud.get(str(machine.id.parent)) if machine.id.parent else None
    profile = (scale_set.properties.get("virtualMachineProfile") or {}) if scale_set else properties
    system, storage = properties.get("osProfile") or {}, properties.get("storageProfile") or {}
    linux = system.get("linuxConfiguration") or {}
    image = storage.get("imageReference") or {}
    tags = body.get("tags") or {}
    fault_domain = instances_of(scale_set)[machine.id.name].fault_domain if scale_set else properties.get("platformFaultDomain", 0)
    return {
        "azEnvironment": "AzurePublicCloud",
        "customData": "",
        "evictionPolicy": profile.get("evictionPolicy") or "",
        "isHostCompatibilityLayerVm": "false",
        "location": body.get("location", ""),
        "name": f"{scale_set.id.name}_{machine.id.name}" if scale_set else machine.id.name,
        "offer": image.get("offer", ""),
        "osProfile": {
            "adminUsername": system.get("adminUsername", ""),
            "computerName": system.get("computerName", ""),
            "disablePasswordAuthentication": str(bool(linux.get("disablePasswordAuthentication", True))).lower(),
        },
        "osType": (storage.get("osDisk") or {}).get("osType", "Linux"),
        "placementGroupId": "",
        "plan": {"name": "", "product": "", "publisher": ""},
        "platformFaultDomain": str(fault_domain),
        "platformUpdateDomain": "0",
        "priority": profile.get("priority") or "",
        "provider": "Microsoft.Compute",
        "publicKeys": [
            {"keyData": key.get("keyData", ""), "path": key.get("path", "")} for key in (linux.get("ssh") or {}).get("publicKeys") or []
        ],
        "publisher": image.get("publisher", ""),
        "resourceGroupName": machine.id.group,
        "resourceId": machine.id.text,
        "sku": image.get("sku", ""),
        "storageProfile": _storage(storage),
        "subscriptionId": machine.id.subscription,
        "tags": ";".join(f"{key}:{value}" for key, value in tags.items()),
        "tagsList": [{"name": key, "value": value} for key, value in tags.items()],
        "userData": profile.get("userData") or "",
        "version": image.get("exactVersion") or image.get("version", ""),
        "vmId": properties.get("vmId", ""),
        "vmScaleSetName": scale_set.id.name if scale_set else "",
        "vmSize": (body.get("sku") or properties.get("hardwareProfile") or {}).get("name" if scale_set else "vmSize", ""),
        "zone": next(iter(body.get("zones") or ()), ""),
    }


def _storage(storage: Json) -> Json:
    """Return the storage section, in which every value is a string."""
    image, disk = storage.get("imageReference") or {}, storage.get("osDisk") or {}
    return {
        "dataDisks": [{"lun": str(one.get("lun", "")), "name": one.get("name", "")} for one in storage.get("dataDisks") or []],
        "imageReference": {key: image.get(key, "") for key in ("id", "offer", "publisher", "sku", "version")},
        "osDisk": {
            "caching": disk.get("caching", "None"),
            "createOption": disk.get("createOption", "FromImage"),
            "diffDiskSettings": {"option": (disk.get("diffDiskSettings") or {}).get("option", "")},
            "diskSizeGB": str(disk.get("diskSizeGB", "")),
            "managedDisk": {"id": (disk.get("managedDisk") or {}).get("id", "")},
            "name": disk.get("name", ""),
            "osType": disk.get("osType", "Linux"),
        },
        "resourceDisk": {"size": ""},
    }


def _interfaces(cloud: Cloud, machine: Resource) -> list[Json]:
    """Return every network card with its addresses, the primary address first."""
    if machine.id.parent:
        return _of_instance(cloud, machine)
    cards = (machine.properties.get("networkProfile") or {}).get("networkInterfaces") or []
    found = [cloud.find(str(card.get("id"))) for card in cards]
    return [_of_card(cloud, card) for card in found if card is not None]


def _of_instance(cloud: Cloud, machine: Resource) -> list[Json]:
    scale_set = cloud.get(str(machine.id.parent))
    one = instances_of(scale_set)[machine.id.name]
    cards: dict[str, list[tuple[bool, str, str]]] = {}
    for place, address in zip(state_of(scale_set).models[one.model].ip_configurations, one.addresses, strict=True):
        cards.setdefault(place.nic, []).append((not place.primary, str(ipaddress.IPv4Address(address)), place.subnet))
    return [_interface(cloud, f"{machine.key}/{nic}", rows) for nic, rows in cards.items()]


def _of_card(cloud: Cloud, card: Resource) -> Json:
    rows = []
    for one in card.properties.get("ipConfigurations") or []:
        properties = one.get("properties") or {}
        rows.append(
            (
                not properties.get("primary", True),
                str(properties.get("privateIPAddress", "")),
                str((properties.get("subnet") or {}).get("id", "")),
            )
        )
    return _interface(cloud, card.key, rows)


def _interface(cloud: Cloud, key: str, rows: Iterable[tuple[bool, str, str]]) -> Json:
    """Return one card; a row contains whether the address is secondary, the address, and its subnet's id."""
    ordered = sorted(rows, key=lambda row: row[0])
    subnets = dict.fromkeys(subnet for _, _, subnet in ordered)
    return {
        "ipv4": {
            "ipAddress": [{"privateIpAddress": address, "publicIpAddress": ""} for _, address, _ in ordered],
            "subnet": [_subnet(cloud, subnet) for subnet in subnets],
        },
        "ipv6": {"ipAddress": []},
        "macAddress": f"000D3A{hashlib.blake2b(key.encode(), digest_size=3).hexdigest().upper()}",
    }


def _subnet(cloud: Cloud, subnet_id: str) -> Json:
    found = cloud.find(subnet_id)
    properties = found.properties if found is not None else {}
    prefix = properties.get("addressPrefix") or next(iter(properties.get("addressPrefixes") or ()), "/")
    address, _, length = str(prefix).partition("/")
    return {"address": address, "prefix": length}
