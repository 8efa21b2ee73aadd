"""A valid body of every resource type that a client creates, in an order in which they can be created."""

from __future__ import annotations

from typing import Any

SUBSCRIPTION = "11111111-1111-4111-8111-111111111111"
TENANT = "7b0c9a44-2f0e-4f57-9c39-6a1f0f0f5a10"
LOCATION = "swedencentral"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g"
NETWORK, COMPUTE = f"{GROUP}/providers/Microsoft.Network", f"{GROUP}/providers/Microsoft.Compute"
HUB, ZONE = f"{NETWORK}/virtualNetworks/hub", f"{NETWORK}/privateDnsZones/fleet.internal"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/backups1"
CONTAINER = f"{ACCOUNT}/blobServices/default/containers/etcd"
VAULT = f"{GROUP}/providers/Microsoft.KeyVault/vaults/gf-node"
IDENTITY = f"{GROUP}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/node"
ROLE = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/0b0b0b0b-0000-4000-8000-000000000001"
IMAGE = f"{COMPUTE}/galleries/pictures/images/node"
SCALE_SET, MACHINE = f"{COMPUTE}/virtualMachineScaleSets/pool", f"{COMPUTE}/virtualMachines/one"
EPHEMERAL = f"{COMPUTE}/virtualMachines/two"
TEMPLATE = f"{GROUP}/providers/Microsoft.VirtualMachineImages/imageTemplates/build"
BALANCER = f"{NETWORK}/loadBalancers/api"
PLATFORM = {"publisher": "microsoft-dsvm", "offer": "ubuntu-hpc", "sku": "2404", "version": "latest"}
GLOBAL = {"location": "global"}

Body = dict[str, Any]
PUBLIC: Body = {"publicIPAddressConfiguration": {"name": "public"}}
HEALTH: Body = {
    "name": "health",
    "properties": {
        "publisher": "Microsoft.ManagedServices",
        "type": "ApplicationHealthLinux",
        "typeHandlerVersion": "2.0",
        "settings": {"protocol": "http", "port": 10256, "requestPath": "/healthz"},
    },
}


def located(sku: str = "", zones: tuple[str, ...] = (), /, **properties: Any) -> Body:
    """Return a body with a location, and with a SKU and zones if they are given."""
    more: Body = {"sku": {"name": sku}} if sku else {}
    return {"location": LOCATION, **more, **({"zones": list(zones)} if zones else {}), "properties": properties}


def subnet(prefix: str, **properties: Any) -> Body:
    """Return a subnet."""
    return {"properties": {"addressPrefix": prefix, **properties}}


def place(name: str, where: str, **properties: Any) -> Body:
    """Return an ipConfiguration in a subnet of the hub."""
    return {"name": name, "properties": {"subnet": {"id": f"{HUB}/subnets/{where}"}, **properties}}


def operating_system(**more: Any) -> Body:
    return {"adminUsername": "gpufleet", "adminPassword": "Correct-Horse-9", "customData": "Ym9vdA==", **more}


def machine(name: str, size: str, **disk: Any) -> Body:
    """Return a virtual machine with an interface of its name and an OS disk."""
    return located(
        hardwareProfile={"vmSize": size},
        osProfile=operating_system(computerName=name),
        storageProfile={"imageReference": PLATFORM, "osDisk": {"createOption": "FromImage", **disk}},
        networkProfile={"networkInterfaces": [{"id": f"{NETWORK}/networkInterfaces/{name}"}]},
    )


def records(**content: Any) -> Body:
    """Return a record set."""
    return {"properties": {"ttl": 300, **content}}


