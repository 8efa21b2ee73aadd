"""Subnets: their address prefixes, NAT gateway and delegations, and the refusals for subnets in use.

https://learn.microsoft.com/rest/api/virtualnetwork/subnets
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, ip_network
from itertools import combinations, pairwise
from typing import Any

from rehearsal.azure.arm_id import ArmId, parse
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.compute.instances import Model, state_of
from rehearsal.azure.errors import AzureError, invalid, not_modelled
from rehearsal.azure.network.address_pools import addresses_of, pool_of, prefix_of
from rehearsal.azure.network.child_resources import siblings
from rehearsal.azure.network.network_resource_type import NetworkResourceType, configurations_in, id_of, properties_of, users_by_type
from rehearsal.azure.resource import Json, Resource

SMALLEST_SUBNET = 29
"""Length of the longest prefix of a subnet: https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"""


def parse_prefix(text: str, owner: str) -> IPv4Network:
    """Return a prefix; AzureError InvalidCIDRNotation for host bits or invalid text. Only IPv4 is modelled."""
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        raise invalid(f"The address prefix {text} in resource {owner} is no CIDR.", owner, "InvalidAddressPrefixFormat") from None
    if not isinstance(network, IPv4Network):
        raise invalid(f"The embedded Azure models IPv4 alone; {owner} has {text}. Leave IPv6 prefixes out.", owner, "NotModelled")
    if str(network) != text:
        message = (
            f"The address prefix {text} in resource {owner} has an invalid CIDR notation. For the given prefix length, the address prefix "
            f"should be {network}."
        )
        raise invalid(message, owner, "InvalidCIDRNotation")
    return network


def network_prefixes(body: Json, owner: str) -> tuple[IPv4Network, ...]:
    """Return the prefixes of a virtual network's body; AzureError for overlapping or missing ones."""
    space = properties_of(body).get("addressSpace") or {}
    found = tuple(parse_prefix(str(text), owner) for text in space.get("addressPrefixes") or ())
    if not found and space.get("ipamPoolPrefixAllocations"):
        raise not_modelled(
            "address spaces from pools of Azure Virtual Network Manager", "properties.addressSpace.ipamPoolPrefixAllocations"
        )
    if not found:
        raise invalid(
            f"Address prefix string for resource {owner} cannot be null or empty.", owner, "AddressPrefixStringCannotBeNullOrEmpty"
        )
    for one, other in combinations(found, 2):
        if one.overlaps(other):
            message = f"Address prefixes {one} and {other} of virtual network {owner} overlap."
            raise invalid(message, owner, "OverlappingAddressPrefixes")
    return found


def subnet_prefix(body: Json, owner: str) -> IPv4Network:
    """Return the prefix of a subnet's body; AzureError. A subnet with several prefixes is not modelled."""
    inner = properties_of(body)
    texts = inner.get("addressPrefixes") or [inner["addressPrefix"]] if inner.get("addressPrefix") or inner.get("addressPrefixes") else []
    if not texts:
        raise invalid(
            f"Address prefix string for resource {owner} cannot be null or empty.", owner, "AddressPrefixStringCannotBeNullOrEmpty"
        )
    if len(texts) > 1:
        raise invalid(f"The embedded Azure models one prefix a subnet; {owner} has {len(texts)}.", owner, "NotModelled")
    network = parse_prefix(str(texts[0]), owner)
    if network.prefixlen > SMALLEST_SUBNET:
        message = f"Subnet {owner} has prefix {network}; a subnet is a /{SMALLEST_SUBNET} or larger."
        raise invalid(message, owner, "NetcfgInvalidSubnet")
    return network


def check_prefix_inside(name: str, prefix: IPv4Network, network: ArmId, prefixes: Iterable[IPv4Network]) -> None:
    """Refuse a subnet outside its network. https://github.com/MicrosoftDocs/azure-docs/pull/123869 shows this sentence and that of
    check_prefixes_apart.
    """
    if not any(prefix.subnet_of(one) for one in prefixes):
        message = (
            f"Subnet '{name}' is not valid because its IP address range is outside the IP address range of virtual network "
            f"'{network.name}'."
        )
        raise invalid(message, name, "NetcfgSubnetRangeOutsideVnet")


def check_prefixes_apart(network: ArmId, subnets: Mapping[str, IPv4Network]) -> None:
    """Refuse subnets that overlap; sorted by address, only neighbours can."""
    ordered = sorted(subnets.items(), key=lambda item: (item[1].network_address, item[1].prefixlen))
    for (_, before), (name, prefix) in pairwise(ordered):
        if prefix.overlaps(before):
            message = (
                f"Subnet '{name}' is not valid because its IP address range overlaps with that of an existing subnet in virtual network "
                f"'{network.name}'."
            )
            raise invalid(message, name, "NetcfgSubnetRangesOverlap")


