"""ARM ids of azure-native's resources, and the ARM path of each azure-native type."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from components.errors import GpufleetError

AZURE = "azure-native:"
RESOURCE_GROUP = "resources:ResourceGroup"
PLACEHOLDER = re.compile(r"\{(\w+)\}")


class UnknownTypeError(GpufleetError):
    """An azure-native type without a rule for its id."""

    def __init__(self, resource_type: str) -> None:
        self.resource_type = resource_type
        remedy = (
            "add its path to rehearsal/azure/azure_native_ids.py" if resource_type.startswith(AZURE) else "use a backend that supports it"
        )
        super().__init__(f"{resource_type} has no rule for its id; {remedy}")


class MissingInputError(GpufleetError):
    """A missing input that is part of the resource's id."""

    def __init__(self, name: str, remedy: str) -> None:
        self.name = name
        super().__init__(f"{name} is missing, so the resource has no id; {remedy}")


def arm_id(resource_type: str, name: str, inputs: Mapping[str, Any], subscription: str | None) -> str:
    """Return the id of an azure-native resource; name is Pulumi's logical name. Raises UnknownTypeError or MissingInputError."""
    module_type = resource_type.removeprefix(AZURE)
    if module_type in SCOPE_PATHS:
        scope, path = SCOPE_PATHS[module_type]
        return f"{_required(inputs, scope)}/providers/{_filled(path, name, inputs)}"
    if not subscription:
        raise MissingInputError("subscriptionId", "give the resource a provider that names its subscription")
    groups = f"/subscriptions/{subscription}/resourceGroups"
    if module_type == RESOURCE_GROUP:
        return f"{groups}/{_filled('{resourceGroupName}', name, inputs)}"
    if module_type not in GROUP_PATHS:
        raise UnknownTypeError(resource_type)
    return f"{groups}/{_required(inputs, 'resourceGroupName')}/providers/{_filled(GROUP_PATHS[module_type], name, inputs)}"


def stable_uuid(*parts: str) -> str:
    """Return a UUID that depends only on the given parts."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))


def _filled(path: str, name: str, inputs: Mapping[str, Any]) -> str:
    """Return the path with its names. azure-native derives the resource's own name, the last one, from the logical name if it is absent."""
    names = PLACEHOLDER.findall(path)
    values = {key: _required(inputs, key) for key in names[:-1]}
    values[names[-1]] = inputs.get(names[-1]) or f"{name}{stable_uuid(path, name)[:8]}"
    return path.format_map(values)


def _required(inputs: Mapping[str, Any], key: str) -> str:
    if not inputs.get(key):
        raise MissingInputError(key, "give it a value")
    return str(inputs[key])


