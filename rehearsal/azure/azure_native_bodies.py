"""Translation between azure-native's flat inputs and outputs and the bodies of Azure's REST API.

azure-native presents the contents of a body's `properties` as properties of the resource itself. It takes ids of identities as a list where
Azure has an object, and it renames some properties: https://github.com/pulumi/pulumi-azure-native
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from rehearsal.azure.arm_id import GROUP_TYPE
from rehearsal.azure.azure_native_ids import AZURE, GROUP_PATHS, PLACEHOLDER, RESOURCE_GROUP, SCOPE_PATHS
from rehearsal.azure.resource import Json
from rehearsal.azure.sdk_shapes import shape_of
from rehearsal.azure.shapes import ListOf, MapOf, ObjectOf, OneOf, Shape

NOT_IN_BODY = MappingProxyType({"network:VirtualNetworkPeering": "syncRemoteAddressSpace"})
"""Inputs that are query parameters of the request, by type."""

RENAMED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "authorization.RoleDefinition": {"roleType": "properties.type"},
        "imagebuilder.Trigger": {"kind": "properties.kind"},
        "keyvault.KeyAttributes": {"expires": "exp", "notBefore": "nbf"},
        "keyvault.KeyProperties": {"releasePolicy": "release_policy"},
        "keyvault.SecretAttributes": {"expires": "exp", "notBefore": "nbf"},
        "network.IpamPoolPrefixAllocation": {"id": "pool.id"},
        "storage.Encryption": {"encryptionIdentity": "identity", "keyVaultProperties": "keyvaultproperties"},
        "storage.EncryptionIdentity": {
            "encryptionFederatedIdentityClientId": "federatedIdentityClientId",
            "encryptionUserAssignedIdentity": "userAssignedIdentity",
        },
        "storage.IPRule": {"iPAddressOrRange": "value"},
        "storage.KeyVaultProperties": {"keyName": "keyname", "keyVaultUri": "keyvaulturi", "keyVersion": "keyversion"},
        "storage.StorageAccountCreateParameters": {
            "enableHttpsTrafficOnly": "properties.supportsHttpsTrafficOnly",
            "enableNfsV3": "properties.isNfsV3Enabled",
            "networkRuleSet": "properties.networkAcls",
        },
        "storage.VirtualNetworkRule": {"virtualNetworkResourceId": "id"},
    }
)
"""azure-native's property names and their paths in Azure's body, by package and model: x-ms-client-name of
https://github.com/Azure/azure-rest-api-specs."""


def arm_type(resource_type: str, record_type: str = "A") -> str:
    """Return Azure's resource type for azure-native's (`azure-native:network:Subnet` or `network:Subnet`). Raises KeyError.

    record_type is the record type of a privatedns:PrivateRecordSet, which is part of Azure's resource type.
    """
    key = resource_type.removeprefix(AZURE)
    if key == RESOURCE_GROUP:
        return GROUP_TYPE
    path = SCOPE_PATHS[key][1] if key in SCOPE_PATHS else GROUP_PATHS[key]
    provider, *rest = path.replace("{recordType}", record_type).split("/")
    return "/".join((provider, *rest[0::2]))


def path_inputs(resource_type: str) -> frozenset[str]:
    """Return the inputs of an azure-native type that are part of the request's URL and not of its body."""
    key = resource_type.removeprefix(AZURE)
    scope, path = SCOPE_PATHS[key] if key in SCOPE_PATHS else ("resourceGroupName", GROUP_PATHS.get(key, ""))
    return frozenset({scope, NOT_IN_BODY.get(key, scope), *PLACEHOLDER.findall(path)})


def to_arm(resource_type: str, inputs: Mapping[str, Any]) -> Json:
    """Return the body that azure-native sends for plain inputs (without `Secret`). Raises KeyError or UnknownShapeError."""
    apart = path_inputs(resource_type)
    body: Json = nest(_shape(resource_type), {key: item for key, item in inputs.items() if key not in apart})
    return body