def prefixes_of_network(network: Resource) -> tuple[IPv4Network, ...]:
    """Return the prefixes of an existing network."""
    return tuple(IPv4Network(text) for text in network.properties["addressSpace"]["addressPrefixes"])


def overlapping_prefixes(one: Sequence[IPv4Network], other: Sequence[IPv4Network]) -> list[str]:
    """Return the prefixes of the first sequence that overlap any of the second, as text."""
    return [str(prefix) for prefix in one if any(prefix.overlaps(their) for their in other)]


SUBNETS_PER_NETWORK = 3_000
"""https://github.com/MicrosoftDocs/azure-docs/blob/04cb4ea055a71c3905902eea87fa5d417de31501/includes/azure-virtual-network-limits.md"""
COLLECTION = "subnets"
JOIN = "Microsoft.Network/virtualNetworks/subnets/action"
"""Action that a delegation grants:
https://learn.microsoft.com/azure/virtual-network/subnet-delegation-overview"""
SETS, ENDPOINTS = "microsoft.compute/virtualmachinescalesets", "microsoft.network/privateendpoints"
INTERFACES = "microsoft.network/networkinterfaces"


class Subnet(NetworkResourceType):
    """A subnet. Changes of one network run one after another: a change locks the network and its other subnets.

    Its prefix is one IPv4 CIDR, which cannot change while addresses of it are in use. Service endpoints and policies are stored
    without effect.
    """

    type = "Microsoft.Network/virtualNetworks/subnets"
    noun = "Subnet"
    in_use_code = "InUseSubnetCannotBeDeleted"
    locks_with_parent = True
    has_location = has_guid = False
    items = ("delegations",)
    defaults: Mapping[str, Any] = {
        "delegations": [],
        "privateEndpointNetworkPolicies": "Disabled",
        "privateLinkServiceNetworkPolicies": "Enabled",
    }

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse a subnet outside its network, an overlap with another, or a change of a prefix in use."""
        super().check(cloud, arm_id, body, previous)
        network = cloud.get(arm_id.parent or "")
        own = subnet_prefix(body, arm_id.text)
        check_prefix_inside(arm_id.name, own, network.id, prefixes_of_network(network))
        others = siblings(cloud, arm_id)
        check_subnet_count(network.id, len(others) + 1)
        for one in others:
            check_prefixes_apart(network.id, {one.id.name: subnet_prefix(one.body, one.key), arm_id.name: own})
        check_subnet(cloud, arm_id, body, previous, network.location)

    def accepted(self, cloud: Cloud, resource: Resource, previous: Json | None) -> None:
        """Forget the pool of a changed prefix; none of its addresses is in use."""
        addresses = addresses_of(cloud)
        pool = addresses.pools.get(resource.key)
        if pool is not None and str(pool.prefix) != prefix_of(resource):
            addresses.forget(resource.key)

    def complete(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        """Add defaults, and what Azure adds to delegations and service endpoints."""
        whole = super().complete(cloud, arm_id, body, previous)
        inner: Json = whole["properties"]
        for one in inner["delegations"]:
            one["properties"].setdefault("actions", [JOIN])
        if inner["delegations"]:
            inner["purpose"] = ""
        network = cloud.find(arm_id.parent or "")
        for one in inner.get("serviceEndpoints") or ():
            one["provisioningState"] = "Succeeded"
            one.setdefault("locations", [network.location] if network else [])
        return whole

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with the ids of the ipConfigurations and the private endpoints in the subnet, if there are any."""
        shown = super().view(cloud, resource, query)
        endpoints = [{"id": one} for one in users_by_type(cloud, resource).get(ENDPOINTS, [])]
        found = [{"id": one} for one in (*configurations_in(cloud, resource, "subnet"), *_of_instances(cloud, resource))]
        more = {name: ids for name, ids in (("ipConfigurations", found), ("privateEndpoints", endpoints)) if ids}
        return {**shown, "properties": {**shown["properties"], **more}} if more else shown

    def check_deletable(self, cloud: Cloud, resource: Resource) -> None:
        """Refuse a delete while addresses are in use, also by machines whose scale set names another subnet by now."""
        super().check_deletable(cloud, resource)
        used = pool_of(cloud, resource.key).used
        if used and not any(True for _ in cloud.index.users(resource.key)):
            message = f"Subnet {resource.id.text} is in use by {used} IP configurations and cannot be deleted."
            raise AzureError(400, self.in_use_code, message, target=resource.id.text)

    def removed(self, cloud: Cloud, resource: Resource) -> None:
        """Forget the pool."""
        addresses_of(cloud).forget(resource.key)