_NETWORK: dict[str, Body] = {
    HUB: located(addressSpace={"addressPrefixes": ["10.0.0.0/16"]}),
    f"{HUB}/subnets/nodes": subnet("10.0.0.0/24"),
    f"{HUB}/subnets/nat": subnet("10.0.1.0/24", privateLinkServiceNetworkPolicies="Disabled"),
    f"{HUB}/subnets/GatewaySubnet": subnet("10.0.2.0/24"),
    f"{HUB}/subnets/dns": subnet(
        "10.0.20.0/24", delegations=[{"name": "dns", "properties": {"serviceName": "Microsoft.Network/dnsResolvers"}}]
    ),
    f"{NETWORK}/virtualNetworks/spoke": located(addressSpace={"addressPrefixes": ["10.1.0.0/16"]}),
    f"{HUB}/virtualNetworkPeerings/spoke": {"properties": {"remoteVirtualNetwork": {"id": f"{NETWORK}/virtualNetworks/spoke"}}},
    f"{NETWORK}/networkSecurityGroups/nodes": located(),
    f"{NETWORK}/networkSecurityGroups/nodes/securityRules/ssh": {
        "properties": {
            "protocol": "Tcp",
            "access": "Allow",
            "direction": "Inbound",
            "priority": 100,
            "sourceAddressPrefix": "*",
            "sourcePortRange": "*",
            "destinationAddressPrefix": "*",
            "destinationPortRange": "22",
        }
    },
    f"{NETWORK}/routeTables/out": located(),
    f"{NETWORK}/routeTables/out/routes/default": {"properties": {"addressPrefix": "0.0.0.0/0", "nextHopType": "Internet"}},
    f"{NETWORK}/publicIPPrefixes/ips": located("Standard", prefixLength=31),
    f"{NETWORK}/publicIPAddresses/ip": located("Standard", ("1", "2", "3"), publicIPAllocationMethod="Static"),
    f"{NETWORK}/natGateways/nat": located("Standard", publicIpPrefixes=[{"id": f"{NETWORK}/publicIPPrefixes/ips"}]),
    BALANCER: located("Standard", frontendIPConfigurations=[place("front", "nodes")]),
    f"{NETWORK}/networkInterfaces/one": located(ipConfigurations=[place("one", "nodes", primary=True)]),
    f"{NETWORK}/networkInterfaces/two": located(ipConfigurations=[place("one", "nodes", primary=True)]),
    f"{NETWORK}/privateLinkServices/api": located(
        ipConfigurations=[place("one", "nat", primary=True)],
        loadBalancerFrontendIpConfigurations=[{"id": f"{BALANCER}/frontendIPConfigurations/front"}],
    ),
    VAULT: located(tenantId=TENANT, sku={"family": "A", "name": "standard"}, enableRbacAuthorization=True),
    f"{VAULT}/secrets/join": {"properties": {"value": "a token"}},
    f"{NETWORK}/privateEndpoints/vault": located(
        subnet={"id": f"{HUB}/subnets/nodes"},
        privateLinkServiceConnections=[{"name": "one", "properties": {"privateLinkServiceId": VAULT, "groupIds": ["vault"]}}],
    ),
    ZONE: GLOBAL,
    f"{ZONE}/virtualNetworkLinks/hub": {**GLOBAL, "properties": {"virtualNetwork": {"id": HUB}, "registrationEnabled": False}},
    f"{ZONE}/A/a": records(aRecords=[{"ipv4Address": "10.0.0.9"}]),
    f"{ZONE}/AAAA/a": records(aaaaRecords=[{"ipv6Address": "fd00::9"}]),
    f"{ZONE}/CNAME/c": records(cnameRecord={"cname": "a.fleet.internal"}),
    f"{ZONE}/MX/m": records(mxRecords=[{"preference": 10, "exchange": "a.fleet.internal"}]),
    f"{ZONE}/PTR/p": records(ptrRecords=[{"ptrdname": "a.fleet.internal"}]),
    f"{ZONE}/SRV/s": records(srvRecords=[{"priority": 1, "weight": 1, "port": 80, "target": "a.fleet.internal"}]),
    f"{ZONE}/TXT/t": records(txtRecords=[{"value": ["text"]}]),
    f"{NETWORK}/privateEndpoints/vault/privateDnsZoneGroups/default": {
        "properties": {"privateDnsZoneConfigs": [{"name": "vault", "properties": {"privateDnsZoneId": ZONE}}]}
    },
    f"{NETWORK}/virtualNetworkGateways/vpn": located(
        gatewayType="Vpn",
        vpnType="RouteBased",
        sku={"name": "VpnGw1AZ", "tier": "VpnGw1AZ"},
        ipConfigurations=[place("one", "GatewaySubnet", publicIPAddress={"id": f"{NETWORK}/publicIPAddresses/ip"})],
    ),
    f"{NETWORK}/dnsResolvers/hub": located(virtualNetwork={"id": HUB}),
    f"{NETWORK}/dnsResolvers/hub/inboundEndpoints/in": located(ipConfigurations=[{"subnet": {"id": f"{HUB}/subnets/dns"}}]),
}
_COMPUTE: dict[str, Body] = {
    f"{COMPUTE}/capacityReservationGroups/reserved": {"location": LOCATION, "zones": ["1"]},
    f"{COMPUTE}/capacityReservationGroups/reserved/capacityReservations/cpu": {
        "location": LOCATION,
        "zones": ["1"],
        "sku": {"name": "Standard_D2s_v5", "capacity": 1},
    },
    f"{COMPUTE}/proximityPlacementGroups/near": located(proximityPlacementGroupType="Standard"),
    f"{COMPUTE}/galleries/pictures": located(),
    IMAGE: located(
        osType="Linux", osState="Generalized", hyperVGeneration="V2", identifier={"publisher": "p", "offer": "o", "sku": "node"}
    ),
    f"{IMAGE}/versions/1.0.0": located(
        storageProfile={"source": {"id": f"{COMPUTE}/images/captured"}}, publishingProfile={"targetRegions": [{"name": LOCATION}]}
    ),
    TEMPLATE: {
        **located(
            source={"type": "PlatformImage", **PLATFORM},
            distribute=[{"type": "SharedImage", "runOutputName": "out", "galleryImageId": IMAGE, "replicationRegions": [LOCATION]}],
        ),
        "identity": {"type": "UserAssigned", "userAssignedIdentities": {IDENTITY: {}}},
    },
    f"{COMPUTE}/disks/data": located("Premium_LRS", creationData={"createOption": "Empty"}, diskSizeGB=64),
    MACHINE: machine("one", "Standard_D2s_v5"),
    EPHEMERAL: machine(
        "two", "Standard_D2ads_v6", caching="ReadOnly", diffDiskSettings={"option": "Local", "placement": "NvmeDisk"}, diskSizeGB=64
    ),
    SCALE_SET: {
        **located(
            orchestrationMode="Uniform",
            singlePlacementGroup=False,
            platformFaultDomainCount=1,
            overprovision=False,
            upgradePolicy={"mode": "Manual"},
            virtualMachineProfile={
                "osProfile": operating_system(computerNamePrefix="pool-"),
                "storageProfile": {"imageReference": PLATFORM, "osDisk": {"createOption": "FromImage"}},
                "networkProfile": {
                    "networkInterfaceConfigurations": [
                        {
                            "name": "nic",
                            "properties": {"primary": True, "ipConfigurations": [place("one", "nodes", primary=True, **PUBLIC)]},
                        }
                    ]
                },
                "extensionProfile": {"extensions": [HEALTH]},
            },
        ),
        "sku": {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 2},
    },
}
BODIES: dict[str, Body] = {
    GROUP: {"location": LOCATION},
    IDENTITY: {"location": LOCATION},
    f"{IDENTITY}/federatedIdentityCredentials/pod": {
        "properties": {"issuer": "https://issuer.example", "subject": "pod", "audiences": ["api://AzureADTokenExchange"]}
    },
    ACCOUNT: {**located("Standard_ZRS"), "kind": "StorageV2"},
    f"{ACCOUNT}/blobServices/default": {"properties": {"isVersioningEnabled": True}},
    CONTAINER: {"properties": {}},
    f"{CONTAINER}/immutabilityPolicies/default": {"properties": {"immutabilityPeriodSinceCreationInDays": 7}},
    f"{ACCOUNT}/managementPolicies/default": {
        "properties": {
            "policy": {
                "rules": [
                    {
                        "enabled": True,
                        "name": "old",
                        "type": "Lifecycle",
                        "definition": {
                            "actions": {"baseBlob": {"delete": {"daysAfterModificationGreaterThan": 30}}},
                            "filters": {"blobTypes": ["blockBlob"]},
                        },
                    }
                ]
            }
        }
    },
    ROLE: {
        "properties": {
            "roleName": "Fleet reader",
            "permissions": [{"actions": ["*/read"], "notActions": []}],
            "assignableScopes": [f"/subscriptions/{SUBSCRIPTION}"],
        }
    },
    f"{ACCOUNT}/providers/Microsoft.Authorization/roleAssignments/00000000-0000-4000-8000-000000000001": {
        "properties": {"roleDefinitionId": ROLE, "principalId": "99999999-9999-4999-8999-999999999999"}
    },
    **_NETWORK,
    **_COMPUTE,
    f"{VAULT}/providers/Microsoft.Insights/diagnosticSettings/logs": {
        "properties": {"storageAccountId": ACCOUNT, "logs": [{"categoryGroup": "audit", "enabled": True}]}
    },
    f"{VAULT}/providers/Microsoft.Authorization/locks/stay": {"properties": {"level": "CanNotDelete"}},
}
"""Bodies by resource id."""
