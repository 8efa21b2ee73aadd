"""Images of machines: which exist, and which a VM size can boot.

https://learn.microsoft.com/azure/virtual-machines/generation-2,
https://learn.microsoft.com/azure/virtual-machines/linux/cli-ps-findimage
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rehearsal.azure.arm_id import parse
from rehearsal.azure.errors import AzureError
from rehearsal.azure.restrictions.disks import SIZE_LIMITS
from rehearsal.azure.restrictions.machines import PROFILES, in_profile, profile_of, size_name
from rehearsal.azure.restrictions.restriction import PLACEHOLDER, Fields, Restriction, Subject, Where
from rehearsal.azure.vm_size_names import NamedSize, vm_size

GALLERY_IMAGE = "microsoft.compute/galleries/images"
GALLERY_IMAGE_GIB = 64
"""Size of a gallery image whose source has no known size: that of microsoft-dsvm's ubuntu-hpc images."""
GENERATION_2 = re.compile(r"gen2|gensecond|-g2|_g2|azure-edition|cvm|arm64|aarch64|gb200")
"""Parts of a SKU that mark an image of generation 2."""


@dataclass(frozen=True)
class ImageFacts:
    """An image: generation (V1 or V2), size in GiB, disk controllers and architecture."""

    generation: str
    gib: int
    controllers: tuple[str, ...]
    architecture: str = "x64"


@dataclass(frozen=True)
class PlatformOffer:
    """An offer of the marketplace: its SKUs, size in GiB, SKUs that are generation 2 without a mark, and SKUs with an NVMe driver.

    The three fields of SKUs are regular expressions in lower case.
    """

    skus: str
    gib: int
    generation_2: str = "(?!)"
    nvme: str = "(?!)"


