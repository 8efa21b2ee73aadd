"""Published rules for scale sets: durations, placement groups, fault domains, addresses, health, Spot, notices, fixed properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from components.plan.vm_sizes import VmSize
from rehearsal.azure.compute import health
from rehearsal.azure.compute.disks import check_os_disk, is_managed
from rehearsal.azure.compute.instances import PLACEMENT_GROUP_MACHINES, model_of
from rehearsal.azure.errors import AzureError, conflict, invalid, not_modelled, property_change_not_allowed
from rehearsal.azure.quota import size_of
from rehearsal.azure.resource import Json
from rehearsal.azure.validation import required_location, value_at

_SPAN = re.compile(r"PT(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,7})S)?")


def span_seconds(text: object, target: str) -> float:
    """Return the seconds of an ISO 8601 duration of hours, minutes and seconds; AzureError InvalidParameter with the property's name."""
    found = _SPAN.fullmatch(str(text))
    if found is None or str(text) == "PT":
        raise invalid(f"The value '{text}' of parameter '{target}' is not a valid ISO 8601 duration, such as PT10M.", target)
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(hours * 3_600 + minutes * 60 + seconds)


def bounded_span_seconds(text: object, target: str, least: float, most: float) -> float:
    """Return the seconds of a duration between two bounds, in seconds; AzureError InvalidParameter."""
    seconds = span_seconds(text, target)
    if not least <= seconds <= most:
        message = (
            f"The value '{text}' of parameter '{target}' is out of range. The value must be between PT{least / 60:.0f}M and "
            f"PT{most / 60:.0f}M inclusive."
        )
        raise invalid(message, target)
    return seconds


_DOCS = "https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets"
GALLERY_MACHINES, MANAGED_IMAGE_MACHINES = 1_000, 600
"""Machines of a set of several placement groups, by its image:
https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-placement-groups
"""
ADDRESSES_PER_NIC = 256
"""https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"""
NOTICE_SECONDS = (300.0, 900.0)
"""https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-terminate-notification"""
GRACE_SECONDS = (600.0, 5_400.0)
"""https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-automatic-instance-repairs"""


def check_scale_set(body: Json) -> None:
    """Refuse an invalid scale set; the body is complete."""
    required_location(body)
    properties = body.get("properties") or {}
    _check_mode(properties)
    size = size_of(str((body.get("sku") or {}).get("name") or ""), str(body["location"]))
    profile = _required(properties, "virtualMachineProfile", "properties")
    _check_capacity(body, properties, profile)
    _check_spreading(body, properties)
    check_network(profile)
    _check_profile(profile, size)
    _check_repairs(properties, profile)
    _check_upgrades(properties, profile)


def requested_capacity(body: Json) -> int:
    """Return sku.capacity, 0 without one."""
    capacity = (body.get("sku") or {}).get("capacity", 0)
    if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 0:
        raise invalid(f"The value '{capacity}' of parameter 'sku.capacity' is not a whole number of at least 0.", "sku.capacity")
    return capacity


def _required(body: Json, name: str, where: str) -> Json:
    inner = body.get(name)
    if not isinstance(inner, dict) or not inner:
        raise invalid(f"Required parameter '{where}.{name}' is missing (null).", name)
    return inner


def _check_mode(properties: Json) -> None:
    mode = properties.get("orchestrationMode")
    if mode != "Uniform":
        raise not_modelled(f"scale sets of orchestrationMode '{mode}', only 'Uniform' ones", "orchestrationMode")


def _check_capacity(body: Json, properties: Json, profile: Json) -> None:
    capacity = requested_capacity(body)
    image = (profile.get("storageProfile") or {}).get("imageReference") or {}
    if properties.get("singlePlacementGroup", True):
        bound, hint = PLACEMENT_GROUP_MACHINES, "with singlePlacementGroup true; set it to false, or make another scale set"
    elif is_managed(image):
        bound, hint = MANAGED_IMAGE_MACHINES, "on a managed image; use a gallery image, or make another scale set"
    else:
        bound, hint = GALLERY_MACHINES, "in any scale set; make another one"
    if capacity > bound:
        message = (
            f"The value '{capacity}' of parameter 'sku.capacity' is out of range: at most {bound} machines {hint}: {_DOCS}-placement-groups"
        )
        raise invalid(message, "sku.capacity")


