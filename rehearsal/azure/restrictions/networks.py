"""Properties of network resources: rules of security groups, load balancers, addresses, gateways and routes."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from typing import Any

from rehearsal.azure.restrictions.restriction import AtMost, Between, Fields, Matches, Restriction, Subject, Where
from rehearsal.azure.restrictions.service_tags import is_service_tag

_NETWORK = "Microsoft.Network"
RULE = f"{_NETWORK}/networkSecurityGroups/securityRules"
BALANCER, VIRTUAL_NETWORK, SUBNET = f"{_NETWORK}/loadBalancers", f"{_NETWORK}/virtualNetworks", f"{_NETWORK}/virtualNetworks/subnets"
_SECURITY = "https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview#security-rules"
_BALANCERS = "https://learn.microsoft.com/rest/api/load-balancer/load-balancers/create-or-update"
PRIORITIES, HIGHEST_PORT = (100, 4_096), 65_535
RESERVED_NETWORKS = tuple(map(IPv4Network, ("224.0.0.0/4", "255.255.255.255/32", "127.0.0.0/8", "169.254.0.0/16", "168.63.129.16/32")))
"""https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq#what-address-ranges-can-i-use-in-my-virtual-networks"""


def _is_prefix(text: str) -> bool:
    """Return whether a text is an address, or a CIDR without host bits."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _is_range(text: str) -> bool:
    """Return whether a text is a range of two IPv4 addresses, such as 10.0.0.1-10.0.0.9."""
    low, dash, high = text.partition("-")
    try:
        return bool(dash) and IPv4Address(low) <= IPv4Address(high)
    except ValueError:
        return False


def _bad_prefix(value: Any, _subject: Subject) -> Fields | None:
    text = str(value)
    valid = text in ("", "*") or _is_prefix(text) or _is_range(text) or is_service_tag(text)
    return None if valid else {"value": text}


def _tag_in_list(value: Any, _subject: Subject) -> Fields | None:
    text = str(value)
    return None if _is_prefix(text) or _is_range(text) else {"value": text}


def _bad_ports(value: Any, _subject: Subject) -> Fields | None:
    text = str(value)
    found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text)
    low, high = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    return None if text == "*" or low <= high <= HIGHEST_PORT else {"value": text}


def _ports_of_rule(value: Any, _subject: Subject) -> Fields | None:
    """Refuse ports out of range: 0 belongs to protocol All, and to it alone."""
    available = str(value.get("protocol", "")).lower() == "all"
    for name, most in (("frontendPort", HIGHEST_PORT - 1), ("backendPort", HIGHEST_PORT)):
        port = value.get(name)
        if port not in range(most + 1) or (port == 0) != available:
            return {"value": port, "field": name, "most": most}
    return None


def _probe_port(value: Any, _subject: Subject) -> Fields | None:
    port = value.get("port")
    return None if port in range(1, HIGHEST_PORT + 1) else {"value": port}


def _probe_path(value: Any, _subject: Subject) -> Fields | None:
    protocol = str(value.get("protocol", ""))
    wrong = (protocol.lower() != "tcp") != bool(value.get("requestPath"))
    return {"value": value.get("requestPath"), "protocol": protocol} if wrong else None


def _prefix_length(value: Any, _subject: Subject) -> Fields | None:
    """Refuse a length that Azure does not allocate; a prefix of a customer's own range can be larger."""
    length, own = value.get("prefixLength"), value.get("customIPPrefix")
    low, high = (124, 127) if value.get("publicIPAddressVersion") == "IPv6" else (21 if own else 28, 31)
    return None if isinstance(length, int) and low <= length <= high else {"value": length, "low": low, "high": high}


def _reserved(value: Any, _subject: Subject) -> Fields | None:
    text = str(value)
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    hit = next((one for one in RESERVED_NETWORKS if isinstance(network, IPv4Network) and network.overlaps(one)), None)
    # 0.0.0.0/0 and other prefixes larger than /2 are refused for their size.
    return {"value": text, "reserved": hit} if hit is not None and network.prefixlen >= 4 else None


