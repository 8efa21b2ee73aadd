"""Decides where the health of a scale set's machines comes from: the Application Health extension, a load balancer's probe, or nowhere."""

from __future__ import annotations

from rehearsal.azure.errors import conflict
from rehearsal.azure.resource import Json

RICH, BINARY, PROBE = "rich", "binary", "probe"
EXTENSIONS = ("ApplicationHealthLinux", "ApplicationHealthWindows")


def source_of(profile: Json) -> str | None:
    """rich (extension 2.x), binary (1.x), probe, or None; AzureError where there are two: only one may be.

    https://learn.microsoft.com/azure/virtual-machine-scale-sets/virtual-machine-scale-sets-health-extension
    """
    probe = ((profile.get("networkProfile") or {}).get("healthProbe") or {}).get("id")
    extensions = [one.get("properties") or {} for one in (profile.get("extensionProfile") or {}).get("extensions") or []]
    found = [one for one in extensions if one.get("type") in EXTENSIONS]
    if found and probe:
        message = "Only one source of health monitoring can be used for a scale set: remove the health extension or the health probe."
        raise conflict("OperationNotAllowed", message, "healthProbe")
    if found:
        return RICH if str(found[0].get("typeHandlerVersion", "1.0")).startswith("2") else BINARY
    return PROBE if probe else None