def from_arm(resource_type: str, body: Mapping[str, Any]) -> Json:
    """Return azure-native's outputs for a response body, without the id, which Pulumi stores separately."""
    outputs: Json = _flat(_shape(resource_type), body)
    outputs.pop("id", None)
    return outputs


def _shape(resource_type: str) -> ObjectOf:
    return shape_of(arm_type(resource_type))


def nest(shape: Shape | None, value: Any) -> Any:
    """Return a flat value as it is in a body; values without a known shape stay unchanged."""
    match shape, value:
        case OneOf(), Mapping():
            return nest(variant_shape(shape, value), value)
        case ObjectOf(), Mapping():
            return _placed(shape, value)
        case MapOf(), list():
            return {str(item): {} for item in value}
        case MapOf(item), Mapping():
            return {key: nest(item, held) for key, held in value.items()}
        case ListOf(item), list() | tuple():
            return [nest(item, held) for held in value]
        case _:
            return value


def _placed(shape: ObjectOf, value: Mapping[str, Any]) -> Json:
    body: Json = {}
    names = renamed_properties(shape)
    for key, item in value.items():
        path = names.get(key) or (f"properties.{key}" if is_inner(shape, key) else key)
        *outer, last = path.split(".")
        known: Shape | None = shape
        place = body
        for step in outer:
            known = property_shape(known, step)
            place = place.setdefault(step, {})
        place[last] = nest(property_shape(known, last), item)
    return body


def _flat(shape: Shape | None, value: Any) -> Any:
    match shape, value:
        case OneOf(), Mapping():
            return _flat(variant_shape(shape, value), value)
        case ObjectOf(), Mapping():
            return _flat_object(shape, value)
        case MapOf(item), Mapping():
            return {key: _flat(item, held) for key, held in value.items()}
        case ListOf(item), list():
            return [_flat(item, held) for held in value]
        case _:
            return value


def _flat_object(shape: ObjectOf, body: Mapping[str, Any]) -> Json:
    outputs: Json = {}
    names = {path: name for name, path in renamed_properties(shape).items()}
    for key, item in body.items():
        known = property_shape(shape, key)
        below = {path.partition(".")[2]: name for path, name in names.items() if path.startswith(f"{key}.")}
        if isinstance(item, Mapping) and (below or (key == "properties" and shape.inner is not None)):
            for inner_key, inner_item in item.items():
                other = inner_key in below
                name = below[inner_key] if other else str(inner_key)
                if other or name not in outputs or is_inner(shape, name):
                    outputs[name] = _flat(property_shape(known, inner_key), inner_item)
        else:
            name = names.get(key, key)
            if not (name in outputs and is_inner(shape, name)):
                outputs[name] = _flat(known, item)
    return outputs


def renamed_properties(shape: ObjectOf) -> Mapping[str, str]:
    """Return azure-native's different property names of an object, with their paths in its body."""
    return RENAMED.get(f"{shape.package}.{shape.name}", {})


def is_inner(shape: ObjectOf, key: str) -> bool:
    """Return whether a flat name means a property inside `properties`; inner ones take precedence over read-only outer ones."""
    inner = shape.inner.properties.get(key) if shape.inner else None
    outer = shape.properties.get(key)
    return inner is not None and (outer is None or (outer.read_only and not inner.read_only))


def property_shape(shape: Shape | None, key: str) -> Shape | None:
    """Return the shape of a property; None if the shape does not contain it."""
    base = shape.base if isinstance(shape, OneOf) else shape
    held = base.properties.get(key) if isinstance(base, ObjectOf) else None
    return held.shape if held else None


def variant_shape(shape: OneOf, value: Mapping[str, Any]) -> ObjectOf:
    """Return the variant that a value matches."""
    return shape.variants.get(str(value.get(shape.discriminator)), shape.base)
