"""Peerings of virtual networks: overlap of addresses, and the states of both sides.

https://learn.microsoft.com/rest/api/virtualnetwork/virtual-network-peerings,
https://learn.microsoft.com/azure/virtual-network/virtual-network-manage-peering
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import AzureError, invalid, property_change_not_allowed
from rehearsal.azure.network import subnets
from rehearsal.azure.network.address_pools import addresses_of
from rehearsal.azure.network.child_resources import existing_children, siblings
from rehearsal.azure.network.network_resource_type import NetworkResourceType, id_of, properties_of
from rehearsal.azure.resource import Json, Operation, Resource

COLLECTION = "virtualNetworkPeerings"
PEERINGS_PER_NETWORK = 500
"""https://github.com/MicrosoftDocs/azure-docs/blob/04cb4ea055a71c3905902eea87fa5d417de31501/includes/azure-virtual-network-limits.md"""
GATEWAYS = "microsoft.network/virtualnetworkgateways"


class Peering(NetworkResourceType):
    """One side of a peering: Initiated until the other side exists, then Connected, and Disconnected after the other side was deleted.

    With peerCompleteVnets false only localSubnetNames and remoteSubnetNames are peered, and only their prefixes may not overlap:
    https://techcommunity.microsoft.com/blog/azurenetworkingblog/subnet-peering/4397640. Addresses in use count per network all the
    same.
    """

    type = "Microsoft.Network/virtualNetworks/virtualNetworkPeerings"
    noun = "Peering"
    defaults: Mapping[str, Any] = {
        "allowVirtualNetworkAccess": True,
        "peerCompleteVnets": True,
        "allowForwardedTraffic": False,
        "allowGatewayTransit": False,
        "useRemoteGateways": False,
        "doNotVerifyRemoteGateways": False,
    }
    locks_with_parent = True
    has_location = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a peering of a network with itself, a second one, overlapping addresses, or a disconnected other side."""
        remote_id = id_of(properties_of(body).get("remoteVirtualNetwork"))
        if not remote_id:
            raise invalid(
                f"Peering {arm_id.text} names no remoteVirtualNetwork.", "properties.remoteVirtualNetwork", "InvalidRequestFormat"
            )
        if previous is not None and _remote(previous) != remote_id.lower():
            raise property_change_not_allowed("properties.remoteVirtualNetwork.id", _remote(previous), remote_id)
        local, remote = cloud.get(arm_id.parent or ""), cloud.find(remote_id)
        if remote is None:
            return
        if remote.key == local.key:
            raise invalid(f"Virtual network {local.id.text} cannot be peered with itself.", arm_id.text, "VnetCannotBePeeredWithItself")
        self._check_siblings(cloud, arm_id, body, local, remote)
        back = _other_side(cloud, local.key, remote.key, body)
        if previous is None and back is not None and back.properties["peeringState"] == "Disconnected":
            raise _disconnected(arm_id, local, back)
        self._check_apart(cloud, arm_id, body, local, remote)
        if properties_of(body).get("useRemoteGateways") and not _has_gateway(cloud, remote):
            message = (
                f"Peering {arm_id.text} cannot have UseRemoteGateways flag set to true because remote virtual network {remote.id.text} "
                "referenced by the peering does not have any gateways."
            )
            raise invalid(message, arm_id.text, "RemoteVnetHasNoGateways")

    def _check_siblings(self, cloud: Cloud, arm_id: ArmId, body: Json, local: Resource, remote: Resource) -> None:
        others = siblings(cloud, arm_id)
        if len(others) >= PEERINGS_PER_NETWORK:
            message = f"Virtual network {local.id.text} has {len(others)} peerings, of at most {PEERINGS_PER_NETWORK}."
            raise invalid(message, arm_id.text, "PeeringCountLimitReached")
        for one in others:
            if _remote(one) == remote.key and (_peers_complete_networks(body) or _peers_complete_networks(one.body)):
                message = (
                    f"Peering {one.id.text} already references remote virtual network {remote.id.text}. Cannot add another peering "
                    f"{arm_id.text} referencing the same remote virtual network."
                )
                raise invalid(message, arm_id.text, "AnotherPeeringAlreadyReferencesRemoteVnet")

    def _check_apart(self, cloud: Cloud, arm_id: ArmId, body: Json, local: Resource, remote: Resource) -> None:
        ours, theirs = peered_prefixes(cloud, body, local, "localSubnetNames"), peered_prefixes(cloud, body, remote, "remoteSubnetNames")
        if found := subnets.overlapping_prefixes(ours, theirs):
            message = (
                f"Cannot create or update peering {arm_id.text}. Virtual networks {local.id.text} and {remote.id.text} cannot be peered "
                f"because their address spaces overlap. Overlapping address prefixes: {', '.join(found)}"
            )
            raise invalid(message, arm_id.text, "VnetAddressSpacesOverlap")
        for third, other in _peered_with(cloud, remote):
            if third.key != local.key and (found := subnets.overlapping_prefixes(ours, other)):
                message = (
                    f"Cannot create or update peering {arm_id.text}. Virtual networks {local.id.text} and {remote.id.text} cannot be "
                    "peered because address space of the first virtual network overlaps with address space of virtual network "
                    f"{third.id.text} already peered with the second virtual network. Overlapping address prefixes: {', '.join(found)}."
                )
                raise invalid(message, arm_id.text, "VnetAddressSpaceOverlapsWithAlreadyPeeredVnet")

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults, the present address spaces of both sides, and the state until the operation ends."""
        whole = super().complete(cloud, arm_id, body, previous)
        inner: Json = whole["properties"]
        sides = {"local": cloud.get(arm_id.parent or ""), "remote": cloud.find(id_of(inner["remoteVirtualNetwork"]))}
        for side, network in sides.items():
            if network is not None:
                space = {"addressPrefixes": [str(one) for one in peered_prefixes(cloud, whole, network, f"{side}SubnetNames")]}
                inner[f"{side}AddressSpace"] = space
                inner[f"{side}VirtualNetworkAddressSpace"] = space
        remote = properties_of(sides["remote"].body) if sides["remote"] else {}
        for name, source in (("remoteBgpCommunities", "bgpCommunities"), ("remoteVirtualNetworkEncryption", "encryption")):
            if source in remote:
                inner[name] = remote[source]
        state = previous.properties["peeringState"] if previous is not None else "Initiated"
        inner["peeringState"] = "Initiated" if state == "Disconnected" else state
        inner["peeringSyncLevel"] = "FullyInSync" if inner["peeringState"] == "Connected" else "RemoteNotInSync"
        return whole

    def finished(self, cloud: Cloud, resource: Resource, operation: Operation) -> None:
        """Connect both sides if the other side exists, and count their addresses together."""
        back = _other_side(cloud, resource.id.parent or "", _remote(resource), resource.body)
        if back is not None and back.properties["peeringState"] != "Disconnected":
            _set_state(resource, "Connected")
            _set_state(back, "Connected")
            _regroup(cloud, resource)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Set the other side to Disconnected."""
        back = _other_side(cloud, resource.id.parent or "", _remote(resource), resource.body)
        if back is not None:
            _set_state(back, "Disconnected")
        _regroup(cloud, resource)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body; it is out of sync after the prefixes of a network changed since the last PUT of this side."""
        shown = super().view(cloud, resource, query)
        inner = shown["properties"]
        if inner["peeringState"] == "Connected":
            local = _stale(cloud, resource.body, cloud.get(resource.id.parent or ""), "local")
            remote = _stale(cloud, resource.body, cloud.find(_remote(resource)), "remote")
            level = {(False, False): "FullyInSync", (True, True): "LocalAndRemoteNotInSync", (True, False): "LocalNotInSync"}
            shown["properties"] = {**inner, "peeringSyncLevel": level.get((local, remote), "RemoteNotInSync")}
        return shown

    def blocks_deletion(self, resource: Resource, target: Resource) -> bool:
        """Return False: a peered network can be deleted, which disconnects the other side."""
        return False


