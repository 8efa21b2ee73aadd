"""Decides which changes of a scale set Azure refuses, and which leave its instances behind the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.compute.instances import Model, model_of
from rehearsal.azure.errors import property_change_not_allowed
from rehearsal.azure.resource import Json
from rehearsal.azure.validation import at

_RESTRICTED = "https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-upgrade-scale-set#properties-with-restrictions-on-modification"
_REST = "https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/create-or-update"

FIXED: Mapping[str, tuple[str, Any, str]] = {
    "zones": ("zones", [], _RESTRICTED),
    "orchestrationMode": ("properties.orchestrationMode", None, _REST),
    "platformFaultDomainCount": ("properties.platformFaultDomainCount", None, "https://github.com/MicrosoftDocs/azure-docs/issues/108952"),
    "imageReference.publisher": ("properties.virtualMachineProfile.storageProfile.imageReference.publisher", None, _RESTRICTED),
    "imageReference.offer": ("properties.virtualMachineProfile.storageProfile.imageReference.offer", None, _RESTRICTED),
    "osDisk.managedDisk.storageAccountType": (
        "properties.virtualMachineProfile.storageProfile.osDisk.managedDisk.storageAccountType",
        None,
        _RESTRICTED,
    ),
    "osDisk.diffDiskSettings": ("properties.virtualMachineProfile.storageProfile.osDisk.diffDiskSettings", None, _REST),
    "osDisk.createOption": ("properties.virtualMachineProfile.storageProfile.osDisk.createOption", None, _REST),
    "computerNamePrefix": ("properties.virtualMachineProfile.osProfile.computerNamePrefix", None, _REST),
    "adminUsername": ("properties.virtualMachineProfile.osProfile.adminUsername", None, _REST),
    "priority": ("properties.virtualMachineProfile.priority", "Regular", _REST),
}
"""What is fixed at creation, by the name that Azure's refusal gives: where it stands in the body, what leaving it out means (None for
"as it is"), and the page that says so."""


def check_changes(old: Json, new: Json) -> None:
    """Refuse a change of what is fixed; both are whole bodies as sent. AzureError PropertyChangeNotAllowed."""
    for name, (path, absent, _) in FIXED.items():
        before, after = at(old, path), at(new, path)
        if absent is not None:
            before, after = absent if before is None else before, absent if after is None else after
        # A machine that has no such disk, user or image yet gets none either; only a value that stands may stay away.
        if after != before and not (after is None and absent is None and before is not None and _kept(path)):
            raise property_change_not_allowed(name, before, after)
    if at(new, "properties.singlePlacementGroup") is True and at(old, "properties.singlePlacementGroup") is False:
        raise property_change_not_allowed("singlePlacementGroup", False, True)
    networks = [{_network(one.subnet) for one in model_of(body).places} for body in (old, new)]
    if networks[0] != networks[1]:
        raise property_change_not_allowed("subnet", *(", ".join(sorted(one)) for one in networks))


def needs_reimage(old: Model, new: Model) -> bool:
    """Whether bringing a machine from one model to another replaces its OS disk: another image.

    New customData and SSH keys reach the guest only with a reimage, which an update does not do:
    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-upgrade-policy
    """
    return old.image != new.image


def needs_other_hardware(old: Model, new: Model) -> bool:
    """Whether it moves the machine: another VM size, or another proximity placement group."""
    return old.size.lower() != new.size.lower() or old.rest["proximityPlacementGroup"] != new.rest["proximityPlacementGroup"]


def _network(subnet: str) -> str:
    return subnet.lower().rpartition("/subnets/")[0]


def _kept(path: str) -> bool:
    """Whether a PUT that leaves a property out means it as it is; a disk's settings that are left out are taken away."""
    return "diffDiskSettings" not in path
