"""Says where in Azure's resource hierarchy each azure-native type lives: its ARM path below the resource group, from input names."""

from types import MappingProxyType

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
"""`module:Type` to path below `/subscriptions/…/resourceGroups/…/providers/`; in braces the input that holds a name
(https://learn.microsoft.com/azure/templates/ and https://github.com/pulumi/pulumi-azure-native)."""

SCOPE_PATHS = MappingProxyType(
    {
        "authorization:ManagementLockByScope": ("scope", "Microsoft.Authorization/locks/{lockName}"),
        "authorization:RoleAssignment": ("scope", "Microsoft.Authorization/roleAssignments/{roleAssignmentName}"),
        "authorization:RoleDefinition": ("scope", "Microsoft.Authorization/roleDefinitions/{roleDefinitionId}"),
        "monitor:DiagnosticSetting": ("resourceUri", "Microsoft.Insights/diagnosticSettings/{name}"),
    }
)
"""Types that live below another resource: the input that holds its id, and the path below `<that id>/providers/`."""
