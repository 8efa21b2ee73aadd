"""Virtual networks: their prefixes, and the subnets in their bodies.

https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import invalid
from rehearsal.azure.network.address_pools import addresses_of
from rehearsal.azure.network.child_resources import (
    check_removed_children,
    children_views,
    existing_children,
    listed_children,
    replace_children,
)
from rehearsal.azure.network.network_resource_type import NetworkResourceType, check_children_idle, check_names, list_of, properties_of
from rehearsal.azure.network.peerings import check_new_prefixes
from rehearsal.azure.network.subnets import (
    COLLECTION,
    check_prefix_inside,
    check_prefixes_apart,
    check_subnet,
    check_subnet_count,
    network_prefixes,
    subnet_prefix,
)
from rehearsal.azure.resource import Json, Resource, location_key

PEERINGS = "virtualNetworkPeerings"
LINKS = "microsoft.network/privatednszones/virtualnetworklinks"


class VirtualNetwork(NetworkResourceType):
    """A virtual network.

    A body that lists subnets replaces all of them, and is refused if one that it leaves out is in use. A body without the property
    preserves them, as Azure does since API version 2023-09-01:
    https://d365hub.com/Posts/Details/b43b9bd4-0607-42f7-aecf-d1338c5074ee/azure-virtual-network-now-supports-updates-without-subnet-property.

    Peerings are separate resources: a body can repeat existing ones and creates none. Not modelled: IPv6, address management pools,
    DDoS plans.
    """

    type = "Microsoft.Network/virtualNetworks"
    noun = "Virtual network"
    in_use_code = "InUseVirtualNetworkCannotBeDeleted"
    defaults: Mapping[str, Any] = {"enableDdosProtection": False, "privateEndpointVNetPolicies": "Disabled"}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse invalid prefixes, subnets outside or overlapping, and changes while a subnet or peering is being changed."""
        super().check(cloud, arm_id, body, previous)
        own = network_prefixes(body, arm_id.text)
        check_children_idle(cloud, arm_id.key)
        children = listed_children(arm_id, body, COLLECTION)
        subnets = {part.id.name: part.body for part in existing_children(cloud, arm_id.key, COLLECTION)}
        if children is not None:
            check_removed_children(cloud, arm_id, children, COLLECTION)
            subnets = {one.name: sent for one, sent in children.values()}
            location = location_key(body["location"])
            for one, sent in children.values():
                check_names(one, list_of(sent, "delegations"))
                check_subnet(cloud, one, sent, cloud.resources.get(one.key), location)
        found = {name: subnet_prefix(sent, f"{arm_id.text}/{COLLECTION}/{name}") for name, sent in subnets.items()}
        check_subnet_count(arm_id, len(found))
        for name, prefix in found.items():
            check_prefix_inside(name, prefix, arm_id, own)
        check_prefixes_apart(arm_id, found)
        if previous is not None:
            check_new_prefixes(cloud, previous, own)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults; the subnets stay in the body until their references were checked."""
        for item in properties_of(body).get(PEERINGS) or ():
            if cloud.find(f"{arm_id.text}/{PEERINGS}/{item.get('name')}") is None:
                message = (
                    f"The embedded Azure makes no peering from a network's body; PUT {arm_id.text}/{PEERINGS}/{item.get('name')} instead."
                )
                raise invalid(message, PEERINGS, "NotModelled")
        whole = super().complete(cloud, arm_id, body, previous)
        whole["properties"].pop(PEERINGS, None)
        if communities := whole["properties"].get("bgpCommunities"):
            communities["regionalCommunity"] = f"12076:5{zlib.crc32(location_key(body['location']).encode()) % 10_000:04}"
        return whole

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Replace the subnets by those of the body."""
        replace_children(cloud, resource, listed_children(resource.id, resource.body, COLLECTION), COLLECTION)

    def patch_base(self, cloud: Cloud, resource: Resource) -> Json:
        """Return the last PUT without subnets, which a PATCH preserves."""
        inner = {name: value for name, value in properties_of(resource.sent).items() if name != COLLECTION}
        return {**resource.sent, "properties": inner}

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete while a subnet is in use; as on Azure, the refusal names the subnet."""
        super().check_deletable(cloud, resource)
        for part in existing_children(cloud, resource.key, COLLECTION):
            cloud.check_deletion(part)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Forget its addresses, and delete the private DNS links of the network."""
        addresses_of(cloud).forget_network(resource.key)
        for key in list(cloud.index.users(resource.key)):
            if (user := cloud.resources[key]).id.type.lower() == LINKS:
                cloud.remove(user)

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with its present subnets and peerings."""
        shown = super().view(cloud, resource, query)
        found = {name: children_views(cloud, resource, name) for name in (COLLECTION, PEERINGS)}
        return {**shown, "properties": {**shown["properties"], **found}}