def _check_spreading(body: Json, properties: Json) -> None:
    zones = body.get("zones") or []
    if len(set(zones)) != len(zones) or not set(zones) <= {"1", "2", "3"}:
        raise invalid(f"The zones {zones} are not each once one of '1', '2', '3'.", "zones", "InvalidAvailabilityZone")
    count = properties.get("platformFaultDomainCount", 1 if zones else 5)
    allowed = (1, 5) if zones else (1, 2, 3, 4, 5)
    if count not in allowed:
        message = (
            f"The value '{count}' of parameter 'platformFaultDomainCount' is not one of {allowed} for a "
            f"{'zonal' if zones else 'regional'} scale set ({_DOCS}-manage-fault-domains)."
        )
        raise invalid(message, "platformFaultDomainCount")


def check_network(profile: Json) -> None:
    """Require one primary NIC, one primary ipConfiguration on each NIC, and subnets of one virtual network."""
    nics = (profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or []
    if not nics:
        raise invalid("Required parameter 'networkInterfaceConfigurations' is missing (null).", "networkInterfaceConfigurations")
    _one_primary([nic.get("properties") or {} for nic in nics], "networkInterfaceConfigurations")
    _each_named(nics, "networkInterfaceConfigurations")
    networks = set()
    for nic in nics:
        configurations = (nic.get("properties") or {}).get("ipConfigurations") or []
        if not configurations:
            raise invalid(f"NIC '{nic.get('name')}' has no ipConfigurations.", "ipConfigurations")
        if len(configurations) > ADDRESSES_PER_NIC:
            message = f"NIC '{nic.get('name')}' has {len(configurations)} ipConfigurations, of at most {ADDRESSES_PER_NIC}."
            raise invalid(message, "ipConfigurations")
        _one_primary([one.get("properties") or {} for one in configurations], "ipConfigurations")
        _each_named(configurations, "ipConfigurations")
        for one in configurations:
            subnet = ((one.get("properties") or {}).get("subnet") or {}).get("id")
            if not subnet:
                raise invalid(f"Required parameter 'subnet' of ipConfiguration '{one.get('name')}' is missing (null).", "subnet")
            networks.add(str(subnet).lower().rpartition("/subnets/")[0])
    if len(networks) > 1:
        message = f"All subnets of a scale set must be of one virtual network, and these are of {len(networks)}."
        raise invalid(message, "subnet", "SubnetsNotInSameVnet")


def _one_primary(items: list[Json], what: str) -> None:
    primary = sum(1 for one in items if one.get("primary"))
    if primary == 1 or (len(items) == 1 and "primary" not in items[0]):
        return
    raise invalid(f"Exactly one of {what} must be primary; of these {len(items)}, {primary} are.", what)


def _each_named(items: list[Json], what: str) -> None:
    names = [str(one.get("name") or "").lower() for one in items]
    if "" in names or len(set(names)) != len(names):
        raise invalid(f"Each of {what} needs a name of its own.", what)


def _check_profile(profile: Json, size: VmSize) -> None:
    priority = profile.get("priority", "Regular")
    if priority not in ("Regular", "Low", "Spot", "SpotPlus"):
        raise invalid(f"The value '{priority}' of parameter 'priority' is not one of Regular, Low, Spot, SpotPlus.", "priority")
    spot = priority != "Regular"
    if not spot and ("evictionPolicy" in profile or "billingProfile" in profile):
        raise conflict("OperationNotAllowed", "evictionPolicy and billingProfile are for priority Spot only.", "evictionPolicy")
    deallocates = spot and profile.get("evictionPolicy", "Deallocate") == "Deallocate"
    check_os_disk((profile.get("storageProfile") or {}).get("osDisk") or {}, size, deallocates=deallocates)
    notice = (profile.get("scheduledEventsProfile") or {}).get("terminateNotificationProfile") or {}
    if notice.get("enable"):
        bounded_span_seconds(notice.get("notBeforeTimeout", "PT5M"), "terminateNotificationProfile.notBeforeTimeout", *NOTICE_SECONDS)
        if spot:
            message = f"Terminate notifications cannot be enabled on Spot instances ({_DOCS}-terminate-notification)."
            raise conflict("OperationNotAllowed", message, "terminateNotificationProfile")


def _check_repairs(properties: Json, profile: Json) -> None:
    source = health.source_of(profile)
    policy = properties.get("automaticRepairsPolicy") or {}
    if not policy.get("enabled"):
        return
    if source is None:
        message = "Automatic repairs need the Application Health extension or a load balancer's health probe."
        raise invalid(message, "automaticRepairsPolicy")
    bounded_span_seconds(policy.get("gracePeriod", "PT10M"), "automaticRepairsPolicy.gracePeriod", *GRACE_SECONDS)
    if policy.get("repairAction", "Replace") not in ("Replace", "Reimage", "Restart"):
        raise invalid(
            f"The value '{policy['repairAction']}' is not one of Replace, Reimage, Restart.", "automaticRepairsPolicy.repairAction"
        )


def _check_upgrades(properties: Json, profile: Json) -> None:
    policy = properties.get("upgradePolicy") or {}
    mode = policy.get("mode")
    if mode not in ("Manual", "Automatic", "Rolling"):
        raise invalid(
            f"The value '{mode}' of parameter 'upgradePolicy.mode' is not one of Manual, Automatic, Rolling.", "upgradePolicy.mode"
        )
    if (policy.get("automaticOSUpgradePolicy") or {}).get("enableAutomaticOSUpgrade"):
        raise not_modelled("automatic OS image upgrades", "automaticOSUpgradePolicy")
    if mode == "Rolling" and health.source_of(profile) is None:
        raise rolling_needs_health()
    rolling = policy.get("rollingUpgradePolicy") or {}
    if rolling.get("maxSurge"):
        raise not_modelled("rolling upgrades with maxSurge", "rollingUpgradePolicy.maxSurge")
    for name, least in (("maxBatchInstancePercent", 5), ("maxUnhealthyInstancePercent", 5), ("maxUnhealthyUpgradedInstancePercent", 0)):
        value = rolling.get(name, 20)
        if not isinstance(value, int) or not least <= value <= 100:
            raise invalid(f"The value '{value}' of parameter '{name}' is out of range: {least} to 100.", name)
    span_seconds(rolling.get("pauseTimeBetweenBatches", "PT0S"), "pauseTimeBetweenBatches")


def rolling_needs_health() -> AzureError:
    """Return the refusal of rolling upgrades without a source of health."""
    message = (
        "Rolling Upgrade mode is not supported for this Virtual Machine Scale Set because a health probe or health extension was not "
        "specified."
    )
    return conflict("OperationNotAllowed", message, "upgradePolicy.mode")


_RESTRICTED = "https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-upgrade-scale-set#properties-with-restrictions-on-modification"
_REST = "https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/create-or-update"

FIXED_PROPERTIES: Mapping[str, tuple[str, Any, str]] = {
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
"""Properties that are fixed at creation, by the name in Azure's refusal: path in the body, meaning of a missing value (None for
"unchanged"), and source.
"""


def check_changes(old: Json, new: Json) -> None:
    """Refuse a change of a fixed property; both bodies are complete. AzureError PropertyChangeNotAllowed."""
    for name, (path, absent, _) in FIXED_PROPERTIES.items():
        before, after = value_at(old, path), value_at(new, path)
        if absent is not None:
            before, after = absent if before is None else before, absent if after is None else after
        # A value can only be left out if it exists and a PUT without it preserves it; it cannot be added later.
        if after != before and not (after is None and absent is None and before is not None and _preserved(path)):
            raise property_change_not_allowed(name, before, after)
    if value_at(new, "properties.singlePlacementGroup") is True and value_at(old, "properties.singlePlacementGroup") is False:
        raise property_change_not_allowed("singlePlacementGroup", False, True)
    networks = [{_network(one.subnet) for one in model_of(body).ip_configurations} for body in (old, new)]
    if networks[0] != networks[1]:
        raise property_change_not_allowed("subnet", *(", ".join(sorted(one)) for one in networks))


def _network(subnet: str) -> str:
    return subnet.lower().rpartition("/subnets/")[0]


def _preserved(path: str) -> bool:
    """Return whether a PUT without a property preserves it; a disk's settings that are left out are removed."""
    return "diffDiskSettings" not in path
