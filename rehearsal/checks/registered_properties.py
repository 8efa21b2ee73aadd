"""Reader of the planned properties in a registered Azure resource."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rehearsal.checks.expected_resources import Properties
from rehearsal.checks.network_model import key, prefixes
from rehearsal.program.graph import Resource

Inputs = Mapping[str, Any]


def properties_of(resource: Resource) -> Properties:
    """Return the registered properties of a resource; empty for a type without planned properties."""
    read = READERS.get(resource.type.removeprefix("azure-native:"))
    return read(resource.inputs) if read else {}


def _id(reference: Inputs | None) -> str | None:
    """Return the key of a reference's target."""
    return key(reference["id"]) if reference and reference.get("id") else None


def _ids(references: Iterable[Inputs] | None) -> tuple[str | None, ...]:
    return tuple(_id(reference) for reference in references or ())


def _subnets(items: Iterable[Inputs]) -> tuple[str | None, ...]:
    """Return the distinct subnets of some ipConfigurations."""
    return tuple(dict.fromkeys(_id(item.get("subnet")) for item in items))


def _addresses(items: Iterable[Inputs] | None) -> tuple[str, ...]:
    """Return the fixed addresses of some ipConfigurations."""
    return tuple(str(item["privateIPAddress"]) for item in items or () if item.get("privateIPAddress"))


def _resolver_endpoint(inputs: Inputs) -> Properties:
    items = inputs.get("ipConfigurations") or ()
    return {"addresses": tuple(str(item.get("privateIpAddress")) for item in items), "subnets": _subnets(items)}


def _rules(inputs: Inputs) -> Properties:
    sides = (
        ("sourceAddressPrefix", "sourceAddressPrefixes"),
        ("destinationAddressPrefix", "destinationAddressPrefixes"),
        ("destinationPortRange", "destinationPortRanges"),
    )
    words = ("name", "priority", "direction", "access", "protocol")
    rules = inputs.get("securityRules") or ()
    return {"rules": tuple((*(rule.get(word) for word in words), *(prefixes(rule, *side) for side in sides)) for rule in rules)}


def _scale_set(inputs: Inputs) -> Properties:
    profile = inputs.get("virtualMachineProfile") or {}
    interfaces = (profile.get("networkProfile") or {}).get("networkInterfaceConfigurations") or ()
    addresses = [item for interface in interfaces for item in interface.get("ipConfigurations") or ()]
    sku = inputs.get("sku") or {}
    return {
        "machines": sku.get("capacity"),
        "size": sku.get("name"),
        "zones": tuple(inputs.get("zones") or ()),
        "subnets": _subnets(addresses),
        "ipConfigurations per machine": len(addresses),
        "image": _id((profile.get("storageProfile") or {}).get("imageReference")),
        "host name prefix": (profile.get("osProfile") or {}).get("computerNamePrefix"),
        "identities": _identities(inputs),
        "one placement group": inputs.get("singlePlacementGroup") is True,
        "spot": profile.get("priority") == "Spot",
    }


def _identities(inputs: Inputs) -> tuple[str, ...]:
    return tuple(key(identity) for identity in (inputs.get("identity") or {}).get("userAssignedIdentities") or ())


def _machine(inputs: Inputs) -> Properties:
    return {
        "size": (inputs.get("hardwareProfile") or {}).get("vmSize"),
        "zones": tuple(inputs.get("zones") or ()),
        "interfaces": _ids((inputs.get("networkProfile") or {}).get("networkInterfaces")),
        "image": _id((inputs.get("storageProfile") or {}).get("imageReference")),
        "host name": (inputs.get("osProfile") or {}).get("computerName"),
        "identities": _identities(inputs),
    }


def _image_version(inputs: Inputs) -> Properties:
    source = (inputs.get("storageProfile") or {}).get("source") or {}
    targets = (inputs.get("publishingProfile") or {}).get("targetRegions") or ()
    return {
        "replicas": tuple(target.get("regionalReplicaCount") for target in targets),
        "made from": key(source.get("virtualMachineId") or source.get("id")),
    }


