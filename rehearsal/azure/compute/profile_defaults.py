"""Values that Azure adds to profiles of machines that leave them out: of the guest, the disks and the network interfaces.

https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update,
https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/create-or-update and their examples in
https://github.com/Azure/azure-rest-api-specs/tree/main/specification/compute
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json

SECRETS = ("customData", "adminPassword")
"""Properties of osProfile that Azure accepts and never returns."""
USER_DATA = "userData"
"""Property of a profile that Azure returns only for $expand=userData: https://learn.microsoft.com/azure/virtual-machines/user-data"""
LINUX, WINDOWS = "Linux", "Windows"
IMAGE_GIB = {LINUX: 64, WINDOWS: 127}
"""Size of an OS disk whose image has no size: that of microsoft-dsvm's ubuntu-hpc images, and that of Microsoft's Windows images."""
_WINDOWS_PUBLISHERS = ("microsoftwindows", "microsoftsqlserver", "microsoftvisualstudio")
_WINDOWS_WORDS = ("windows", "-datacenter")
_PATCHES = {LINUX: "ImageDefault", WINDOWS: "AutomaticByOS"}


def expands(query: Mapping[str, str], part: str) -> bool:
    """Return whether $expand requests a part of an answer: instanceView or userData, in any capitals."""
    return part.lower() in (one.strip() for one in str(query.get("$expand", "")).lower().split(","))


def os_type(cloud: Cloud, storage: Json, os_profile: Json) -> str:
    """Return the operating system of a machine: that of its disk, its configuration or its image; Linux for an unknown image."""
    image = storage.get("imageReference") or {}
    if given := (storage.get("osDisk") or {}).get("osType"):
        return str(given)
    if os_profile.get("linuxConfiguration"):
        return LINUX
    if os_profile.get("windowsConfiguration"):
        return WINDOWS
    text = "/".join(str(image.get(name) or "") for name in ("publisher", "offer", "sku")).lower()
    if text.startswith(_WINDOWS_PUBLISHERS) or any(word in text for word in _WINDOWS_WORDS):
        return WINDOWS
    return _of_gallery_image(cloud, str(image.get("id") or "")) or LINUX


def _of_gallery_image(cloud: Cloud, text: str) -> str:
    """Return the operating system of a gallery image in the model, empty for any other image."""
    try:
        arm_id = parse(text)
    except AzureError:
        return ""
    definition = "/".join(text.split("/")[:11]) if arm_id.type.lower().startswith("microsoft.compute/galleries/images") else ""
    found = cloud.resources.get(definition.lower())
    return str(found.properties.get("osType") or "") if found is not None else ""


def completed_os_profile(given: Json, kind: str, *, patches: bool = False) -> Json:
    """Return an osProfile with Azure's defaults and without secrets; patches adds patchSettings, which only machines have."""
    profile = {name: value for name, value in given.items() if name not in SECRETS}
    agent: Json = {"provisionVMAgent": True}
    if kind == WINDOWS:
        name, own = "windowsConfiguration", {**agent, "enableAutomaticUpdates": True}
    else:
        name, own = "linuxConfiguration", {"disablePasswordAuthentication": False, **agent}
    known = {**own, **(profile.get(name) or {})}
    known = {"enableVMAgentPlatformUpdates": False, **known}
    if patches:
        settings = {"patchMode": _PATCHES[kind], "assessmentMode": "ImageDefault"}
        known["patchSettings"] = {**settings, **(known.get("patchSettings") or {})}
    return {"secrets": [], "allowExtensionOperations": True, "requireGuestProvisionSignal": True, **profile, name: known}


def is_ephemeral(os_disk: Json) -> bool:
    """Return whether an OS disk is on the host: https://learn.microsoft.com/azure/virtual-machines/ephemeral-os-disks"""
    return bool((os_disk.get("diffDiskSettings") or {}).get("option"))


def completed_disk(given: Json, premium: bool) -> Json:
    """Return a managed disk's entry with its storage type, and the caching that follows from it; another disk as it is."""
    if "diffDiskSettings" in given or "vhd" in given:
        return {"caching": "None", **given}
    managed = {"storageAccountType": "Premium_LRS" if premium else "Standard_LRS", **(given.get("managedDisk") or {})}
    default = "ReadOnly" if str(managed["storageAccountType"]).startswith("Premium_") else "None"
    return {"caching": default, **given, "managedDisk": managed}


def premium_storage(size: str) -> bool:
    """Return whether a size of this name supports premium storage: its features contain an s, or its older series ends with one.

    https://learn.microsoft.com/azure/virtual-machines/vm-naming-conventions
    """
    name = size.lower().split("_")[1] if "_" in size else ""
    return "s" in name


def completed_storage(given: Json, kind: str, size: str) -> Json:
    """Return a storageProfile with Azure's defaults for an operating system and a VM size."""
    premium = premium_storage(size)
    os_disk = completed_disk({"osType": kind, "createOption": "FromImage", **(given.get("osDisk") or {})}, premium)
    if os_disk["createOption"] == "FromImage" and "vhd" not in os_disk:
        os_disk = {"diskSizeGB": IMAGE_GIB[kind], **os_disk}
    return {**given, "osDisk": os_disk, "dataDisks": [completed_disk(disk, premium) for disk in given.get("dataDisks") or []]}


def completed_network(given: Json) -> Json:
    """Return a networkProfile of a scale set with Azure's defaults."""
    configurations = given.get("networkInterfaceConfigurations") or []
    return {**given, "networkInterfaceConfigurations": [_completed_interface(one) for one in configurations]}


def _completed_interface(one: Json) -> Json:
    inner = one.get("properties") or {}
    own: dict[str, Any] = {
        "enableAcceleratedNetworking": False,
        "disableTcpStateTracking": False,
        "enableIPForwarding": False,
        **inner,
        "dnsSettings": {"dnsServers": [], **(inner.get("dnsSettings") or {})},
        "ipConfigurations": [
            {**item, "properties": {"privateIPAddressVersion": "IPv4", **(item.get("properties") or {})}}
            for item in inner.get("ipConfigurations") or []
        ],
    }
    return {**one, "properties": own}
