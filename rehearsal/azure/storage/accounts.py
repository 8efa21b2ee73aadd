"""Storage accounts: globally unique names, SKUs of each kind, endpoints and keys.

https://learn.microsoft.com/rest/api/storagerp/storage-accounts/create,
https://learn.microsoft.com/azure/storage/common/storage-account-overview
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.clock import stamp
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.resource import Json, Request, Resource, Response, location_key
from rehearsal.azure.resource_type import ResourceType
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.validation import required_location, required_value, value_at, without_nulls

ACCOUNTS = 250
"""Limit per subscription and region: https://learn.microsoft.com/azure/storage/common/scalability-targets-standard-account"""
STANDARD = ("LRS", "GRS", "RAGRS", "ZRS", "GZRS", "RAGZRS")
SKUS = {
    "StorageV2": (*(f"Standard_{one}" for one in STANDARD), "Premium_LRS"),
    "Storage": ("Standard_LRS", "Standard_GRS", "Standard_RAGRS", "Premium_LRS"),
    "BlobStorage": ("Standard_LRS", "Standard_GRS", "Standard_RAGRS"),
    "BlockBlobStorage": ("Premium_LRS", "Premium_ZRS"),
    "FileStorage": ("Premium_LRS", "Premium_ZRS"),
}
"""https://learn.microsoft.com/azure/storage/common/storage-account-overview#types-of-storage-accounts"""
_TWO_WAY_PAIRS = (
    ("australiacentral", "australiacentral2"),
    ("australiaeast", "australiasoutheast"),
    ("canadacentral", "canadaeast"),
    ("centralindia", "southindia"),
    ("centralus", "eastus2"),
    ("eastasia", "southeastasia"),
    ("eastus", "westus"),
    ("francecentral", "francesouth"),
    ("germanywestcentral", "germanynorth"),
    ("japaneast", "japanwest"),
    ("koreacentral", "koreasouth"),
    ("northcentralus", "southcentralus"),
    ("northeurope", "westeurope"),
    ("norwayeast", "norwaywest"),
    ("southafricanorth", "southafricawest"),
    ("swedencentral", "swedensouth"),
    ("switzerlandnorth", "switzerlandwest"),
    ("uaenorth", "uaecentral"),
    ("uksouth", "ukwest"),
    ("westcentralus", "westus2"),
)
SERVICES = {
    "StorageV2": ("dfs", "web", "blob", "queue", "table", "file"),
    "Storage": ("blob", "queue", "table", "file"),
    "BlobStorage": ("dfs", "web", "blob", "table"),
    "BlockBlobStorage": ("dfs", "web", "blob"),
    "FileStorage": ("file",),
}
GEO = ("GRS", "RAGRS", "GZRS", "RAGZRS")
"""Replications with a copy in another region."""
PAIRS: Mapping[str, str] = {
    **{one: other for pair in _TWO_WAY_PAIRS for one, other in (pair, pair[::-1])},
    "brazilsouth": "southcentralus",
    "westindia": "southindia",
    "westus3": "eastus",
}
"""Region of the second copy by region: https://learn.microsoft.com/azure/reliability/regions-paired"""
ZONAL = ("ZRS", "GZRS", "RAGZRS")
FIXED = {"isHnsEnabled": False, "isNfsV3Enabled": False, "dnsEndpointType": "Standard"}
"""Properties that are fixed at creation, with their defaults."""
BLOB_SERVICE = "blobServices/default"


@dataclass(slots=True)
class KeyGenerations:
    """Number of regenerations of each of the two keys."""

    made: dict[str, int] = field(default_factory=lambda: {"key1": 0, "key2": 0})