_LINUX_GIB, _WINDOWS_GIB = 30, 127
_ANY = ".+"
PLATFORM: Mapping[tuple[str, str], PlatformOffer] = {
    ("microsoft-dsvm", "ubuntu-hpc"): PlatformOffer(r"(1604|1804|2004|2204|2404)(-.*)?", 64, _ANY, r"(2204|2404).*"),
    ("microsoft-dsvm", "ubuntu-1804"): PlatformOffer(_ANY, _LINUX_GIB),
    ("microsoft-dsvm", "ubuntu-2004"): PlatformOffer(_ANY, _LINUX_GIB),
    ("microsoft-dsvm", "aks-gpu"): PlatformOffer(_ANY, _LINUX_GIB),
    ("microsoft-dsvm", "dsvm-win-2016"): PlatformOffer(_ANY, _WINDOWS_GIB),
    ("microsoft-dsvm", "dsvm-win-2019"): PlatformOffer(_ANY, _WINDOWS_GIB),
    ("microsoft-dsvm", "dsvm-win-2022"): PlatformOffer(_ANY, _WINDOWS_GIB),
    ("microsoft-ads", "standard-data-science-vm"): PlatformOffer(_ANY, _LINUX_GIB),
    ("microsoft-ads", "windows-data-science-vm"): PlatformOffer(_ANY, _LINUX_GIB),
    ("microsoft-ads", "linux-data-science-vm"): PlatformOffer(_ANY, _LINUX_GIB),
    ("microsoft-aks", "aks"): PlatformOffer(_ANY, _LINUX_GIB),
    ("canonical", "ubuntuserver"): PlatformOffer(r"\d\d[._]\d\d([._-].*)?", _LINUX_GIB),
    ("canonical", "0001-com-ubuntu-server-focal"): PlatformOffer(r"20_04.*", _LINUX_GIB),
    ("canonical", "0001-com-ubuntu-server-jammy"): PlatformOffer(r"22_04.*", _LINUX_GIB, nvme=r"22_04.*gen2"),
    ("canonical", "0001-com-ubuntu-minimal-jammy"): PlatformOffer(r"minimal-22_04.*", _LINUX_GIB, nvme=r".*gen2"),
    ("canonical", "0001-com-ubuntu-pro-jammy"): PlatformOffer(r"pro-.*22_04.*", _LINUX_GIB, nvme=r".*gen2"),
    ("canonical", "0001-com-ubuntu-pro-focal"): PlatformOffer(r"pro-.*20_04.*", _LINUX_GIB),
    ("canonical", "0001-com-ubuntu-confidential-vm-focal"): PlatformOffer(r"20_04.*", _LINUX_GIB),
    ("canonical", "0001-com-ubuntu-confidential-vm-jammy"): PlatformOffer(r"22_04.*", _LINUX_GIB, nvme=_ANY),
    ("canonical", "ubuntu-24_04-lts"): PlatformOffer(
        r"(server|minimal|ubuntu-pro|cvm|pro|ubuntu-pro-minimal)(-.*)?", _LINUX_GIB, r"(?!.*gen1).*", r"(?!.*gen1).*"
    ),
    ("canonical", "ubuntu-22_04-lts"): PlatformOffer(_ANY, _LINUX_GIB, r"(?!.*gen1).*", r"(?!.*gen1).*"),
    ("microsoftwindowsserver", "windowsserver"): PlatformOffer(
        r"(2008-r2|2012|2016|2019|2022|2025|20h2|datacenter).*", _LINUX_GIB, nvme=r"(2019|2022|2025).*"
    ),
    ("microsoftwindowsserver", "windowsserver-gen2preview-preview"): PlatformOffer(_ANY, _LINUX_GIB, _ANY),
    ("microsoftwindowsserver", "microsoftserveroperatingsystems-previews"): PlatformOffer(_ANY, _LINUX_GIB),
    ("microsoftwindowsserver", "2019-datacenter-cvm"): PlatformOffer(_ANY, _LINUX_GIB, _ANY),
    ("microsoftwindowsserver", "2022-datacenter-cvm"): PlatformOffer(_ANY, _LINUX_GIB, _ANY),
    ("microsoftwindowsdesktop", "windows-10"): PlatformOffer(_ANY, _WINDOWS_GIB),
    ("microsoftwindowsdesktop", "windows-11"): PlatformOffer(_ANY, _WINDOWS_GIB, _ANY, _ANY),
    ("microsoftsqlserver", ""): PlatformOffer(_ANY, _LINUX_GIB),
    ("microsoftcblmariner", "cbl-mariner"): PlatformOffer(_ANY, 1),
    ("microsoftcblmariner", "azure-linux-3"): PlatformOffer(_ANY, 1, nvme=_ANY),
    ("redhat", "rhel"): PlatformOffer(r"\d.*", 2, nvme=r"(8|9|10).*"),
    ("redhat", ""): PlatformOffer(_ANY, 2, nvme=_ANY),
    ("suse", ""): PlatformOffer(_ANY, _LINUX_GIB, nvme=_ANY),
    ("debian", ""): PlatformOffer(_ANY, _LINUX_GIB, nvme=_ANY),
    ("openlogic", "centos"): PlatformOffer(r"\d.*", _LINUX_GIB),
    ("openlogic", "centos-hpc"): PlatformOffer(_ANY, _LINUX_GIB),
    ("openlogic", "centos-lvm"): PlatformOffer(_ANY, _LINUX_GIB),
    ("almalinux", ""): PlatformOffer(_ANY, _LINUX_GIB, nvme=_ANY),
    ("oracle", ""): PlatformOffer(_ANY, _LINUX_GIB, nvme=_ANY),
    ("kinvolk", ""): PlatformOffer(_ANY, _LINUX_GIB, nvme=_ANY),
    ("resf", ""): PlatformOffer(_ANY, 10, nvme=_ANY),
    ("nvidia", ""): PlatformOffer(_ANY, _LINUX_GIB, nvme=_ANY),
    ("ubuntuserver", "2022-datacenter-cvm"): PlatformOffer(_ANY, _LINUX_GIB, _ANY),
    ("azuredatabricks", "databricks"): PlatformOffer(_ANY, _LINUX_GIB),
}
"""Images of the marketplace that the model knows, by publisher and offer in lower case; an empty offer is every offer of a publisher.
https://learn.microsoft.com/azure/virtual-machines/linux/cli-ps-findimage, https://learn.microsoft.com/azure/virtual-machines/azure-hpc-vm-images
"""