def _of_instances(cloud: Cloud, subnet: Resource) -> Iterator[str]:
    """Yield the ids of the ipConfigurations of scale sets' instances in a subnet."""
    for key in cloud.index.users(subnet.key):
        user = cloud.resources[key]
        if user.id.type.lower() == SETS and user.state is not None:
            state = state_of(user)
            inside = {
                number: [
                    f"networkInterfaces/{one.nic}/ipConfigurations/{one.name}"
                    for one in model.ip_configurations
                    if one.subnet.lower() == subnet.key
                ]
                for number, model in state.models.items()
            }
            for number, one in state.instances.items():
                if one.addresses:
                    yield from (f"{user.id.text}/virtualMachines/{number}/{path}" for path in inside[one.model])


def _paths_in(model: Model, subnet: str) -> list[str]:
    """Return the paths below an instance of a model's ipConfigurations in a subnet, which is a key."""
    return [f"networkInterfaces/{one.nic}/ipConfigurations/{one.name}" for one in model.ip_configurations if one.subnet.lower() == subnet]


def check_subnet_count(network: ArmId, count: int) -> None:
    """Refuse more subnets than a network can have. Azure publishes the limit, but not the code; this code is assumed."""
    if count > SUBNETS_PER_NETWORK:
        message = f"Virtual network {network.text} would have {count} subnets, of at most {SUBNETS_PER_NETWORK}."
        raise invalid(message, network.text, "SubnetCountLimitReached")


def check_subnet(cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None, location: str) -> None:
    """Check what concerns one subnet alone, in a PUT of the subnet or of its network."""
    if previous is not None and prefix_of(previous) != str(subnet_prefix(body, arm_id.text)) and pool_of(cloud, arm_id.text).used:
        message = f"IpPrefix {prefix_of(previous)} on Subnet {arm_id.name} has active allocations and cannot be deleted."
        raise invalid(message, arm_id.text, "InUsePrefixCannotBeDeleted")
    for name in ("natGateway", "networkSecurityGroup", "routeTable"):
        used = cloud.find(id_of(properties_of(body).get(name)))
        if used is not None and used.location != location:
            raise Subnet().missing_reference_error(arm_id, used.id.text)
    _check_nat_gateway(cloud, arm_id, id_of(properties_of(body).get("natGateway")))


def _check_nat_gateway(cloud: Cloud, arm_id: ArmId, gateway: str) -> None:
    """Refuse a NAT gateway that serves subnets of another network. The code is assumed.
    https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource#limitations
    """
    for key in cloud.index.users(gateway.lower()) if gateway else ():
        user = cloud.resources[key].id
        if user.type.lower() == Subnet.type.lower() and (user.parent or "").lower() != (arm_id.parent or "").lower():
            message = f"NAT gateway {gateway} serves subnet {user.text} and cannot span virtual networks; {arm_id.text} needs another."
            raise invalid(message, arm_id.text, "NatGatewayCannotSpanVirtualNetworks")


def subnet_used_by(cloud: Cloud, arm_id: ArmId, subnet_id: str, location: str) -> Resource | None:
    """Return the subnet that a resource allocates addresses from; None if there is none, which the model itself refuses.

    AzureError InvalidResourceReference if the subnet's network is in another region, SubnetIsDelegated (assumed) if the subnet is
    reserved for a service.
    """
    subnet = cloud.find(subnet_id)
    if subnet is None or subnet.id.type.lower() != Subnet.type.lower():
        return None
    network = cloud.get(subnet.id.parent or "")
    if location and network.location != location:
        raise Subnet().missing_reference_error(arm_id, subnet_id)
    service = next((str(properties_of(one).get("serviceName", "")) for one in subnet.properties.get("delegations") or ()), "")
    if service and not arm_id.type.lower().startswith(service.lower()):
        message = f"Subnet {subnet.id.text} is delegated to {service}; {arm_id.text} cannot use it."
        raise AzureError(400, "SubnetIsDelegated", message, target=subnet.id.text)
    return subnet


def network_of(subnet_id: str) -> str:
    """Return the id of the network that contains a subnet."""
    return parse(subnet_id).parent or ""
