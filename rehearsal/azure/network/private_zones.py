"""Decides how private zones behave, and which networks know them.

https://learn.microsoft.com/azure/dns/private-dns-privatednszone, https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.errors import AzureError, conflict, invalid
from rehearsal.azure.network import child_resources
from rehearsal.azure.network.network_resource_type import NetworkKind, id_of, properties_of
from rehearsal.azure.network.record_sets import RECORD_SETS_PER_ZONE
from rehearsal.azure.network.virtual_networks import LINKS
from rehearsal.azure.resource import Json, Operation, Resource

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

LINKS_PER_ZONE = 1_000
REGISTERING_LINKS_PER_ZONE = 100
MOST_LABELS = 34
STARTS_OF_AUTHORITY = 1
"""All: https://learn.microsoft.com/azure/dns/private-dns-privatednszone"""


class PrivateZone(NetworkKind):
    """A private zone: global, at least two labels, with a start of authority."""

    type = "Microsoft.Network/privateDnsZones"
    everywhere = True
    noun = "Private DNS zone"
    put_takes = "dns.put"
    guid = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Its place and its name."""
        super().check(cloud, arm_id, body, previous)
        check_global(arm_id, body)
        labels = arm_id.name.split(".")
        if not 2 <= len(labels) <= MOST_LABELS or not all(labels):
            message = f"The zone name '{arm_id.name}' has {len(labels)} labels; a private zone has 2 to {MOST_LABELS}."
            raise invalid(message, arm_id.name, "BadRequest")

    def removable(self, cloud: Cloud, resource: Resource) -> None:
        """Links have to go first; record sets go with it."""
        super().removable(cloud, resource)
        links = [one.id for one in child_resources.present(cloud, resource.key, "virtualNetworkLinks")]
        if links:
            names = ", ".join(f"'Microsoft.Network/privateDnsZones/{resource.id.name}/virtualNetworkLinks/{one.name}'" for one in links[:3])
            message = (
                f"Cannot delete resource while nested resources exist. Some existing nested resource IDs include: {names}. Please delete "
                "all nested resources before deleting this resource."
            )
            raise conflict("CannotDeleteResource", message, resource.id.text)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """With how much of what it holds, and may hold."""
        told = super().view(cloud, resource, query)
        children = [cloud.resources[key] for key in cloud.index.children(resource.key)]
        links = [one for one in children if one.id.type.lower() == LINKS]
        counts = {
            "maxNumberOfRecordSets": RECORD_SETS_PER_ZONE,
            "numberOfRecordSets": len(children) - len(links) + STARTS_OF_AUTHORITY,
            "maxNumberOfVirtualNetworkLinks": LINKS_PER_ZONE,
            "numberOfVirtualNetworkLinks": len(links),
            "maxNumberOfVirtualNetworkLinksWithRegistration": REGISTERING_LINKS_PER_ZONE,
            "numberOfVirtualNetworkLinksWithRegistration": sum(1 for one in links if one.properties["registrationEnabled"]),
        }
        return {**told, "properties": {**told["properties"], **counts}}


class VirtualNetworkLink(NetworkKind):
    """A link that makes a zone known in a network. Registering machines by their names is not modelled."""

    type = "Microsoft.Network/privateDnsZones/virtualNetworkLinks"
    everywhere = True
    noun = "Virtual network link"
    put_takes = "dns.put"
    guid = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """A network is linked to a zone once, to one zone of a name, and registers its machines in one zone."""
        super().check(cloud, arm_id, body, previous)
        check_global(arm_id, body)
        network = id_of(properties_of(body).get("virtualNetwork"))
        if not network:
            raise invalid(f"Virtual network link {arm_id.text} names no virtualNetwork.", "properties.virtualNetwork", "BadRequest")
        if previous is not None and id_of(previous.properties["virtualNetwork"]).lower() != network.lower():
            raise _refused(f"The virtual network of link {arm_id.text} cannot be changed; delete the link and make another.")
        registers = bool(properties_of(body).get("registrationEnabled"))
        zone = parse(arm_id.parent or "")
        for key in cloud.index.users(network.lower()):
            other = cloud.resources[key]
            if key == arm_id.key or other.id.type.lower() != LINKS:
                continue
            theirs = parse(other.id.parent or "")
            if theirs.name.lower() == zone.name.lower():
                raise _refused(
                    f"A virtual network cannot be linked to multiple zones with overlapping namespaces. You tried to link virtual network "
                    f"with '{zone.name}' and '{theirs.name}' zones."
                )
            if registers and other.properties["registrationEnabled"]:
                raise _refused(
                    "A virtual network can only be linked to 1 Private DNS zone(s) with auto-registration enabled; conflicting Private DNS "
                    f"zone is '{theirs.name}'."
                )
        self._check_count(cloud, arm_id, registers)

    def _check_count(self, cloud: Cloud, arm_id: ArmId, registers: bool) -> None:
        links = [
            one for one in child_resources.present(cloud, (arm_id.parent or "").lower(), "virtualNetworkLinks") if one.key != arm_id.key
        ]
        if len(links) >= LINKS_PER_ZONE:
            raise _refused(f"Zone {arm_id.parent} has {len(links)} links, of at most {LINKS_PER_ZONE}.")
        registering = sum(1 for one in links if one.properties["registrationEnabled"])
        if registers and registering >= REGISTERING_LINKS_PER_ZONE:
            raise _refused(f"Zone {arm_id.parent} has {registering} links with registration, of at most {REGISTERING_LINKS_PER_ZONE}.")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Nobody is registered unless it says so."""
        whole = super().complete(cloud, arm_id, body, previous)
        whole["properties"].setdefault("registrationEnabled", False)
        whole["properties"]["virtualNetworkLinkState"] = "InProgress"
        return whole

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """The network knows the zone."""
        resource.properties["virtualNetworkLinkState"] = "Completed"

    def holds(self, resource: Resource, target: Resource) -> bool:
        """A network goes though zones are known in it; the links go with it."""
        return False


def check_global(arm_id: ArmId, body: Json) -> None:
    """Refuse any place but the one that zones have."""
    if str(body.get("location", "")).lower() != "global":
        message = (
            f"The provided location '{body.get('location')}' is not available for resource type '{arm_id.type}'. List of available regions "
            "for the resource type is 'global'."
        )
        raise invalid(message, "location", "LocationNotAvailableForResourceType")


def _refused(message: str) -> AzureError:
    """A link that may not be: https://github.com/Azure/terraform-azurerm-caf-enterprise-scale/issues/157 shows the code."""
    return conflict("Conflict", message)
