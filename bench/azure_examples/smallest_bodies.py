"""The smallest body of each resource type, and of each item of one, that Azure accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from bench.azure_examples.example import STAND_INS, SUBSCRIPTION, TENANT
from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.resource import Json

if TYPE_CHECKING:
    from bench.azure_examples.presupposed import Presupposed

BESIDE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/presupposed/providers"
NETWORK = f"{BESIDE}/Microsoft.Network/virtualNetworks/presupposed"
SUBNET = f"{NETWORK}/subnets/presupposed"
SUBNETS = "Microsoft.Network/virtualNetworks/subnets"
GALLERY = f"{BESIDE}/Microsoft.Compute/galleries/presupposed"
IMAGE = f"{GALLERY}/images/presupposed"
SOURCE = f"{BESIDE}/Microsoft.Compute/images/presupposed"


def public_image() -> Json:
    """Return a marketplace image."""
    return {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"}


def login(name: str) -> Json:
    """Return an OS profile with an SSH key."""
    keys = [{"path": "/home/operator1/.ssh/authorized_keys", "keyData": STAND_INS["keydata"]}]
    return {name: "machine", "adminUsername": "operator1", "linuxConfiguration": {"ssh": {"publicKeys": keys}}}


BALANCERS, INTERFACES = "microsoft.network/loadbalancers", "microsoft.network/networkinterfaces"
ITEMS: Mapping[tuple[str, str], Callable[[str], Json]] = {
    (BALANCERS, "frontendipconfigurations"): lambda _owner: {"subnet": {"id": SUBNET}},
    (BALANCERS, "probes"): lambda _owner: {"protocol": "Tcp", "port": 80},
    (BALANCERS, "inboundnatrules"): lambda owner: {
        "frontendIPConfiguration": {"id": f"{owner}/frontendIPConfigurations/ipconfig"},
        "protocol": "Tcp",
        "frontendPort": 3_389,
        "backendPort": 3_389,
    },
    (BALANCERS, "inboundnatpools"): lambda owner: {
        "frontendIPConfiguration": {"id": f"{owner}/frontendIPConfigurations/ipconfig"},
        "protocol": "Tcp",
        "frontendPortRangeStart": 50_000,
        "frontendPortRangeEnd": 50_119,
        "backendPort": 22,
    },
    (INTERFACES, "ipconfigurations"): lambda _owner: {"subnet": {"id": SUBNET}, "primary": False},
}
"""Function from the owner's id to the smallest properties of an item, by the owner's lower-case type and the collection."""


def _located(made: Presupposed, **properties: Any) -> Json:
    return {"location": made.location, "properties": properties}


def _network(made: Presupposed, arm_id: ArmId) -> Json:
    inside = [address for subnet, address in made.addresses.items() if subnet.startswith(f"{arm_id.key}/")]
    prefixes = list(dict.fromkeys(f"{'.'.join(one.split('.')[:2])}.0.0/16" for one in inside))
    space = {"addressPrefixes": prefixes or [f"10.{made.prefix_of(arm_id.text)}.0.0/16"]}
    more = {"bgpCommunities": {"virtualNetworkCommunity": "12076:20000"}, "encryption": {"enabled": False}} if made.peered else {}
    return _located(made, addressSpace=space, **more)


def _subnet(made: Presupposed, arm_id: ArmId) -> Json:
    network = made.cloud.find(arm_id.parent or "")
    taken = [one.properties["addressPrefix"] for one in made.cloud.list(arm_id.parent or "", SUBNETS)] if network else []
    prefixes = network.properties["addressSpace"]["addressPrefixes"] if network else ["10.0.0.0/16"]
    static = made.addresses.get(arm_id.key)
    whole = ip_network(static).supernet(new_prefix=24) if static else next(iter(ip_network(prefixes[0]).subnets(new_prefix=16)), None)
    free = [str(one) for one in ip_network(str(whole or prefixes[0])).subnets(new_prefix=24)] if not static else [str(whole)]
    prefix = next(one for one in reversed(free) if one not in taken or static)
    inner: Json = {"addressPrefix": prefix, "privateLinkServiceNetworkPolicies": "Disabled"}
    if made.delegated and arm_id.name != "GatewaySubnet" and arm_id.text != SUBNET:
        inner["delegations"] = [{"name": "resolvers", "properties": {"serviceName": "Microsoft.Network/dnsResolvers"}}]
    return {"properties": inner}


def _scale_set(made: Presupposed, _id: ArmId) -> Json:
    configuration = {"name": made.configuration, "properties": {"primary": True, "subnet": {"id": SUBNET}}}
    nic = {"name": made.interface, "properties": {"primary": True, "ipConfigurations": [configuration]}}
    disk = {"createOption": "FromImage", "managedDisk": {"storageAccountType": "Premium_LRS"}}
    profile: Json = {
        "osProfile": {**login("computerNamePrefix")},
        "storageProfile": {"imageReference": public_image(), "osDisk": disk},
        "networkProfile": {"networkInterfaceConfigurations": [nic]},
    }
    if made.rolling:
        health = {"publisher": "Microsoft.ManagedServices", "type": "ApplicationHealthLinux", "typeHandlerVersion": "1.0"}
        settings = {"protocol": "tcp", "port": 80}
        profile["extensionProfile"] = {"extensions": [{"name": "health", "properties": {**health, "settings": settings}}]}
    if made.spot:
        profile |= {"priority": "Spot", "evictionPolicy": "Deallocate"}
    mode = "Rolling" if made.rolling else "Manual"
    inner = {"orchestrationMode": "Uniform", "overprovision": False, "upgradePolicy": {"mode": mode}, "virtualMachineProfile": profile}
    return {**_located(made, **inner), "sku": {"name": "Standard_D2s_v5", "tier": "Standard", "capacity": 3}}


def _machine(made: Presupposed, arm_id: ArmId) -> Json:
    interface = f"{arm_id.group_id}/providers/Microsoft.Network/networkInterfaces/{arm_id.name}-nic"
    disk = {"createOption": "FromImage", "managedDisk": {"storageAccountType": "Premium_LRS"}, "name": f"{arm_id.name}-disk"}
    return _located(
        made,
        hardwareProfile={"vmSize": "Standard_D2s_v5"},
        osProfile=login("computerName"),
        storageProfile={"imageReference": public_image(), "osDisk": disk},
        networkProfile={"networkInterfaces": [{"id": interface, "properties": {"primary": True}}]},
    )


def _interface(made: Presupposed, _id: ArmId) -> Json:
    inner = {"subnet": {"id": SUBNET}, "primary": True}
    return _located(made, ipConfigurations=[{"name": made.configuration, "properties": inner}])


def _balancer(made: Presupposed, _id: ArmId) -> Json:
    inner = {"subnet": {"id": SUBNET}}
    body = _located(made, frontendIPConfigurations=[{"name": made.configuration, "properties": inner}])
    return {**body, "sku": {"name": "Standard"}}


def _image_version(made: Presupposed, _id: ArmId) -> Json:
    return _located(made, storageProfile={"source": {"id": SOURCE}}, publishingProfile={"targetRegions": [{"name": made.location}]})


def _template(made: Presupposed, _id: ArmId) -> Json:
    output = {"type": "SharedImage", "runOutputName": "presupposed", "galleryImageId": IMAGE, "replicationRegions": [made.location]}
    inner = {"source": {"type": "PlatformImage", **public_image()}, "distribute": [output]}
    identity = f"{BESIDE}/Microsoft.ManagedIdentity/userAssignedIdentities/presupposed"
    return {**_located(made, **inner), "identity": {"type": "UserAssigned", "userAssignedIdentities": {identity: {}}}}


def _gateway(made: Presupposed, _id: ArmId) -> Json:
    public = {"id": f"{BESIDE}/Microsoft.Network/publicIPAddresses/presupposed"}
    place = {"name": made.configuration, "properties": {"subnet": {"id": f"{NETWORK}/subnets/GatewaySubnet"}, "publicIPAddress": public}}
    sku = {"name": "VpnGw1AZ", "tier": "VpnGw1AZ"}
    return _located(made, gatewayType="Vpn", vpnType="RouteBased", sku=sku, ipConfigurations=[place])


def _link_service(made: Presupposed, _id: ArmId) -> Json:
    frontend = f"{BESIDE}/Microsoft.Network/loadBalancers/presupposed/frontendIPConfigurations/{made.configuration}"
    place = {"name": made.configuration, "properties": {"subnet": {"id": SUBNET}, "primary": True}}
    return _located(made, loadBalancerFrontendIpConfigurations=[{"id": frontend}], ipConfigurations=[place])


def _endpoint(made: Presupposed, _id: ArmId) -> Json:
    service = f"{BESIDE}/Microsoft.Network/privateLinkServices/presupposed"
    return _located(
        made, subnet={"id": SUBNET}, privateLinkServiceConnections=[{"name": "link", "properties": {"privateLinkServiceId": service}}]
    )


def _zone_group(_made: Presupposed, _id: ArmId) -> Json:
    zone = f"{BESIDE}/Microsoft.Network/privateDnsZones/presupposed.example"
    return {"properties": {"privateDnsZoneConfigs": [{"name": "zone", "properties": {"privateDnsZoneId": zone}}]}}


def _inbound(made: Presupposed, arm_id: ArmId) -> Json:
    resolver = made.cloud.find(arm_id.parent or "")
    network = (resolver.properties.get("virtualNetwork") or {}).get("id", NETWORK) if resolver else NETWORK
    return _located(made, ipConfigurations=[{"subnet": {"id": f"{network}/subnets/resolvers"}, "privateIpAllocationMethod": "Dynamic"}])


def _vault(made: Presupposed, _id: ArmId) -> Json:
    return _located(made, tenantId=TENANT, sku={"family": "A", "name": "standard"}, accessPolicies=[])


def _rule(_made: Presupposed, _id: ArmId) -> Json:
    return {
        "properties": {
            "protocol": "*",
            "access": "Allow",
            "direction": "Inbound",
            "priority": 4_000,
            "sourceAddressPrefix": "*",
            "destinationAddressPrefix": "*",
            "sourcePortRange": "*",
            "destinationPortRange": "*",
        }
    }


def _records(_made: Presupposed, arm_id: ArmId) -> Json:
    held: Json = {
        "a": {"aRecords": [{"ipv4Address": "10.0.0.4"}]},
        "aaaa": {"aaaaRecords": [{"ipv6Address": "fd00::4"}]},
        "cname": {"cnameRecord": {"cname": "presupposed.example"}},
        "mx": {"mxRecords": [{"preference": 0, "exchange": "presupposed.example"}]},
        "ptr": {"ptrRecords": [{"ptrdname": "presupposed.example"}]},
        "srv": {"srvRecords": [{"priority": 0, "weight": 10, "port": 80, "target": "presupposed.example"}]},
        "txt": {"txtRecords": [{"value": ["presupposed"]}]},
    }
    return {"properties": {"ttl": 3_600, **held[arm_id.type.rpartition("/")[2].lower()]}}


def _policy(_made: Presupposed, _id: ArmId) -> Json:
    actions = {"baseBlob": {"delete": {"daysAfterModificationGreaterThan": 30}}}
    rule = {"name": "presupposed", "type": "Lifecycle", "definition": {"actions": actions, "filters": {"blobTypes": ["blockBlob"]}}}
    return {"properties": {"policy": {"rules": [rule]}}}


def _role(_made: Presupposed, _id: ArmId) -> Json:
    role = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7"
    return {
        "properties": {"roleDefinitionId": role, "principalId": "ce2ce14e-85d7-4629-bdbc-454d0519d987", "principalType": "ServicePrincipal"}
    }


def _definition(_made: Presupposed, arm_id: ArmId) -> Json:
    permissions = [{"actions": ["Microsoft.Compute/*/read"], "notActions": []}]
    return {
        "properties": {
            "roleName": arm_id.name,
            "type": "CustomRole",
            "permissions": permissions,
            "assignableScopes": [f"/subscriptions/{SUBSCRIPTION}"],
        }
    }


SMALLEST: Mapping[str, Callable[[Presupposed, ArmId], Json]] = {
    "microsoft.authorization/roleassignments": _role,
    "microsoft.authorization/roledefinitions": _definition,
    "microsoft.compute/capacityreservationgroups": lambda made, _id: {
        "location": made.location,
        **({"zones": list(made.zones)} if made.zones else {}),
    },
    "microsoft.compute/capacityreservationgroups/capacityreservations": lambda made, _id: {
        "location": made.location,
        "sku": {"name": "Standard_D2s_v5", "capacity": 4},
    },
    "microsoft.compute/disks": lambda made, _id: _located(made, creationData={"createOption": "Empty"}, diskSizeGB=128),
    "microsoft.compute/galleries/images": lambda made, arm_id: _located(
        made,
        osType="Linux",
        osState="Generalized",
        hyperVGeneration="V2",
        identifier={"publisher": "presupposed", "offer": "presupposed", "sku": arm_id.name},
    ),
    "microsoft.compute/galleries/images/versions": _image_version,
    "microsoft.compute/virtualmachines": _machine,
    "microsoft.compute/virtualmachinescalesets": _scale_set,
    "microsoft.keyvault/vaults": lambda made, _id: _located(
        made, tenantId=TENANT, sku={"family": "A", "name": "standard"}, accessPolicies=[]
    ),
    "microsoft.keyvault/vaults/secrets": lambda _made, _id: {"properties": {"value": "presupposed"}},
    "microsoft.managedidentity/userassignedidentities": lambda made, _id: {"location": made.location},
    "microsoft.managedidentity/userassignedidentities/federatedidentitycredentials": lambda _made, _id: {
        "properties": {"issuer": "https://example.com", "subject": "presupposed", "audiences": ["api://AzureADTokenExchange"]}
    },
    "microsoft.network/dnsresolvers": lambda made, _id: _located(made, virtualNetwork={"id": made.network or NETWORK}),
    "microsoft.network/dnsresolvers/inboundendpoints": _inbound,
    "microsoft.network/loadbalancers": _balancer,
    "microsoft.network/natgateways": lambda made, _id: {**_located(made), "sku": {"name": "Standard"}},
    "microsoft.network/networkinterfaces": _interface,
    "microsoft.network/networksecuritygroups/securityrules": _rule,
    "microsoft.network/privatednszones": lambda _made, _id: {"location": "global"},
    "microsoft.network/privatednszones/virtualnetworklinks": lambda _made, _id: {
        "location": "global",
        "properties": {"virtualNetwork": {"id": NETWORK}, "registrationEnabled": False},
    },
    **{f"microsoft.network/privatednszones/{kind}": _records for kind in ("a", "aaaa", "cname", "mx", "ptr", "srv", "txt")},
    "microsoft.network/privateendpoints": _endpoint,
    "microsoft.network/privateendpoints/privatednszonegroups": _zone_group,
    "microsoft.network/privatelinkservices": _link_service,
    "microsoft.network/publicipaddresses": lambda made, _id: {
        **_located(made, publicIPAllocationMethod="Static"),
        "sku": {"name": "Standard"},
        **({"zones": list(made.zones)} if made.zones else {}),
    },
    "microsoft.network/publicipprefixes": lambda made, _id: {
        **_located(made, prefixLength=30),
        "sku": {"name": "Standard"},
        **({"zones": list(made.zones)} if made.zones else {}),
    },
    "microsoft.network/routetables/routes": lambda _made, _id: {
        "properties": {"addressPrefix": "10.250.0.0/16", "nextHopType": "VirtualNetworkGateway"}
    },
    "microsoft.network/virtualnetworkgateways": _gateway,
    "microsoft.network/virtualnetworks": _network,
    "microsoft.network/virtualnetworks/subnets": _subnet,
    "microsoft.network/virtualnetworks/virtualnetworkpeerings": lambda _made, arm_id: {
        "properties": {"remoteVirtualNetwork": {"id": f"{arm_id.parent}-peer"}}
    },
    "microsoft.storage/storageaccounts": lambda made, _id: {
        **_located(made, allowBlobPublicAccess=True),
        "kind": "StorageV2",
        "sku": {"name": "Standard_LRS"},
    },
    "microsoft.storage/storageaccounts/blobservices": lambda _made, _id: {"properties": {}},
    "microsoft.storage/storageaccounts/blobservices/containers": lambda _made, _id: {"properties": {}},
    "microsoft.storage/storageaccounts/blobservices/containers/immutabilitypolicies": lambda _made, _id: {
        "properties": {"immutabilityPeriodSinceCreationInDays": 3}
    },
    "microsoft.storage/storageaccounts/managementpolicies": _policy,
    "microsoft.virtualmachineimages/imagetemplates": _template,
}
"""Function to the smallest body by lower-case type."""