def _gateway(inputs: Inputs) -> Properties:
    pool = (inputs.get("vpnClientConfiguration") or {}).get("vpnClientAddressPool") or {}
    return {
        "size": (inputs.get("sku") or {}).get("name"),
        "people's addresses": tuple(pool.get("addressPrefixes") or ()),
        "subnets": _subnets(inputs.get("ipConfigurations") or ()),
    }


READERS: Mapping[str, Callable[[Inputs], Properties]] = {
    "resources:ResourceGroup": lambda inputs: {"location": inputs.get("location")},
    "network:VirtualNetwork": lambda inputs: {
        "address prefixes": tuple((inputs.get("addressSpace") or {}).get("addressPrefixes") or ()),
        "subnets written inline": len(inputs.get("subnets") or ()),
    },
    "network:Subnet": lambda inputs: {
        "address prefix": prefixes(inputs, "addressPrefix", "addressPrefixes"),
        "security group": _id(inputs.get("networkSecurityGroup")),
        "NAT gateway": _id(inputs.get("natGateway")),
    },
    "network:NetworkSecurityGroup": _rules,
    "network:NatGateway": lambda inputs: {
        "public prefixes": _ids(inputs.get("publicIpPrefixes")),
        "zones": tuple(inputs.get("zones") or ()),
    },
    "network:PublicIPPrefix": lambda inputs: {"prefix length": inputs.get("prefixLength")},
    "network:VirtualNetworkGateway": _gateway,
    "network:VirtualNetworkPeering": lambda inputs: {"network": _id(inputs.get("remoteVirtualNetwork"))},
    "network:LoadBalancer": lambda inputs: {
        "front ends": tuple(
            (item.get("privateIPAddress"), _id(item.get("subnet"))) for item in inputs.get("frontendIPConfigurations") or ()
        )
    },
    "network:PrivateLinkService": lambda inputs: {
        "addresses": _addresses(inputs.get("ipConfigurations")),
        "subnets": _subnets(inputs.get("ipConfigurations") or ()),
    },
    "network:PrivateEndpoint": lambda inputs: {
        "target": tuple(key(item.get("privateLinkServiceId")) for item in inputs.get("privateLinkServiceConnections") or ()),
        "subnets": (_id(inputs.get("subnet")),),
        "addresses": _addresses(inputs.get("ipConfigurations")),
    },
    "network:PrivateDnsZoneGroup": lambda inputs: {
        "zones": tuple(key(item.get("privateDnsZoneId")) for item in inputs.get("privateDnsZoneConfigs") or ())
    },
    "network:NetworkInterface": lambda inputs: {
        "addresses": _addresses(inputs.get("ipConfigurations")),
        "subnets": _subnets(inputs.get("ipConfigurations") or ()),
    },
    "dnsresolver:DnsResolver": lambda inputs: {"network": _id(inputs.get("virtualNetwork"))},
    "dnsresolver:InboundEndpoint": _resolver_endpoint,
    "privatedns:VirtualNetworkLink": lambda inputs: {"network": _id(inputs.get("virtualNetwork"))},
    "privatedns:PrivateRecordSet": lambda inputs: {"addresses": tuple(item.get("ipv4Address") for item in inputs.get("aRecords") or ())},
    "compute:VirtualMachineScaleSet": _scale_set,
    "compute:VirtualMachine": _machine,
    "compute:GalleryImageVersion": _image_version,
    "storage:StorageAccount": lambda inputs: {"SKU": (inputs.get("sku") or {}).get("name")},
    "storage:BlobServiceProperties": lambda inputs: {
        "days that deleted blobs are kept": (inputs.get("deleteRetentionPolicy") or {}).get("days")
    },
    "storage:BlobContainerImmutabilityPolicy": lambda inputs: {"days": inputs.get("immutabilityPeriodSinceCreationInDays")},
}
"""Readers of the azure-native types."""