def _network_size(value: Any, _subject: Subject) -> Fields | None:
    try:
        network = ip_network(str(value), strict=False)
    except ValueError:
        return None
    return {"value": value} if network.version == 4 and not 2 <= network.prefixlen <= 29 else None


def _bad_route_prefix(value: Any, _subject: Subject) -> Fields | None:
    text = str(value)
    try:
        ip_network(text, strict=False)
    except ValueError:
        return None if is_service_tag(text) else {"value": text}
    return None


def _bad_address(value: Any, _subject: Subject) -> Fields | None:
    try:
        ip_address(str(value))
    except ValueError:
        return {"value": value}
    return None


def _outbound_ports(value: Any, _subject: Subject) -> Fields | None:
    return None if isinstance(value, int) and 0 <= value <= 64_000 and value % 8 == 0 else {"value": value}


def _security(side: str) -> tuple[Restriction, ...]:
    prefix = "Security rule has invalid Address prefix. Value provided: {value}"
    return (
        Restriction(
            f"{side}AddressPrefix",
            {RULE: f"properties.{side}AddressPrefix"},
            Where("an address, a CIDR without host bits, *, or a service tag", _bad_prefix),
            prefix,
            "https://github.com/kubernetes-sigs/cloud-provider-azure/issues/5599",
            "SecurityRuleInvalidAddressPrefix",
        ),
        Restriction(
            f"{side}AddressPrefixes tags",
            {RULE: f"properties.{side}AddressPrefixes[]"},
            Where("addresses, and CIDRs without host bits", _bad_prefix),
            prefix,
            "https://github.com/kubernetes-sigs/cloud-provider-azure/issues/5599",
            "SecurityRuleInvalidAddressPrefix",
        ),
        Restriction(
            f"{side}AddressPrefixes",
            {RULE: f"properties.{side}AddressPrefixes[]"},
            Where("no service tag and not *", _tag_in_list),
            f"Security rule parameter {side.capitalize()}AddressPrefix for rule with Id {{id}} cannot specify existing VIRTUALNETWORK, "
            "INTERNET, AZURELOADBALANCER, '*' or system tags. Unsupported value used: {value}.",
            "https://github.com/hashicorp/terraform-provider-azurerm/issues/5617",
            "SecurityRuleParameterContainsUnsupportedValue",
        ),
        *(
            Restriction(
                f"{side}{name}",
                {RULE: f"properties.{side}{place}"},
                Where(f"*, a port, or a range of ports from 0 to {HIGHEST_PORT:,}", _bad_ports),
                "Security rule has invalid Port range. Value provided: {value}. Value should be an integer OR integer range with '-' "
                f"delimiter. Valid range 0-{HIGHEST_PORT}.",
                _SECURITY,
                "SecurityRuleInvalidPortRange",
            )
            for name, place in (("PortRange", "PortRange"), ("PortRanges", "PortRanges[]"))
        ),
    )