def peered_prefixes(cloud: Cloud, body: Json, network: Resource, names: str) -> tuple[IPv4Network, ...]:
    """Return the prefixes of a network that a peering joins: all of them, or those of the named subnets."""
    if _peers_complete_networks(body):
        return subnets.prefixes_of_network(network)
    found = (cloud.find(f"{network.id.text}/subnets/{name}") for name in properties_of(body).get(names) or ())
    return tuple(subnets.subnet_prefix(one.body, one.key) for one in found if one is not None)


def check_new_prefixes(cloud: Cloud, network: Resource, prefixes: Sequence[IPv4Network]) -> None:
    """Refuse prefixes of a network that overlap those of a peered network."""
    for other, theirs in _peered_with(cloud, network):
        if found := subnets.overlapping_prefixes(prefixes, theirs):
            message = (
                f"Cannot update virtual network {network.id.text}: it is peered with {other.id.text}, and their address spaces would "
                f"overlap. Overlapping address prefixes: {', '.join(found)}"
            )
            raise invalid(message, network.id.text, "VnetAddressSpacesOverlap")


def _peered_with(cloud: Cloud, network: Resource) -> Iterator[tuple[Resource, tuple[IPv4Network, ...]]]:
    """Yield the networks that a network's own peerings name, with the joined prefixes of each."""
    for one in existing_children(cloud, network.key, COLLECTION):
        remote = cloud.find(_remote(one))
        if remote is not None:
            yield remote, peered_prefixes(cloud, one.body, remote, "remoteSubnetNames")