def _platform_parts(reference: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(reference.get("publisher") or ""), str(reference.get("offer") or ""), str(reference.get("sku") or "")


def _platform_offer(reference: Mapping[str, Any]) -> PlatformOffer | None:
    publisher, offer, sku = (one.lower() for one in _platform_parts(reference))
    found = PLATFORM.get((publisher, offer)) or PLATFORM.get((publisher, ""))
    return found if found and re.fullmatch(found.skus, sku) else None


def image_facts(subject: Subject, reference: Mapping[str, Any]) -> ImageFacts | None:
    """Return what is known of an image; None for an image outside the model."""
    if text := str(reference.get("id") or ""):
        return _gallery_facts(subject, text)
    offer, sku = _platform_offer(reference), str(reference.get("sku") or "").lower()
    if offer is None:
        return None
    second = bool(re.fullmatch(offer.generation_2, sku) or GENERATION_2.search(sku))
    controllers = ("SCSI", "NVMe") if second and re.fullmatch(offer.nvme, sku) else ("SCSI",)
    architecture = "Arm64" if re.search("arm64|aarch64|gb200", sku) else "x64"
    return ImageFacts("V2" if second else "V1", offer.gib, controllers, architecture)


def _gallery_facts(subject: Subject, text: str) -> ImageFacts | None:
    """Return the facts of an image definition, also by the id of one of its versions."""
    try:
        arm_id = parse(text)
    except AzureError:
        return None
    definition = arm_id.parent if arm_id.type.lower() == f"{GALLERY_IMAGE}/versions" else text
    found = subject.cloud.find(definition or "")
    if found is None or found.id.type.lower() != GALLERY_IMAGE:
        return None
    features = {str(one.get("name")): str(one.get("value")) for one in found.properties.get("features") or []}
    controllers = tuple(one.strip() for one in features.get("DiskControllerTypes", "SCSI").split(","))
    return ImageFacts(str(found.properties["hyperVGeneration"]), GALLERY_IMAGE_GIB, controllers, str(found.properties["architecture"]))


def _missing_platform_image(value: Any, subject: Subject) -> Fields | None:
    parts = _platform_parts(value)
    if subject.previous is not None:
        # Publisher and offer of an existing machine cannot change, which its type refuses with another code.
        known = profile_of(replace(subject, body=subject.previous.body)).get("storageProfile") or {}
        if _platform_parts(known.get("imageReference") or {})[:2] != parts[:2]:
            return None
    if value.get("id") or not any(parts) or any(PLACEHOLDER.fullmatch(one) for one in parts) or _platform_offer(value):
        return None
    return {"value": ":".join((*parts, str(value.get("version") or "latest")))}


def _no_image(value: Any, _subject: Subject) -> Fields | None:
    disk = value.get("osDisk") or {}
    given = value.get("imageReference") or disk.get("image") or disk.get("vhd")
    return {} if disk.get("createOption") == "FromImage" and not given else None


def _no_os_profile(value: Any, _subject: Subject) -> Fields | None:
    reference = (value.get("storageProfile") or {}).get("imageReference") or {}
    return {} if reference.get("publisher") and not value.get("osProfile") else None


def _bad_version(value: Any, _subject: Subject) -> Fields | None:
    text = str(value)
    return None if text == "latest" or PLACEHOLDER.fullmatch(text) or re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?", text) else {"value": text}


def _wrong_generation(value: Any, subject: Subject) -> Fields | None:
    facts, limits = image_facts(subject, value), SIZE_LIMITS.get(size_name(subject).lower())
    wrong = facts is not None and limits is not None and facts.generation not in limits.generations
    return {"size": size_name(subject), "value": facts.generation[-1]} if wrong and facts else None


def _size_controller(subject: Subject) -> str:
    """Return the disk controller of the VM size, empty if it is unknown."""
    found = vm_size(size_name(subject))
    return found.disk_controller if found is not None and not isinstance(found, NamedSize) else ""


def _wrong_controller(value: Any, subject: Subject) -> Fields | None:
    facts, controller = image_facts(subject, value), _size_controller(subject)
    wrong = facts is not None and controller and controller not in facts.controllers
    return {"value": size_name(subject)} if wrong else None


def _unsupported_controller(value: Any, subject: Subject) -> Fields | None:
    controller = _size_controller(subject)
    return {"value": value, "size": size_name(subject)} if controller and value != controller else None


def _wrong_architecture(value: Any, subject: Subject) -> Fields | None:
    """Refuse an image for Arm on another size. The opposite is not refused, because Microsoft's examples show it."""
    facts, size = image_facts(subject, value), size_name(subject)
    wrong = size and facts is not None and facts.architecture == "Arm64" and not _ARM_SIZE.match(size)
    return {"size": size, "own": "x64", "value": "Arm64"} if wrong else None


def _small_os_disk(value: Any, subject: Subject) -> Fields | None:
    reference = (profile_of(subject).get("storageProfile") or {}).get("imageReference")
    facts = image_facts(subject, reference) if isinstance(reference, Mapping) else None
    return {"value": value, "gib": facts.gib} if facts and isinstance(value, int) and value < facts.gib else None


_ARM_SIZE = re.compile(r"Standard_[A-Z]+\d+(-\d+)?[a-z]*p[a-z]*_")
_BOOT = "https://learn.microsoft.com/azure/virtual-machines/generation-2#generation-2-vm-sizes"
_REFERENCE = in_profile("storageProfile.imageReference")
ROWS: tuple[Restriction, ...] = (
    Restriction(
        "imageReference",
        _REFERENCE,
        Where("an image of the marketplace that the model knows", _missing_platform_image),
        "The platform image '{value}' is not available. Verify that all fields in the storage profile are correct. For more details about "
        "storage profile information, please refer to https://aka.ms/storageprofile",
        "https://github.com/clear-code/firefox-support-common/pull/31",
        "PlatformImageNotFound",
        404,
    ),
    Restriction(
        "imageReference missing",
        in_profile("storageProfile"),
        Where("with an imageReference if the OS disk's createOption is FromImage", _no_image),
        "Required parameter 'imageReference' is missing (null).",
        "https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#imagereference",
        target="imageReference",
        creation_only=True,
        code_assumed=True,
    ),
    Restriction(
        "osProfile missing",
        PROFILES,
        Where("with an osProfile for an image of the marketplace", _no_os_profile),
        "Required parameter 'osProfile' is missing (null).",
        "https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#osprofile",
        target="osProfile",
        creation_only=True,
        code_assumed=True,
    ),
    Restriction(
        "imageReference.version",
        in_profile("storageProfile.imageReference.version"),
        Where("latest, or Major.Minor.Build", _bad_version),
        "The value '{value}' of parameter 'imageReference.version' is invalid. The allowed formats are Major.Minor.Build or 'latest'.",
        "https://learn.microsoft.com/rest/api/compute/virtual-machines/create-or-update#imagereference",
        code_assumed=True,
    ),
    Restriction(
        "image generation",
        _REFERENCE,
        Where("a generation that the VM size can boot", _wrong_generation),
        "The selected VM size '{size}' cannot boot Hypervisor Generation '{value}'. If this was a Create operation please check that the "
        "Hypervisor Generation of the Image matches the Hypervisor Generation of the selected VM Size. If this was an Update operation "
        "please select a Hypervisor Generation '{value}' VM Size. For more information, see https://aka.ms/azuregen2vm",
        "https://github.com/loft-sh/devpod/issues/731",
        "BadRequest",
        target="imageReference",
    ),
    Restriction(
        "image disk controller",
        _REFERENCE,
        Where("a disk controller of the VM size", _wrong_controller),
        "The VM size '{value}' cannot boot with OS image or disk. Please check that disk controller types supported by the OS image or "
        "disk is one of the supported disk controller types for the VM size '{value}'. Please query sku api at "
        "https://aka.ms/azure-compute-skus  to determine supported disk controller types for the VM size.",
        "https://github.com/kubernetes-sigs/image-builder/pull/1875",
        target="vmSize",
    ),
    Restriction(
        "diskControllerType",
        in_profile("storageProfile.diskControllerType"),
        Where("a disk controller of the VM size", _unsupported_controller),
        "The VM size '{size}' cannot boot with DiskControllerType '{value}'. Please check that the disk controller type provided is one of "
        "the supported disk controller types for the VM size '{size}'. Please query sku api at https://aka.ms/azure-compute-skus  to "
        "determine supported disk controller types for the VM size.",
        "https://github.com/Azure/FederalAVD/issues/20",
        target="storageProfile.diskControllerType",
    ),
    Restriction(
        "image architecture",
        _REFERENCE,
        Where("the architecture of the VM size", _wrong_architecture),
        "Cannot create a VM of size '{size}' because this VM size only supports a CPU Architecture of '{own}', but an image or disk with "
        "CPU Architecture '{value}' was given. Please check that the CPU Architecture of the image or disk is compatible with that of the "
        "VM size.",
        _BOOT,
        "BadRequest",
        target="imageReference",
        code_assumed=True,
    ),
    Restriction(
        "OS disk of an image",
        in_profile("storageProfile.osDisk.diskSizeGB"),
        Where("at least the size of the image", _small_os_disk),
        "The specified disk size {value} GB is smaller than the size of the corresponding disk in the VM image: {gib} GB. This is not "
        "allowed. Please choose equal or greater size or do not specify an explicit size.",
        "https://github.com/Azure/avdaccelerator/issues/523",
        "OperationNotAllowed",
        409,
        target="osDisk.diskSizeGB",
    ),
)