class StorageAccount(ResourceType):
    """A storage account; Azure creates its blob service with it."""

    type = "Microsoft.Storage/storageAccounts"
    state_type = KeyGenerations
    deletable_in_use = True

    def __init__(self) -> None:
        self.actions = {"listkeys": list_keys, "regeneratekey": regenerate_key}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Require a free name and a SKU of the kind; refuse a change of a fixed property."""
        location = required_location(body)
        kind, sku = body.get("kind") or (previous.body["kind"] if previous else None), required_value(body, "sku.name", "account")
        if kind not in SKUS:
            raise invalid_values("kind")
        if sku not in SKUS[kind]:
            raise invalid_values("sku.name")
        if previous is None:
            self._check_free(cloud, arm_id, location)
        else:
            _check_change(previous, kind, sku, without_nulls(body.get("properties")))

    def _check_free(self, cloud: Cloud, arm_id: ArmId, location: str) -> None:
        accounts = [cloud.resources[key] for key in cloud.index.of_type(self.type.lower())]
        for one in accounts:
            if one.id.name.lower() == arm_id.name:
                if one.id.subscription.lower() == arm_id.subscription.lower():
                    message = f"The account {arm_id.name} is already in another resource group in this subscription."
                    raise conflict("StorageAccountInAnotherResourceGroup", message, arm_id.name)
                # Message from https://github.com/hashicorp/terraform/issues/11485
                raise conflict("StorageAccountAlreadyTaken", f"The storage account named {arm_id.name} is already taken.", arm_id.name)
        used = sum(1 for one in accounts if one.location == location and one.id.subscription.lower() == arm_id.subscription.lower())
        if used >= ACCOUNTS:
            message = f"Subscription already contains {used} storage accounts in location {location} and the maximum allowed is {ACCOUNTS}."
            raise conflict("MaxStorageAccountsCountPerSubscriptionExceeded", message, arm_id.name)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults, endpoints, and the creation times of the account and its keys."""
        kind, sku = str(body.get("kind") or (previous.body["kind"] if previous else "")), str(body["sku"]["name"])
        made = previous.properties["creationTime"] if previous else stamp(cloud.now)
        result: Json = {
            "minimumTlsVersion": "TLS1_0",
            "allowBlobPublicAccess": False,
            "supportsHttpsTrafficOnly": True,
            "networkAcls": {"bypass": "AzureServices", "virtualNetworkRules": [], "ipRules": [], "defaultAction": "Allow"},
            **({"accessTier": "Hot"} if sku.startswith("Standard_") and kind in ("StorageV2", "BlobStorage") else {}),
            **without_nulls(body.get("properties")),
            "encryption": _encryption(cloud, arm_id, value_at(body, "properties.encryption") or {}, made),
            "creationTime": made,
            "keyCreationTime": previous.properties["keyCreationTime"] if previous else {"key1": made, "key2": made},
            "primaryLocation": location_key(body["location"]),
            "statusOfPrimary": "available",
            "accountMigrationInProgress": False,
            "isSkuConversionBlocked": False,
            "primaryEndpoints": _all_endpoints(arm_id.name, kind, without_nulls(body.get("properties"))),
        }
        if (pair := PAIRS.get(location_key(body["location"]))) and "_".join(sku.split("_")[1:]) in GEO:
            result |= {"secondaryLocation": pair, "statusOfSecondary": "available"}
        if "_RA" in sku:
            result["secondaryEndpoints"] = {key: url for key, url in _endpoints(f"{arm_id.name}-secondary", kind).items() if key != "file"}
        return {**body, "kind": kind, "sku": {"name": sku, "tier": sku.partition("_")[0]}, "properties": result}

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Create a blob service with defaults for a new account."""
        if previous is None:
            resource.state = KeyGenerations()
            service = parse(f"{resource.id.text}/{BLOB_SERVICE}")
            sku = resource.body["sku"]
            cloud.insert(service, {"sku": sku, "properties": dict(BLOB_DEFAULTS)}, resource.owner, sent={"properties": {}})

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body, with the state of the second region's copy if `$expand=geoReplicationStats` requests it."""
        if "georeplicationstats" not in query.get("$expand", "").lower() or "secondaryLocation" not in resource.properties:
            return resource.body
        stats = {"status": "Live", "lastSyncTime": stamp(cloud.now), "canFailover": True}
        return {**resource.body, "properties": {**resource.properties, "geoReplicationStats": stats}}

    def put_seconds(self, cloud: Cloud, resource: Resource, previous: Json | None) -> float:
        """Return the duration of the registration of a new name; a change is done at once."""
        return operation_seconds(cloud, "storage.put", resource.key) if previous is None else 0.0

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete while a container's policy is locked: https://github.com/Azure/azure-powershell/issues/26148 has the sentence."""
        containers = cloud.list(resource.id.text, CONTAINER)
        locked = [one.id.name for one in containers if policy_state(cloud, one) == "Locked"]
        if locked:
            message = (
                f"{resource.id.name} is protected from deletion. The container(s) {', '.join(locked)} have a locked immutability policy."
            )
            raise conflict("AccountProtectedFromDeletion", message, resource.id.text)

    def delete_seconds(self, cloud: Cloud, resource: Resource) -> float:
        """Return the duration of a delete; the name is free at once for its subscription."""
        return operation_seconds(cloud, "storage.delete", resource.key, cloud.relative(resource.created))


BLOB_DEFAULTS: Json = {"cors": {"corsRules": []}, "deleteRetentionPolicy": {"enabled": False, "allowPermanentDelete": False}}
"""https://learn.microsoft.com/rest/api/storagerp/blob-services/get-service-properties"""
CONTAINER = "Microsoft.Storage/storageAccounts/blobServices/containers"


def policy_state(cloud: Cloud, container: Resource) -> str:
    """Return the state of a container's immutability policy, Locked or Unlocked, empty without one."""
    policy = cloud.find(f"{container.id.text}/immutabilityPolicies/default")
    return str(policy.properties["state"]) if policy else ""


KEYS = ("key1", "key2", "kerb1", "kerb2")
"""https://learn.microsoft.com/rest/api/storagerp/storage-accounts/regenerate-key"""


