"""Health of instances: its source in the model (Application Health extension, load balancer probe or none), and its state."""

from __future__ import annotations

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.compute.machine import RUNNING
from rehearsal.azure.errors import conflict
from rehearsal.azure.resource import Json, Resource

EXTENSION_2, EXTENSION_1, PROBE = "rich", "binary", "probe"
EXTENSIONS = ("ApplicationHealthLinux", "ApplicationHealthWindows")


def source_of(profile: Json) -> str | None:
    """Return rich (extension 2.x), binary (1.x), probe, or None; AzureError for two sources, which Azure does not allow.

    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-health-extension
    """
    probe = ((profile.get("networkProfile") or {}).get("healthProbe") or {}).get("id")
    extensions = [one.get("properties") or {} for one in (profile.get("extensionProfile") or {}).get("extensions") or []]
    found = [one for one in extensions if one.get("type") in EXTENSIONS]
    if found and probe:
        message = "Only one source of health monitoring can be used for a scale set: remove the health extension or the health probe."
        raise conflict("OperationNotAllowed", message, "healthProbe")
    if found:
        return EXTENSION_2 if str(found[0].get("typeHandlerVersion", "1.0")).startswith("2") else EXTENSION_1
    return PROBE if probe else None


HEALTHY, UNHEALTHY, INITIALIZING, UNKNOWN = "Healthy", "Unhealthy", "Initializing", "Unknown"


def health_of(cloud: Cloud, resource: Resource, one: Instance) -> str | None:
    """Return Healthy, Unhealthy, Initializing or Unknown; None if the instance's model has no source of health.

    An application without a report is healthy once the guest is up. Initializing and Unknown exist only in the extension's version 2:
    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-health-extension
    """
    source = source_of(state_of(resource).models[one.model].profile)
    if source is None:
        return None
    if one.power != RUNNING:
        return UNKNOWN if source == EXTENSION_2 else UNHEALTHY
    if one.health:
        return one.health
    if one.ready > cloud.now:
        return INITIALIZING if source == EXTENSION_2 else UNHEALTHY
    return HEALTHY