def _other_side(cloud: Cloud, local: str, remote: str, body: Json) -> Resource | None:
    """Return the remote network's peering with the local one that joins the same extent: complete networks or subnets."""
    for one in existing_children(cloud, remote.lower(), COLLECTION):
        if _remote(one) == local.lower() and _peers_complete_networks(one.body) == _peers_complete_networks(body):
            return one
    return None


def _disconnected(arm_id: ArmId, local: Resource, back: Resource) -> AzureError:
    message = (
        f"Cannot create or update peering {arm_id.text} because remote peering {back.id.text} referencing parent virtual network "
        f"{local.id.text} is in Disconnected state. Update or re-create the remote peering to get it back to Initiated state. Peering gets "
        "Disconnected when remote vnet or remote peering is deleted and re-created."
    )
    return invalid(message, arm_id.text, "RemotePeeringIsDisconnected")


def _has_gateway(cloud: Cloud, network: Resource) -> bool:
    subnet = f"{network.key}/subnets/gatewaysubnet"
    return any(cloud.resources[key].id.type.lower() == GATEWAYS for key in cloud.index.users(subnet))


def _stale(cloud: Cloud, body: Json, network: Resource | None, side: str) -> bool:
    if network is None:
        return True
    now = [str(one) for one in peered_prefixes(cloud, body, network, f"{side}SubnetNames")]
    return bool(now != body["properties"][f"{side}AddressSpace"]["addressPrefixes"])


def _set_state(peering: Resource, state: str) -> None:
    peering.properties["peeringState"] = state
    peering.properties["peeringSyncLevel"] = "FullyInSync" if state == "Connected" else "RemoteNotInSync"


def _regroup(cloud: Cloud, peering: Resource) -> None:
    for key in (peering.id.parent or "", _remote(peering)):
        addresses_of(cloud).regroup(cloud, key)


def _remote(peering: Resource) -> str:
    return id_of(peering.properties["remoteVirtualNetwork"]).lower()


def _peers_complete_networks(body: Json) -> bool:
    return properties_of(body).get("peerCompleteVnets", True) is not False