def list_keys(cloud: Cloud, resource: Resource, _request: Request) -> Response:
    """Return both keys: https://learn.microsoft.com/rest/api/storagerp/storage-accounts/list-keys"""
    return Response(200, {"keys": [_key(cloud, resource, name) for name in resource.state.made]})


def regenerate_key(cloud: Cloud, resource: Resource, request: Request) -> Response:
    """Regenerate one of the keys: https://learn.microsoft.com/rest/api/storagerp/storage-accounts/regenerate-key"""
    name = (request.body or {}).get("keyName")
    if name not in KEYS:
        raise invalid_values("keyName")
    resource.state.made[name] = resource.state.made.get(name, 0) + 1
    resource.properties["keyCreationTime"] = {**resource.properties["keyCreationTime"], name: stamp(cloud.now)}
    return list_keys(cloud, resource, request)


def _key(cloud: Cloud, resource: Resource, name: str) -> Json:
    """Return a key of 64 bytes that follows from the seed, the account and the number of regenerations."""
    text = f"{cloud.seed}/{resource.key}/{resource.created}/{name}/{resource.state.made[name]}"
    value = base64.b64encode(hashlib.blake2b(text.encode()).digest()).decode()
    return {"keyName": name, "value": value, "permissions": "FULL", "creationTime": resource.properties["keyCreationTime"][name]}


def _all_endpoints(name: str, kind: str, properties: Json) -> Json:
    """Return the primary endpoints, with those of each published route:
    https://learn.microsoft.com/azure/storage/common/network-routing-preference"""
    routing = properties.get("routingPreference") or {}
    found = _endpoints(name, kind)
    if properties.get("isHnsEnabled"):
        found |= {service: f"https://{name}.{service}.core.windows.net/" for service in ("dfs", "web")}
    for route in ("Microsoft", "Internet"):
        if routing.get(f"publish{route}Endpoints"):
            without = ("queue", "table") if route == "Internet" else ()
            routed = {key: url.replace(f"{name}.", f"{name}-{route.lower()}routing.") for key, url in found.items() if isinstance(url, str)}
            found[f"{route.lower()}Endpoints"] = {key: url for key, url in routed.items() if key not in without}
    return found


def _encryption(cloud: Cloud, arm_id: ArmId, requested: Json, made: str) -> Json:
    """Return the encryption with its defaults, the times at which Azure enabled it, and the version of a vault's key.

    https://learn.microsoft.com/azure/storage/common/storage-service-encryption
    """
    services = {name: {"enabled": True, "keyType": "Account"} for name in ("blob", "file")} | (requested.get("services") or {})
    shown: Json = {"keySource": "Microsoft.Storage", **requested}
    shown["services"] = {name: {**one, "lastEnabledTime": made} for name, one in services.items() if one}
    key = requested.get("keyvaultproperties")
    if key:
        version = key.get("keyversion") or cloud.stable_uuid("keyversion", arm_id.key).replace("-", "")
        identifier = f"{str(key.get('keyvaulturi', '')).rstrip('/')}/keys/{key.get('keyname')}/{version}"
        shown["keyvaultproperties"] = {**key, "currentVersionedKeyIdentifier": identifier, "lastKeyRotationTimestamp": made}
    return shown


def _endpoints(name: str, kind: str) -> Json:
    return {service: f"https://{name}.{service}.core.windows.net/" for service in SERVICES[kind]}


def invalid_values(path: str) -> AzureError:
    return invalid(f"Values for request parameters are invalid: {path}.", path, "InvalidValuesForRequestParameters")


def _check_change(previous: Resource, kind: str, sku: str, requested: Json) -> None:
    """Refuse what a PUT cannot change; the sentence is that of https://github.com/Azure/azure-cli/issues/30522.

    Some replications require a conversion: https://learn.microsoft.com/azure/storage/common/redundancy-migration.
    """
    before = str(previous.body["sku"]["name"])
    changed = [name for name, usual in FIXED.items() if name in requested and requested[name] != previous.properties.get(name, usual)]
    if kind != previous.body["kind"] and kind != "StorageV2":
        changed.append("kind")
    if sku.partition("_")[0] != before.partition("_")[0] or (sku.partition("_")[2] in ZONAL) != (before.partition("_")[2] in ZONAL):
        changed.append("sku.name")
    if value_at({"properties": requested}, "properties.encryption.requireInfrastructureEncryption") not in (
        None,
        value_at(previous.body, "properties.encryption.requireInfrastructureEncryption"),
    ):
        changed.append("encryption.requireInfrastructureEncryption")
    if changed:
        message = (
            f"The property '{changed[0]}' was specified in the input, but it cannot be updated as it is read-only. "
            "For more information, see - https://aka.ms/storageaccountupdate"
        )
        raise AzureError(400, "AccountPropertyCannotBeUpdated", message, target=changed[0])
