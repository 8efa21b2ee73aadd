"""Models of the official SDK for the bodies of resource types.

A package takes up to a second to import, so it is imported when one of its types is first requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any

from rehearsal.azure.additional_shapes import WITHOUT_CLIENT
from rehearsal.azure.sdk_models import attribute_map_shape, model_shape
from rehearsal.azure.shapes import ObjectOf, Plain, Property, with_response_fields

COMPUTE, NETWORK, STORAGE, KEY_VAULT = "azure.mgmt.compute", "azure.mgmt.network", "azure.mgmt.storage", "azure.mgmt.keyvault"
PRIVATE_DNS, RESOLVER, BUILDER = "azure.mgmt.privatedns", "azure.mgmt.dnsresolver", "azure.mgmt.imagebuilder"
IDENTITY, AUTHORIZATION = "azure.mgmt.msi.v2024_11_30", "azure.mgmt.authorization.v2022_04_01"
RECORD_TYPES = ("A", "AAAA", "CNAME", "MX", "PTR", "SOA", "SRV", "TXT")

MODELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Microsoft.Authorization/roleAssignments": (AUTHORIZATION, "RoleAssignmentCreateParameters", "RoleAssignment"),
        "Microsoft.Authorization/roleDefinitions": (AUTHORIZATION, "RoleDefinition"),
        "Microsoft.Compute/availabilitySets": (COMPUTE, "AvailabilitySet"),
        "Microsoft.Compute/capacityReservationGroups": (COMPUTE, "CapacityReservationGroup"),
        "Microsoft.Compute/capacityReservationGroups/capacityReservations": (COMPUTE, "CapacityReservation"),
        "Microsoft.Compute/diskEncryptionSets": (COMPUTE, "DiskEncryptionSet"),
        "Microsoft.Compute/disks": (COMPUTE, "Disk"),
        "Microsoft.Compute/galleries": (COMPUTE, "Gallery"),
        "Microsoft.Compute/galleries/images": (COMPUTE, "GalleryImage"),
        "Microsoft.Compute/galleries/images/versions": (COMPUTE, "GalleryImageVersion"),
        "Microsoft.Compute/proximityPlacementGroups": (COMPUTE, "ProximityPlacementGroup"),
        "Microsoft.Compute/virtualMachineScaleSets": (COMPUTE, "VirtualMachineScaleSet"),
        "Microsoft.Compute/virtualMachineScaleSets/extensions": (COMPUTE, "VirtualMachineScaleSetExtension"),
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines": (COMPUTE, "VirtualMachineScaleSetVM"),
        "Microsoft.Compute/virtualMachines": (COMPUTE, "VirtualMachine"),
        "Microsoft.Compute/virtualMachines/extensions": (COMPUTE, "VirtualMachineExtension"),
        "Microsoft.KeyVault/vaults": (KEY_VAULT, "VaultCreateOrUpdateParameters", "Vault"),
        "Microsoft.KeyVault/vaults/keys": (KEY_VAULT, "KeyCreateParameters", "Key"),
        "Microsoft.KeyVault/vaults/secrets": (KEY_VAULT, "SecretCreateOrUpdateParameters", "Secret"),
        "Microsoft.ManagedIdentity/userAssignedIdentities": (IDENTITY, "Identity"),
        "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials": (IDENTITY, "FederatedIdentityCredential"),
        "Microsoft.Network/applicationSecurityGroups": (NETWORK, "ApplicationSecurityGroup"),
        "Microsoft.Network/bastionHosts": (NETWORK, "BastionHost"),
        "Microsoft.Network/dnsResolvers": (RESOLVER, "DnsResolver"),
        "Microsoft.Network/dnsResolvers/inboundEndpoints": (RESOLVER, "InboundEndpoint"),
        "Microsoft.Network/loadBalancers": (NETWORK, "LoadBalancer"),
        "Microsoft.Network/loadBalancers/backendAddressPools": (NETWORK, "BackendAddressPool"),
        "Microsoft.Network/natGateways": (NETWORK, "NatGateway"),
        "Microsoft.Network/networkInterfaces": (NETWORK, "NetworkInterface"),
        "Microsoft.Network/networkSecurityGroups": (NETWORK, "NetworkSecurityGroup"),
        "Microsoft.Network/networkSecurityGroups/securityRules": (NETWORK, "SecurityRule"),
        "Microsoft.Network/privateDnsZones": (PRIVATE_DNS, "PrivateZone"),
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks": (PRIVATE_DNS, "VirtualNetworkLink"),
        **{f"Microsoft.Network/privateDnsZones/{record}": (PRIVATE_DNS, "RecordSet") for record in RECORD_TYPES},
        "Microsoft.Network/privateEndpoints": (NETWORK, "PrivateEndpoint"),
        "Microsoft.Network/privateEndpoints/privateDnsZoneGroups": (NETWORK, "PrivateDnsZoneGroup"),
        "Microsoft.Network/privateLinkServices": (NETWORK, "PrivateLinkService"),
        "Microsoft.Network/publicIPAddresses": (NETWORK, "PublicIPAddress"),
        "Microsoft.Network/publicIPPrefixes": (NETWORK, "PublicIPPrefix"),
        "Microsoft.Network/routeTables": (NETWORK, "RouteTable"),
        "Microsoft.Network/routeTables/routes": (NETWORK, "Route"),
        "Microsoft.Network/virtualNetworkGateways": (NETWORK, "VirtualNetworkGateway"),
        "Microsoft.Network/virtualNetworks": (NETWORK, "VirtualNetwork"),
        "Microsoft.Network/virtualNetworks/subnets": (NETWORK, "Subnet"),
        "Microsoft.Network/virtualNetworks/virtualNetworkPeerings": (NETWORK, "VirtualNetworkPeering"),
        "Microsoft.Resources/resourceGroups": ("azure.mgmt.resource.resources", "ResourceGroup"),
        "Microsoft.Storage/storageAccounts": (STORAGE, "StorageAccountCreateParameters", "StorageAccount"),
        "Microsoft.Storage/storageAccounts/blobServices": (STORAGE, "BlobServiceProperties"),
        "Microsoft.Storage/storageAccounts/blobServices/containers": (STORAGE, "BlobContainer"),
        "Microsoft.Storage/storageAccounts/blobServices/containers/immutabilityPolicies": (STORAGE, "ImmutabilityPolicy"),
        "Microsoft.Storage/storageAccounts/managementPolicies": (STORAGE, "ManagementPolicy"),
        "Microsoft.VirtualMachineImages/imageTemplates": (BUILDER, "ImageTemplate"),
        "Microsoft.VirtualMachineImages/imageTemplates/runOutputs": (BUILDER, "RunOutput"),
        "Microsoft.VirtualMachineImages/imageTemplates/triggers": (BUILDER, "Trigger"),
    }
)
"""Package, model of a PUT, and model of the response if it differs, by resource type."""

ENVELOPE: Mapping[str, Property] = MappingProxyType(
    {
        **{name: Property(Plain.ANYTHING, read_only=True) for name in ("etag", "id", "systemData", "type")},
        "name": Property(Plain.STRING),
    }
)
"""Properties that Azure Resource Manager adds to every body. Clients send them back; the name is compared with the path's."""

