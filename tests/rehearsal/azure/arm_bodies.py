"""Valid bodies, one of each form: lists of objects, maps, references, secrets, and kinds of object."""

from __future__ import annotations

from typing import Any

GROUP = "/subscriptions/11111111-1111-4111-8111-111111111111/resourceGroups/fleet"
NETWORK = f"{GROUP}/providers/Microsoft.Network"
SUBNET = f"{NETWORK}/virtualNetworks/net/subnets/nodes"
IMAGE = f"{GROUP}/providers/Microsoft.Compute/galleries/fleet/images/h100/versions/2026.11.0"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/node"
BALANCER = f"{NETWORK}/loadBalancers/api"
SCALE_SET = "Microsoft.Compute/virtualMachineScaleSets"


def scale_set(addresses: int) -> dict[str, Any]:
    """A scale set whose machines have so many addresses each."""
    configurations = [
        {"name": f"ipconfig{number}", "properties": {"primary": number == 1, "subnet": {"id": SUBNET}, "privateIPAddressVersion": "IPv4"}}
        for number in range(1, addresses + 1)
    ]
    properties = {"primary": True, "enableAcceleratedNetworking": True, "ipConfigurations": configurations}
    return {
        "location": "southcentralus",
        "tags": {"fleet": "research"},
        "sku": {"name": "Standard_ND96isr_H100_v5", "tier": "Standard", "capacity": 100},
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY: {}}},
        "properties": {
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": True,
            "overprovision": False,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": "h100-", "adminUsername": "fleet", "customData": "I2Nsb3VkLWNvbmZpZwo="},
                "storageProfile": {"imageReference": {"id": IMAGE}, "osDisk": {"createOption": "FromImage", "diskSizeGB": 128}},
                "networkProfile": {"networkInterfaceConfigurations": [{"name": "nic", "properties": properties}]},
            },
        },
    }


BODIES: dict[str, dict[str, Any]] = {
    SCALE_SET: scale_set(3),
    "Microsoft.Compute/virtualMachines": {
        "location": "southcentralus",
        "zones": ["1"],
        "properties": {"hardwareProfile": {"vmSize": "Standard_D2ads_v6"}, "networkProfile": {"networkInterfaces": [{"id": SUBNET}]}},
    },
    "Microsoft.Compute/galleries/images/versions": {
        "location": "southcentralus",
        "properties": {
            "publishingProfile": {"targetRegions": [{"name": "swedencentral", "regionalReplicaCount": 3}], "excludeFromLatest": True},
            "storageProfile": {"source": {"id": IMAGE}},
        },
    },
    "Microsoft.KeyVault/vaults/secrets": {"properties": {"value": "hunter2", "contentType": "text/plain"}},
    "Microsoft.ManagedIdentity/userAssignedIdentities": {"location": "southcentralus", "tags": {"fleet": "research"}},
    "Microsoft.Network/loadBalancers": {
        "location": "southcentralus",
        "sku": {"name": "Standard"},
        "properties": {
            "frontendIPConfigurations": [{"name": "api", "properties": {"subnet": {"id": SUBNET}, "privateIPAddress": "10.0.0.4"}}],
            "backendAddressPools": [{"name": "servers"}],
            "probes": [{"name": "ready", "properties": {"protocol": "Https", "port": 6443, "requestPath": "/readyz"}}],
            "loadBalancingRules": [
                {
                    "name": "api",
                    "properties": {
                        "protocol": "Tcp",
                        "frontendPort": 6443,
                        "frontendIPConfiguration": {"id": f"{BALANCER}/frontendIPConfigurations/api"},
                        "backendAddressPool": {"id": f"{BALANCER}/backendAddressPools/servers"},
                    },
                }
            ],
        },
    },
    "Microsoft.VirtualMachineImages/imageTemplates": {
        "location": "southcentralus",
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY: {}}},
        "properties": {
            "source": {"type": "PlatformImage", "publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2404", "version": "latest"},
            "customize": [{"type": "Shell", "name": "roles", "inline": ["true"]}],
            "distribute": [
                {"type": "SharedImage", "runOutputName": "out", "galleryImageId": IMAGE, "replicationRegions": ["swedencentral"]}
            ],
        },
    },
}
