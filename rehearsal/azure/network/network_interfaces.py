"""Network interfaces of virtual machines.

https://learn.microsoft.com/rest/api/virtualnetwork/network-interfaces
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import invalid
from rehearsal.azure.network.ip_configurations import AddressHolder, check_one_primary, check_public_address_free
from rehearsal.azure.network.load_balancers import check_pool_room
from rehearsal.azure.network.network_resource_type import id_of, list_of, properties_of, users_by_type
from rehearsal.azure.network.subnets import network_of
from rehearsal.azure.resource import Json, Resource

ADDRESSES_PER_INTERFACE = 256
"""https://github.com/MicrosoftDocs/azure-docs/blob/04cb4ea055a71c3905902eea87fa5d417de31501/includes/azure-virtual-network-limits.md"""
MACHINES = "microsoft.compute/virtualmachines"


class NetworkInterface(AddressHolder):
    """A network interface. Interfaces of scale sets belong to their instances and are not resources of this type."""

    type = "Microsoft.Network/networkInterfaces"
    noun = "Network interface"
    in_use_code = "NicInUse"
    defaults: Mapping[str, Any] = {
        "disableTcpStateTracking": False,
        "enableAcceleratedNetworking": False,
        "enableIPForwarding": False,
        "nicType": "Standard",
        "vnetEncryptionSupported": False,
    }
    items = ("ipConfigurations",)

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse an interface without ipConfigurations, without one primary, in several networks, or with a public address in use."""
        super().check(cloud, arm_id, body, previous)
        items = list_of(body, "ipConfigurations")
        if not items:
            message = f"Network interface {arm_id.text} must have one or more IP configurations."
            raise invalid(message, arm_id.text, "NetworkInterfaceMustHaveAtLeastOneIpConfiguration")
        if len(items) > ADDRESSES_PER_INTERFACE:
            message = f"Network interface {arm_id.text} has {len(items)} private addresses, of at most {ADDRESSES_PER_INTERFACE}."
            raise invalid(message, arm_id.text, "IpConfigurationCountLimitReached")
        check_one_primary(arm_id, items)
        networks = {network_of(one.subnet).lower() for one in self.ip_configurations(arm_id, body)}
        if len(networks) != 1:
            message = f"The IP configurations of {arm_id.text} must be in subnets of one virtual network, not of {len(networks)}."
            raise invalid(message, arm_id.text, "IpConfigurationsMustBeInOneVirtualNetwork")
        for item in items:
            check_public_address_free(cloud, arm_id, id_of(properties_of(item).get("publicIPAddress")))
            for pool in list_of(item, "loadBalancerBackendAddressPools"):
                if arm_id.key not in cloud.index.users(id_of(pool).lower()):
                    check_pool_room(cloud, id_of(pool), 1)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults, and a MAC address of Microsoft's block that depends on the id alone."""
        whole = super().complete(cloud, arm_id, body, previous)
        inner: Json = whole["properties"]
        for item in inner["ipConfigurations"]:
            item["properties"].setdefault("primary", len(inner["ipConfigurations"]) == 1)
            item["properties"].setdefault("privateIPAddressVersion", "IPv4")
        # A virtual machine can create an interface that is in no network.
        subnet = id_of(inner["ipConfigurations"][0]["properties"].get("subnet"))
        network = network_of(subnet) if subnet else arm_id.key
        suffix = f"{cloud.stable_uuid('internalDomainNameSuffix', network.lower())[:26]}.bx.internal.cloudapp.net"
        sent: Json = inner.get("dnsSettings") or {}
        servers = sent.get("dnsServers") or []
        inner["dnsSettings"] = {"dnsServers": [], "appliedDnsServers": servers, "internalDomainNameSuffix": suffix, **sent}
        digits = cloud.stable_uuid("macAddress", arm_id.key).upper()
        inner["macAddress"] = f"00-0D-3A-{digits[:2]}-{digits[2:4]}-{digits[4:6]}"
        return whole

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Release its addresses, and delete the public addresses that are deleted with it."""
        super().removed(cloud, resource)
        for item in list_of(resource.body, "ipConfigurations"):
            public = properties_of(item).get("publicIPAddress") or {}
            found = cloud.resources.get(id_of(public).lower())
            if found is not None and properties_of(public).get("deleteOption") == "Delete" and not found.operation:
                cloud.delete(found)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the machine that the interface is attached to."""
        shown = super().view(cloud, resource, query)
        for machine in users_by_type(cloud, resource).get(MACHINES, [])[:1]:
            shown["properties"] = {
                **shown["properties"],
                "virtualMachine": {"id": machine},
                "primary": _is_primary(cloud.get(machine), resource),
            }
        return shown


def _is_primary(machine: Resource, interface: Resource) -> bool:
    """Return whether an interface is the primary one of its machine; a single one is primary by default."""
    named = (machine.properties.get("networkProfile") or {}).get("networkInterfaces") or []
    flags = {id_of(one).lower(): properties_of(one).get("primary") for one in named}
    return bool(flags.get(interface.key, False)) or len(flags) == 1