_TAKEN: dict[str, ObjectOf] = {}
_BY_KEY = {resource_type.lower(): resource_type for resource_type in (*MODELS, *WITHOUT_CLIENT)}


class UnknownShapeError(LookupError):
    """A type without a model in the official clients."""


def add_shapes(shapes: Mapping[str, ObjectOf]) -> None:
    """Add shapes by resource type that another process read from the same clients."""
    _TAKEN.update({resource_type.lower(): shape for resource_type, shape in shapes.items()})
    shape_of.cache_clear()


@cache
def shape_of(resource_type: str) -> ObjectOf:
    """Return the shape of a type's body; the type is in any case. Raises UnknownShapeError."""
    published = _BY_KEY.get(resource_type.lower())
    if published is None:
        raise UnknownShapeError(
            f"{resource_type} has no model among the official clients; rehearsal/azure/sdk_shapes.py lists the types with one"
        )
    if published.lower() in _TAKEN:
        return _TAKEN[published.lower()]
    whole = WITHOUT_CLIENT.get(published) or _of_client(*MODELS[published])
    return ObjectOf(whole.name, lambda: {**whole.properties, **ENVELOPE}, whole.flattened, whole.package)


def _of_client(package: str, sent: str, answered: str = "") -> ObjectOf:
    models = import_module(f"{package}.models")
    shape = _model(getattr(models, sent))
    return with_response_fields(shape, _model(getattr(models, answered))) if answered else shape


def _model(kind: Any) -> ObjectOf:
    shape = attribute_map_shape(kind) if hasattr(kind, "_attribute_map") else model_shape(kind)
    if not isinstance(shape, ObjectOf):
        raise TypeError(f"{kind.__name__} is one of several models; a resource type has one body")
    return shape