ROWS: tuple[Restriction, ...] = (
    Restriction(
        "priority",
        {RULE: "properties.priority"},
        Between(*PRIORITIES),
        f"Security rule has invalid Priority. Value provided: {{value}} Allowed range {PRIORITIES[0]}-{PRIORITIES[1]}.",
        _SECURITY,
        "SecurityRuleInvalidPriority",
    ),
    Restriction(
        "description",
        {RULE: "properties.description"},
        AtMost(140),
        "Security rule has an invalid description of {value} characters, of at most 140.",
        "https://learn.microsoft.com/rest/api/virtualnetwork/security-rules/create-or-update",
        "SecurityRuleInvalidDescription",
        code_assumed=True,
    ),
    *_security("source"),
    *_security("destination"),
    Restriction(
        "rule ports",
        {BALANCER: "properties.loadBalancingRules[].properties"},
        Where("frontendPort 1 to 65,534 and backendPort 1 to 65,535; both 0 for protocol All, and for it alone", _ports_of_rule),
        "A load balancing rule of {id} has {field} {value}: 1 to {most}, and 0 for protocol All alone.",
        f"{_BALANCERS}#loadbalancingrule",
        "InvalidLoadBalancingRule",
        code_assumed=True,
    ),
    Restriction(
        "rule idleTimeoutInMinutes",
        {BALANCER: "properties.loadBalancingRules[].properties.idleTimeoutInMinutes"},
        Between(4, 100),
        "A load balancing rule of {id} has an idle timeout of {value} minutes, outside {bound}.",
        "https://github.com/hashicorp/terraform-provider-azurerm/pull/24751",
        "InvalidLoadBalancingRule",
        code_assumed=True,
    ),
    Restriction(
        "probe port",
        {BALANCER: "properties.probes[].properties"},
        Where(f"a port from 1 to {HIGHEST_PORT:,}", _probe_port),
        "A probe of load balancer {id} has port {value}, outside 1 to 65535.",
        f"{_BALANCERS}#probe",
        "InvalidLoadBalancerProbe",
        code_assumed=True,
    ),
    Restriction(
        "probe intervalInSeconds",
        {BALANCER: "properties.probes[].properties.intervalInSeconds"},
        Between(5, 2**31 - 1),
        "A probe of load balancer {id} has an interval of {value} seconds; the minimum value is 5.",
        f"{_BALANCERS}#probe",
        "InvalidLoadBalancerProbe",
        code_assumed=True,
    ),
    Restriction(
        "probe requestPath",
        {BALANCER: "properties.probes[].properties"},
        Where("a path for Http and Https, and for them alone", _probe_path),
        "A probe of load balancer {id} has protocol {protocol} and requestPath {value!r}: a path belongs to Http and Https.",
        f"{_BALANCERS}#probe",
        "InvalidLoadBalancerProbe",
        code_assumed=True,
    ),
    Restriction(
        "outbound idleTimeoutInMinutes",
        {BALANCER: "properties.outboundRules[].properties.idleTimeoutInMinutes"},
        Between(4, 120),
        "An outbound rule of load balancer {id} has an idle timeout of {value} minutes, outside {bound}.",
        "https://learn.microsoft.com/azure/load-balancer/outbound-rules",
        "InvalidOutboundRule",
        code_assumed=True,
    ),
    Restriction(
        "allocatedOutboundPorts",
        {BALANCER: "properties.outboundRules[].properties.allocatedOutboundPorts"},
        Where("a multiple of 8 from 0 to 64,000", _outbound_ports),
        "An outbound rule of load balancer {id} allocates {value} outbound ports; the number must be a multiple of 8 from 0 to 64000.",
        "https://learn.microsoft.com/azure/load-balancer/outbound-rules",
        "InvalidOutboundRule",
        code_assumed=True,
    ),
    Restriction(
        "public idleTimeoutInMinutes",
        {f"{_NETWORK}/publicIPAddresses": "properties.idleTimeoutInMinutes"},
        Between(4, 30),
        "Public IP address {name} has invalid Idle Timeout {value}. The value must be between 4 and 30.",
        "https://github.com/hashicorp/terraform-provider-azurerm/pull/3579",
        "PublicIPAddressInvalidIdleTimeout",
        code_assumed=True,
    ),
    Restriction(
        "domainNameLabel",
        {f"{_NETWORK}/publicIPAddresses": "properties.dnsSettings.domainNameLabel"},
        Matches(r"[a-z][a-z0-9-]{1,61}[a-z0-9]", "3 to 63 lower-case letters, digits and hyphens; a letter first, no hyphen last"),
        "The domain name label {value} is invalid. It must conform to the following regular expression: ^[a-z][a-z0-9-]{{1,61}}[a-z0-9]$.",
        "https://learn.microsoft.com/rest/api/virtualnetwork/public-ip-addresses/create-or-update#publicipaddressdnssettings",
        "InvalidDomainNameLabel",
        code_assumed=True,
    ),
    Restriction(
        "prefixLength",
        {f"{_NETWORK}/publicIPPrefixes": "properties"},
        Where("28 to 31; 124 to 127 for IPv6; from 21 in a range of the customer's own", _prefix_length),
        "Public IP prefix {id} has prefix length {value}; Azure gives /{low} to /{high}.",
        "https://learn.microsoft.com/azure/virtual-network/ip-services/public-ip-address-prefix#prefix-sizes",
        "InvalidPublicIPPrefixLength",
        code_assumed=True,
    ),
    Restriction(
        "NAT idleTimeoutInMinutes",
        {f"{_NETWORK}/natGateways": "properties.idleTimeoutInMinutes"},
        Between(4, 120),
        "NAT gateway {id} has idle timeout {value} min, outside {bound}.",
        "https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource#idle-timeout-timers",
        "InvalidIdleTimeout",
        code_assumed=True,
    ),
    Restriction(
        "flowTimeoutInMinutes",
        {VIRTUAL_NETWORK: "properties.flowTimeoutInMinutes"},
        Between(4, 30),
        "Virtual network {id} has a flow timeout of {value} minutes, outside {bound}.",
        "https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/create-or-update",
        "InvalidFlowTimeoutInMinutes",
        code_assumed=True,
    ),
    Restriction(
        "addressPrefixes",
        {VIRTUAL_NETWORK: "properties.addressSpace.addressPrefixes[]"},
        Where(f"none of {', '.join(map(str, RESERVED_NETWORKS))}", _reserved),
        "The address prefix {value} of virtual network {id} overlaps {reserved}, which is reserved and cannot be used.",
        "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq#what-address-ranges-can-i-use-in-my-virtual-networks",
        "AddressPrefixReserved",
        code_assumed=True,
    ),
    Restriction(
        "addressPrefixes size",
        {VIRTUAL_NETWORK: "properties.addressSpace.addressPrefixes[]"},
        Where("an IPv4 prefix of /2 to /29, or IPv6", _network_size),
        "The address prefix {value} of virtual network {id} has an invalid size: an IPv4 prefix is /2 to /29.",
        "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq#how-small-and-how-large-can-virtual-networks-and-subnets-be",
        "InvalidAddressPrefixSize",
        code_assumed=True,
    ),
    Restriction(
        "route addressPrefix",
        {f"{_NETWORK}/routeTables/routes": "properties.addressPrefix"},
        Where("a CIDR or a service tag", _bad_route_prefix),
        "The route '{name}' has an invalid address prefix {value}.",
        "https://learn.microsoft.com/azure/virtual-network/virtual-networks-udr-overview#service-tags-for-user-defined-routes",
        "InvalidAddressPrefixFormat",
        code_assumed=True,
    ),
    Restriction(
        "dnsServers",
        {
            VIRTUAL_NETWORK: "properties.dhcpOptions.dnsServers[]",
            f"{_NETWORK}/networkInterfaces": "properties.dnsSettings.dnsServers[]",
        },
        Where(
            "IP addresses, or AzureProvidedDNS",
            lambda value, subject: None if value == "AzureProvidedDNS" else _bad_address(value, subject),
        ),
        "The DNS server address {value} of {id} is not a valid IP address.",
        "https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/create-or-update#dhcpoptions",
        "InvalidDnsServerAddress",
        code_assumed=True,
    ),
    Restriction(
        "nextHopIpAddress",
        {f"{_NETWORK}/routeTables/routes": "properties.nextHopIpAddress"},
        Where("an IP address", _bad_address),
        "Route '{name}' has an invalid next hop IP address {value}.",
        "https://learn.microsoft.com/rest/api/virtualnetwork/routes/create-or-update",
        "InvalidIPAddressFormat",
        code_assumed=True,
    ),
)
