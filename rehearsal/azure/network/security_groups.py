"""Network security groups, their rules and Azure's default rules. Filtering of packets is not modelled.

https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rehearsal.azure.arm_id import ArmId
from rehearsal.azure.cloud import Cloud
from rehearsal.azure.errors import invalid
from rehearsal.azure.network.child_resources import ListingResourceType, listed_children, siblings
from rehearsal.azure.network.network_resource_type import NetworkResourceType, check_children_idle, properties_of
from rehearsal.azure.network.subnets import INTERFACES, Subnet
from rehearsal.azure.preconditions import etag
from rehearsal.azure.resource import Json, Resource

COLLECTION = "securityRules"
RULES_PER_GROUP = 1_000
ADDRESSES_PER_SIDE = 4_000
"""Addresses and ranges in one side of a rule; both limits:
https://github.com/MicrosoftDocs/azure-docs/blob/04cb4ea055a71c3905902eea87fa5d417de31501/includes/azure-virtual-network-limits.md
"""
SETS = "microsoft.compute/virtualmachinescalesets"

DEFAULT_RULES = (
    ("AllowVnetInBound", "Inbound", 65_000, "Allow", "VirtualNetwork", "VirtualNetwork"),
    ("AllowAzureLoadBalancerInBound", "Inbound", 65_001, "Allow", "AzureLoadBalancer", "*"),
    ("DenyAllInBound", "Inbound", 65_500, "Deny", "*", "*"),
    ("AllowVnetOutBound", "Outbound", 65_000, "Allow", "VirtualNetwork", "VirtualNetwork"),
    ("AllowInternetOutBound", "Outbound", 65_001, "Allow", "*", "Internet"),
    ("DenyAllOutBound", "Outbound", 65_500, "Deny", "*", "*"),
)
"""Name, direction, priority, access, source and destination of the rules that every group has.
https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview#default-security-rules
"""
DESCRIPTIONS = {
    "AllowVnetInBound": "Allow inbound traffic from all VMs in VNET",
    "AllowAzureLoadBalancerInBound": "Allow inbound traffic from azure load balancer",
    "DenyAllInBound": "Deny all inbound traffic",
    "AllowVnetOutBound": "Allow outbound traffic from all VMs to all VMs in VNET",
    "AllowInternetOutBound": "Allow outbound traffic from all VMs to Internet",
    "DenyAllOutBound": "Deny all outbound traffic",
}


class SecurityRule(NetworkResourceType):
    """A rule of a group; changes of one group run one after another."""

    type = "Microsoft.Network/networkSecurityGroups/securityRules"
    noun = "Security rule"
    defaults: Mapping[str, Any] = {f"{side}{name}": [] for side in ("source", "destination") for name in ("AddressPrefixes", "PortRanges")}
    locks_with_parent = True
    has_location = has_guid = False

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse an invalid rule, and a priority that another rule of the group has."""
        others = {one.id.name: one.body for one in siblings(cloud, arm_id)}
        check_rules({**others, arm_id.name: body}, checked=others)


class SecurityGroup(ListingResourceType):
    """A security group."""

    type = "Microsoft.Network/networkSecurityGroups"
    collection = COLLECTION
    noun = "Network security group"
    in_use_code = "InUseNetworkSecurityGroupCannotBeDeleted"
    codes_by_user: Mapping[str, str] = {SETS: "NetworkSecurityGroupInUseByVirtualMachineScaleSet"}
    users: Mapping[str, str] = {"subnets": Subnet.type.lower(), "networkInterfaces": INTERFACES}
    defaults: Mapping[str, Any] = {"flushConnection": False}

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None) -> None:
        """Refuse invalid rules, and two rules of one direction with the same priority."""
        super().check(cloud, arm_id, body, previous)
        check_children_idle(cloud, arm_id.key)
        children = listed_children(arm_id, body, COLLECTION) or {}
        check_rules({one.name: rule for one, rule in children.values()})

    def view(self, cloud: Cloud, resource: Resource, query: Mapping[str, str]) -> Json:
        """Return the body with its rules and the default rules."""
        shown = super().view(cloud, resource, query)
        return {**shown, "properties": {**shown["properties"], "defaultSecurityRules": list(_default_rules(resource))}}


def check_rules(rules: Mapping[str, Json], checked: Iterable[str] = ()) -> None:
    """Refuse invalid rules of one group. rules are bodies by name; of the rules in checked, only the priorities are checked again."""
    if len(rules) > RULES_PER_GROUP:
        message = f"A network security group would have {len(rules)} rules, of at most {RULES_PER_GROUP}."
        raise invalid(message, COLLECTION, "SecurityRuleCountLimitReached")
    known = set(checked)
    taken: dict[tuple[str, int], str] = {}
    for name, body in rules.items():
        if name not in known:
            _check_rule(name, properties_of(body))
        slot = (str(properties_of(body)["direction"]).lower(), int(properties_of(body)["priority"]))
        if slot in taken:
            message = f"Security rule {name} conflicts with rule {taken[slot]}. Rules cannot have the same Priority and Direction."
            raise invalid(message, name, "SecurityRuleConflict")
        taken[slot] = name


def _check_rule(name: str, rule: Json) -> None:
    for field, allowed in (("direction", ("inbound", "outbound")), ("access", ("allow", "deny"))):
        if str(rule.get(field, "")).lower() not in allowed:
            raise invalid(
                f"Security rule {name} needs a {field}, one of {', '.join(allowed)}.", f"properties.{field}", "InvalidRequestFormat"
            )
    if not rule.get("protocol"):
        raise invalid(f"Security rule {name} needs a protocol.", "properties.protocol", "InvalidRequestFormat")
    if rule.get("priority") is None:
        raise invalid(f"Security rule {name} needs a priority.", "properties.priority", "InvalidRequestFormat")
    for side in ("source", "destination"):
        _check_prefixes(name, rule, side)


def _check_prefixes(name: str, rule: Json, side: str) -> None:
    found = list(_values(rule, f"{side}AddressPrefix", "es"))
    if not found and not rule.get(f"{side}ApplicationSecurityGroups"):
        message = f"Security rule {name} must specify {side}AddressPrefix, {side}AddressPrefixes or {side}ApplicationSecurityGroups."
        raise invalid(message, name, "SecurityRuleParameterNotSpecified")
    if len(found) > ADDRESSES_PER_SIDE:
        message = f"Security rule {name} has {len(found)} {side} addresses, of at most {ADDRESSES_PER_SIDE}."
        raise invalid(message, name, "SecurityRuleAddressCountLimitReached")


def _values(rule: Json, name: str, plural: str = "s") -> Iterator[str]:
    """Yield the values of a rule's property and of its plural form."""
    if rule.get(name):
        yield str(rule[name])
    yield from map(str, rule.get(f"{name}{plural}") or ())


def _default_rules(group: Resource) -> Iterator[Json]:
    for name, direction, priority, access, source, destination in DEFAULT_RULES:
        inner = {
            "provisioningState": "Succeeded",
            "description": DESCRIPTIONS[name],
            "direction": direction,
            "priority": priority,
            "access": access,
            "protocol": "*",
            "sourceAddressPrefix": source,
            "sourcePortRange": "*",
            "destinationAddressPrefix": destination,
            "destinationPortRange": "*",
        }
        own = f"{group.id.text}/defaultSecurityRules/{name}"
        yield {"id": own, "name": name, "type": f"{group.id.type}/defaultSecurityRules", "etag": etag(group), "properties": inner}
