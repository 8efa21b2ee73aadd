"""Bodies of scale sets: properties that a PUT leaves out, and the body of a GET."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
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
SECRETS = ("customData", "adminPassword")
"""Properties of osProfile that Azure accepts and never returns."""


def complete_request(body: Json, previous: Resource | None) -> Json:
    """Return the complete body of a PUT: properties that it leaves out, and secrets, are those of the existing scale set.

    A capacity that is left out is the present one, so that a change of a tag does not scale.
    """
    if previous is None:
        return body
    sku = {**(previous.sent.get("sku") or {}), "capacity": previous.body["sku"]["capacity"], **(body.get("sku") or {})}
    old = previous.sent.get("properties") or {}
    properties = {**{name: old[name] for name in PRESERVED if name in old}, **(body.get("properties") or {})}
    properties["virtualMachineProfile"] = _with_secrets(properties["virtualMachineProfile"], old["virtualMachineProfile"])
    zones = {"zones": previous.sent["zones"]} if "zones" in previous.sent else {}
    return {**zones, **body, "location": previous.body["location"], "sku": sku, "properties": properties}


def _with_secrets(profile: Any, old: Json) -> Any:
    """Return the profile with the secrets that its sender could not read."""
    known = old.get("osProfile") or {}
    secrets = {name: known[name] for name in SECRETS if name in known}
    if not secrets or not isinstance(profile, Mapping):
        return profile
    return {**profile, "osProfile": {**secrets, **(profile.get("osProfile") or {})}}


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
        **given,
        "virtualMachineProfile": _profile_body(given["virtualMachineProfile"], arm_id.name, created),
        "provisioningState": previous.properties.get("provisioningState", "Creating") if previous else "Creating",
        "timeCreated": stamp(created),
    }
    sku = {"tier": "Standard", "capacity": 0, **body["sku"]}
    result: Json = {**body, "sku": sku, "properties": properties}
    if body.get("identity"):
        result["identity"] = identity_body(cloud, arm_id.key, body["identity"])
    return result


def _profile_body(profile: Json, name: str, created: float) -> Json:
    os_profile = {key: value for key, value in (profile.get("osProfile") or {}).items() if key not in SECRETS}
    storage = profile.get("storageProfile") or {}
    os_disk = {"osType": "Linux", **(storage.get("osDisk") or {})}
    if "diffDiskSettings" not in os_disk:
        os_disk["managedDisk"] = {"storageAccountType": "Premium_LRS", **(os_disk.get("managedDisk") or {})}
    result: Json = {
        "priority": "Regular",
        **profile,
        "osProfile": {"computerNamePrefix": name, "allowExtensionOperations": True, "secrets": [], **os_profile},
        "storageProfile": {**storage, "osDisk": os_disk},
        "timeCreated": stamp(created),
    }
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


def identity_body(cloud: Cloud, key: str, identity: Json) -> Json:
    """Return an identity with the principals that Azure adds: its own, and those of the existing user-assigned ones."""
    result = dict(identity)
    kind = str(identity.get("type", "None"))
    if "SystemAssigned" in kind:
        result |= {"principalId": cloud.stable_uuid("principal", key), "tenantId": cloud.tenant}
    assigned = identity.get("userAssignedIdentities")
    if isinstance(assigned, Mapping):
        result["userAssignedIdentities"] = {one: _principal(cloud.find(one)) for one in assigned}
    return result


def _principal(identity: Resource | None) -> Json:
    inner = identity.properties if identity else {}
    return {name: inner[name] for name in ("principalId", "clientId") if name in inner}
