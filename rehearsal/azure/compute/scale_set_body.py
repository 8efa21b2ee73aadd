"""Bodies of scale sets: properties that a PUT leaves out, and the body of a GET."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.profile_defaults import (
    SECRETS,
    USER_DATA,
    completed_network,
    completed_os_profile,
    completed_storage,
    os_type,
)
from rehearsal.azure.resource import Json, Resource

PRESERVED = (
    "orchestrationMode",
    "singlePlacementGroup",
    "platformFaultDomainCount",
    "overprovision",
    "upgradePolicy",
    "virtualMachineProfile",
)
"""Properties that a PUT to an existing scale set can leave out, which preserves them."""


def complete_request(body: Json, previous: Resource | None) -> Json:
    """Return the complete body of a PUT: properties that it leaves out, and secrets, are those of the existing scale set.

    A capacity that is left out is the present one, so that a change of a tag does not scale.
    """
    if previous is None:
        return {**body, "properties": {"orchestrationMode": _default_mode(body), **(body.get("properties") or {})}}
    sku = {**(previous.sent.get("sku") or {}), "capacity": previous.body["sku"]["capacity"], **(body.get("sku") or {})}
    old = previous.sent.get("properties") or {}
    properties = {**{name: old[name] for name in PRESERVED if name in old}, **(body.get("properties") or {})}
    properties["virtualMachineProfile"] = _with_secrets(properties["virtualMachineProfile"], old["virtualMachineProfile"])
    zones = {"zones": previous.sent["zones"]} if "zones" in previous.sent else {}
    return {**zones, **body, "location": previous.body["location"], "sku": sku, "properties": properties}


def _default_mode(body: Json) -> str:
    """Return the mode of a new scale set that names none: Flexible without a profile, which only such a scale set can omit.

    Tools that default to Flexible send it: https://github.com/Azure/azure-cli/pull/27596 and
    https://github.com/Azure/azure-powershell/pull/23146
    """
    return "Uniform" if (body.get("properties") or {}).get("virtualMachineProfile") else "Flexible"


def _with_secrets(profile: Any, old: Json) -> Any:
    """Return the profile with the secrets and user data that its sender could not read."""
    known = old.get("osProfile") or {}
    secrets = {name: known[name] for name in SECRETS if name in known}
    if not isinstance(profile, Mapping):
        return profile
    user_data = {USER_DATA: old[USER_DATA]} if USER_DATA in old else {}
    return {**user_data, **profile, **({"osProfile": {**secrets, **(profile.get("osProfile") or {})}} if secrets else {})}


def response_body(cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
    """Return the body of a GET: Azure's defaults, no secret, and what Azure adds."""
    zones = body.get("zones") or []
    created = previous.created if previous else cloud.now
    given = body["properties"]
    properties = {
        "singlePlacementGroup": True,
        "overprovision": True,
        "doNotRunExtensionsOnOverprovisionedVMs": False,
        "platformFaultDomainCount": 1 if zones else 5,
        **({"zoneBalance": False} if zones else {}),
        **given,
        "virtualMachineProfile": _profile_body(cloud, given["virtualMachineProfile"], arm_id.name, str(body["sku"]["name"]), created),
        "provisioningState": previous.properties.get("provisioningState", "Creating") if previous else "Creating",
        "timeCreated": stamp(created),
    }
    sku = {"tier": "Standard", "capacity": 0, **body["sku"]}
    result: Json = {**body, "sku": sku, "properties": properties}
    return result


def _profile_body(cloud: Cloud, profile: Json, name: str, size: str, created: float) -> Json:
    storage, os_profile = profile.get("storageProfile") or {}, profile.get("osProfile") or {}
    kind = os_type(cloud, storage, os_profile)
    result: Json = {
        "priority": "Regular",
        **{key: value for key, value in profile.items() if key != USER_DATA},
        "storageProfile": completed_storage(storage, kind, size),
        "networkProfile": completed_network(profile.get("networkProfile") or {}),
        "timeCreated": stamp(created),
    }
    if os_profile:
        result["osProfile"] = {"computerNamePrefix": name, **completed_os_profile(os_profile, kind)}
    if profile.get("extensionProfile"):
        result["extensionProfile"] = without_protected_settings(profile["extensionProfile"])
    return result


def without_protected_settings(profile: Json) -> Json:
    """Return an extension profile without its protected settings."""
    extensions = []
    for one in profile.get("extensions") or []:
        inner = {key: value for key, value in (one.get("properties") or {}).items() if key != "protectedSettings"}
        extensions.append({**one, "properties": inner})
    return {**profile, "extensions": extensions}