GROUP_PATHS = MappingProxyType(
    {
        "compute:AvailabilitySet": "Microsoft.Compute/availabilitySets/{availabilitySetName}",
        "compute:CapacityReservation": (
            "Microsoft.Compute/capacityReservationGroups/{capacityReservationGroupName}/capacityReservations/{capacityReservationName}"
        ),
        "compute:CapacityReservationGroup": "Microsoft.Compute/capacityReservationGroups/{capacityReservationGroupName}",
        "compute:Disk": "Microsoft.Compute/disks/{diskName}",
        "compute:DiskEncryptionSet": "Microsoft.Compute/diskEncryptionSets/{diskEncryptionSetName}",
        "compute:Gallery": "Microsoft.Compute/galleries/{galleryName}",
        "compute:GalleryImage": "Microsoft.Compute/galleries/{galleryName}/images/{galleryImageName}",
        "compute:GalleryImageVersion": (
            "Microsoft.Compute/galleries/{galleryName}/images/{galleryImageName}/versions/{galleryImageVersionName}"
        ),
        "compute:ProximityPlacementGroup": "Microsoft.Compute/proximityPlacementGroups/{proximityPlacementGroupName}",
        "compute:VirtualMachine": "Microsoft.Compute/virtualMachines/{vmName}",
        "compute:VirtualMachineExtension": "Microsoft.Compute/virtualMachines/{vmName}/extensions/{vmExtensionName}",
        "compute:VirtualMachineScaleSet": "Microsoft.Compute/virtualMachineScaleSets/{vmScaleSetName}",
        "compute:VirtualMachineScaleSetVM": "Microsoft.Compute/virtualMachineScaleSets/{vmScaleSetName}/virtualMachines/{instanceId}",
        "dnsresolver:DnsResolver": "Microsoft.Network/dnsResolvers/{dnsResolverName}",
        "dnsresolver:InboundEndpoint": "Microsoft.Network/dnsResolvers/{dnsResolverName}/inboundEndpoints/{inboundEndpointName}",
        "keyvault:Key": "Microsoft.KeyVault/vaults/{vaultName}/keys/{keyName}",
        "keyvault:Secret": "Microsoft.KeyVault/vaults/{vaultName}/secrets/{secretName}",
        "keyvault:Vault": "Microsoft.KeyVault/vaults/{vaultName}",
        "managedidentity:FederatedIdentityCredential": (
            "Microsoft.ManagedIdentity/userAssignedIdentities/{resourceName}"
            "/federatedIdentityCredentials/{federatedIdentityCredentialResourceName}"
        ),
        "managedidentity:UserAssignedIdentity": "Microsoft.ManagedIdentity/userAssignedIdentities/{resourceName}",
        "network:ApplicationSecurityGroup": "Microsoft.Network/applicationSecurityGroups/{applicationSecurityGroupName}",
        "network:BastionHost": "Microsoft.Network/bastionHosts/{bastionHostName}",
        "network:LoadBalancer": "Microsoft.Network/loadBalancers/{loadBalancerName}",
        "network:NatGateway": "Microsoft.Network/natGateways/{natGatewayName}",
        "network:NetworkInterface": "Microsoft.Network/networkInterfaces/{networkInterfaceName}",
        "network:NetworkSecurityGroup": "Microsoft.Network/networkSecurityGroups/{networkSecurityGroupName}",
        "network:PrivateDnsZoneGroup": (
            "Microsoft.Network/privateEndpoints/{privateEndpointName}/privateDnsZoneGroups/{privateDnsZoneGroupName}"
        ),
        "network:PrivateEndpoint": "Microsoft.Network/privateEndpoints/{privateEndpointName}",
        "network:PrivateLinkService": "Microsoft.Network/privateLinkServices/{serviceName}",
        "network:PublicIPAddress": "Microsoft.Network/publicIPAddresses/{publicIpAddressName}",
        "network:PublicIPPrefix": "Microsoft.Network/publicIPPrefixes/{publicIpPrefixName}",
        "network:RouteTable": "Microsoft.Network/routeTables/{routeTableName}",
        "network:SecurityRule": "Microsoft.Network/networkSecurityGroups/{networkSecurityGroupName}/securityRules/{securityRuleName}",
        "network:Subnet": "Microsoft.Network/virtualNetworks/{virtualNetworkName}/subnets/{subnetName}",
        "network:VirtualNetwork": "Microsoft.Network/virtualNetworks/{virtualNetworkName}",
        "network:VirtualNetworkGateway": "Microsoft.Network/virtualNetworkGateways/{virtualNetworkGatewayName}",
        "network:VirtualNetworkPeering": (
            "Microsoft.Network/virtualNetworks/{virtualNetworkName}/virtualNetworkPeerings/{virtualNetworkPeeringName}"
        ),
        "privatedns:PrivateRecordSet": "Microsoft.Network/privateDnsZones/{privateZoneName}/{recordType}/{relativeRecordSetName}",
        "privatedns:PrivateZone": "Microsoft.Network/privateDnsZones/{privateZoneName}",
        "privatedns:VirtualNetworkLink": "Microsoft.Network/privateDnsZones/{privateZoneName}/virtualNetworkLinks/{virtualNetworkLinkName}",
        "storage:BlobContainer": "Microsoft.Storage/storageAccounts/{accountName}/blobServices/default/containers/{containerName}",
        "storage:BlobContainerImmutabilityPolicy": (
            "Microsoft.Storage/storageAccounts/{accountName}/blobServices/default/containers/{containerName}"
            "/immutabilityPolicies/{immutabilityPolicyName}"
        ),
        "storage:BlobServiceProperties": "Microsoft.Storage/storageAccounts/{accountName}/blobServices/{blobServicesName}",
        "storage:ManagementPolicy": "Microsoft.Storage/storageAccounts/{accountName}/managementPolicies/{managementPolicyName}",
        "storage:StorageAccount": "Microsoft.Storage/storageAccounts/{accountName}",
        "virtualmachineimages:Trigger": "Microsoft.VirtualMachineImages/imageTemplates/{imageTemplateName}/triggers/{triggerName}",
        "virtualmachineimages:VirtualMachineImageTemplate": "Microsoft.VirtualMachineImages/imageTemplates/{imageTemplateName}",
    }
)
"""Path below `/subscriptions/…/resourceGroups/…/providers/` by `module:Type`. Inputs with names are in braces
(https://learn.microsoft.com/azure/templates/ and https://github.com/pulumi/pulumi-azure-native)."""

SCOPE_PATHS = MappingProxyType(
    {
        "authorization:ManagementLockByScope": ("scope", "Microsoft.Authorization/locks/{lockName}"),
        "authorization:RoleAssignment": ("scope", "Microsoft.Authorization/roleAssignments/{roleAssignmentName}"),
        "authorization:RoleDefinition": ("scope", "Microsoft.Authorization/roleDefinitions/{roleDefinitionId}"),
        "monitor:DiagnosticSetting": ("resourceUri", "Microsoft.Insights/diagnosticSettings/{name}"),
    }
)
"""Types below another resource: the input that contains that resource's id, and the path below `<id>/providers/`."""
