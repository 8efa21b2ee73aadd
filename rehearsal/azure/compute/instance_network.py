"""Bodies of the network interfaces of a scale set's instances, of their ipConfigurations and public addresses.

https://learn.microsoft.com/rest/api/virtualnetwork/network-interface-in-vm-ss and
https://learn.microsoft.com/rest/api/virtualnetwork/public-ip-addresses/list-virtual-machine-scale-set-public-ip-addresses
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import Any

from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Instance, state_of
from rehearsal.azure.resource import Json, Resource

INSTANCE = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"
INTERFACE = f"{INSTANCE}/networkInterfaces"
CONFIGURATION = f"{INTERFACE}/ipConfigurations"
PUBLIC_ADDRESS = f"{CONFIGURATION}/publicIPAddresses"
_CONFIGURED = ("loadBalancerBackendAddressPools", "applicationGatewayBackendAddressPools", "applicationSecurityGroups")


def instance_interfaces(cloud: Cloud, resource: Resource, one: Instance) -> Iterator[Json]:
    """Yield an instance's network interfaces with their addresses."""
    model = state_of(resource).models[one.model]
    own = f"{resource.id.text}/virtualMachines/{one.id}"
    configured = (model.profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or []
    addresses = iter(one.addresses)
    for nic in configured:
        inner = nic.get("properties") or {}
        text = f"{own}/networkInterfaces/{nic['name']}"
        configurations = inner.get("ipConfigurations") or []
        unique = cloud.stable_uuid(state_of(resource).born, one.id, "interface", nic["name"])
        properties: Json = {
            "provisioningState": "Succeeded",
            "resourceGuid": unique,
            "macAddress": f"00-0D-3A-{unique[:2]}-{unique[2:4]}-{unique[4:6]}".upper(),
            "primary": bool(inner.get("primary", len(configured) == 1)),
            "enableAcceleratedNetworking": bool(inner.get("enableAcceleratedNetworking", False)),
            "enableIPForwarding": bool(inner.get("enableIPForwarding", False)),
            "dnsSettings": {"dnsServers": [], "appliedDnsServers": [], **(inner.get("dnsSettings") or {})},
            "virtualMachine": {"id": own},
            "ipConfigurations": [_configuration(text, item, next(addresses), len(configurations)) for item in configurations],
        }
        if inner.get("networkSecurityGroup"):
            properties["networkSecurityGroup"] = inner["networkSecurityGroup"]
        body = {"name": nic["name"], "id": text, "type": INTERFACE, "location": resource.body["location"], "etag": _etag(one)}
        yield {**body, "properties": properties}


def _etag(one: Instance) -> str:
    return f'W/"{one.tasks}"'


def _configuration(nic: str, item: Mapping[str, Any], address: int, count: int) -> Json:
    inner = item.get("properties") or {}
    text = f"{nic}/ipConfigurations/{item['name']}"
    properties: Json = {
        "provisioningState": "Succeeded",
        "privateIPAddress": str(IPv4Address(address)),
        "privateIPAllocationMethod": "Dynamic",
        "privateIPAddressVersion": inner.get("privateIPAddressVersion", "IPv4"),
        "subnet": {"id": inner["subnet"]["id"]},
        "primary": bool(inner.get("primary", count == 1)),
        **{name: inner[name] for name in _CONFIGURED if inner.get(name)},
    }
    if public := inner.get("publicIPAddressConfiguration"):
        properties["publicIPAddress"] = {"id": f"{text}/publicIPAddresses/{public['name']}"}
    return {"name": item["name"], "id": text, "properties": properties}


def instance_ip_configurations(cloud: Cloud, resource: Resource, one: Instance) -> Iterator[Json]:
    """Yield the ipConfigurations of all of an instance's interfaces."""
    for nic in instance_interfaces(cloud, resource, one):
        yield from ({**item, "type": CONFIGURATION, "etag": nic["etag"]} for item in nic["properties"]["ipConfigurations"])


def instance_public_addresses(cloud: Cloud, resource: Resource, one: Instance) -> Iterator[Json]:
    """Yield an instance's public addresses."""
    profile = state_of(resource).models[one.model].profile
    nics = (profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or []
    addresses = iter(one.public)
    for nic in nics:
        for item in (nic.get("properties") or {}).get("ipConfigurations") or []:
            public = (item.get("properties") or {}).get("publicIPAddressConfiguration")
            if public:
                owner = f"{resource.id.text}/virtualMachines/{one.id}/networkInterfaces/{nic['name']}/ipConfigurations/{item['name']}"
                yield _public_address(cloud, resource, one, owner, public, next(addresses))


def _public_address(cloud: Cloud, resource: Resource, one: Instance, owner: str, public: Json, address: int) -> Json:
    inner = public.get("properties") or {}
    text = f"{owner}/publicIPAddresses/{public['name']}"
    properties: Json = {
        "provisioningState": "Succeeded",
        "resourceGuid": cloud.stable_uuid(state_of(resource).born, one.id, text),
        "ipAddress": str(IPv4Address(address)),
        "publicIPAddressVersion": inner.get("publicIPAddressVersion", "IPv4"),
        "publicIPAllocationMethod": "Static",
        "idleTimeoutInMinutes": inner.get("idleTimeoutInMinutes", 4),
        "ipTags": inner.get("ipTags") or [],
        "ipConfiguration": {"id": owner},
    }
    if label := (inner.get("dnsSettings") or {}).get("domainNameLabel"):
        region = resource.location
        name = f"vm{one.id}.{label}"
        properties["dnsSettings"] = {"domainNameLabel": name, "fqdn": f"{name}.{region}.cloudapp.azure.com"}
    body: Json = {
        "name": public["name"],
        "id": text,
        "type": PUBLIC_ADDRESS,
        "location": resource.body["location"],
        "etag": _etag(one),
        "sku": {"name": "Standard", "tier": "Regional", **(public.get("sku") or {})},
        "properties": properties,
    }
    return {**body, "zones": [one.zone]} if one.zone else body
