"""Security rules of a cluster's virtual network and of the hub, as tables."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.control_plane_model import API_SERVER_PORT, ETCD_CLIENT_PORT, ETCD_PEER_PORT, INGRESS_PORTS


@dataclass(frozen=True)
class SecurityRulePlan:
    """One rule: protocol "Tcp", "Udp", "Icmp" or "*"; ports "*" or a list; sources and destinations CIDRs or service tags."""

    name: str
    priority: int
    direction: str
    access: str
    protocol: str
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    ports: tuple[str, ...]


@dataclass(frozen=True)
class SecurityGroupPlan:
    """One network security group: a physical name and its rules, in priority order."""

    role: str
    name: str
    rules: tuple[SecurityRulePlan, ...]


@dataclass(frozen=True)
class Ranges:
    """Address ranges in a cluster's rules, as CIDRs; hub is empty if the cluster is not peered."""

    etcd: str
    events: str
    api: str
    private_link: str
    endpoints: str
    nodes: tuple[str, ...]
    block: str
    hub: tuple[str, ...]


SSH, HTTPS = ("22",), ("443",)
ETCD_CLIENT, ETCD_MEMBERS = (str(ETCD_CLIENT_PORT),), (f"{ETCD_CLIENT_PORT}-{ETCD_PEER_PORT}",)
API = (str(API_SERVER_PORT),)
LOAD_BALANCER = ("AzureLoadBalancer",)
INTERNET = ("Internet",)
ANYWHERE = ("*",)
INTERNAL = ("10.0.0.0/8",)
PLATFORM = ("AzureActiveDirectory", "AzureResourceManager", "AzureMonitor")
"""Services that a control-plane machine calls over public addresses: tokens, instance lookups, metrics."""

_Row = tuple[str, str, str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _rules(rows: tuple[_Row, ...]) -> tuple[SecurityRulePlan, ...]:
    """Return the rules with priorities 100, 110, … per direction, and a last rule per direction that denies all other traffic."""
    rules: list[SecurityRulePlan] = []
    for direction in ("Inbound", "Outbound"):
        chosen = [row for row in rows if row[1] == direction and row[4] and row[5]]
        for position, (name, _, access, protocol, sources, destinations, ports) in enumerate(chosen):
            rules.append(SecurityRulePlan(name, 100 + 10 * position, direction, access, protocol, sources, destinations, ports))
        if chosen:
            rules.append(SecurityRulePlan(f"refuse-other-{direction.lower()}", 4096, direction, "Deny", "*", ANYWHERE, ANYWHERE, ("*",)))
    return tuple(rules)


def etcd_rules(own: str, ranges: Ranges) -> tuple[SecurityRulePlan, ...]:
    """Return the rules of an etcd cluster's subnet: inbound only from API servers, members and SSH from the hub."""
    return _rules(
        (
            ("api-servers", "Inbound", "Allow", "Tcp", (ranges.api,), (own,), ETCD_CLIENT),
            ("members", "Inbound", "Allow", "Tcp", (own,), (own,), ETCD_MEMBERS),
            ("hub-ssh", "Inbound", "Allow", "Tcp", ranges.hub, (own,), SSH),
            ("members-out", "Outbound", "Allow", "Tcp", (own,), (own,), ETCD_MEMBERS),
            ("endpoints", "Outbound", "Allow", "Tcp", (own,), (ranges.endpoints,), HTTPS),
            *((f"platform-{tag.lower()}", "Outbound", "Allow", "Tcp", (own,), (tag,), HTTPS) for tag in PLATFORM),
        )
    )


def api_rules(ranges: Ranges) -> tuple[SecurityRulePlan, ...]:
    """Return the rules of the API servers' subnet: inbound from nodes, API servers, hub and the load balancer's probe."""
    own = ranges.api
    return _rules(
        (
            ("nodes", "Inbound", "Allow", "Tcp", ranges.nodes, (own,), API),
            ("api-servers", "Inbound", "Allow", "Tcp", (own,), (own,), API),
            ("private-link", "Inbound", "Allow", "Tcp", (ranges.private_link,) if ranges.private_link else (), (own,), API),
            ("hub", "Inbound", "Allow", "Tcp", ranges.hub, (own,), SSH + API),
            ("probe", "Inbound", "Allow", "Tcp", LOAD_BALANCER, (own,), API),
            ("etcd", "Outbound", "Allow", "Tcp", (own,), (ranges.etcd, ranges.events), ETCD_CLIENT),
            ("api-servers-out", "Outbound", "Allow", "Tcp", (own,), (own,), API),
            ("nodes-out", "Outbound", "Allow", "Tcp", (own,), ranges.nodes, ("*",)),
            ("endpoints", "Outbound", "Allow", "Tcp", (own,), (ranges.endpoints,), HTTPS),
            *((f"platform-{tag.lower()}", "Outbound", "Allow", "Tcp", (own,), (tag,), HTTPS) for tag in PLATFORM),
        )
    )


def node_rules(ranges: Ranges, ingress: str | None) -> tuple[SecurityRulePlan, ...]:
    """Return the rules of the node subnets: the cluster's nodes, pods and API servers, outbound the internet; no other internal address."""
    return _rules(
        (
            ("nodes", "Inbound", "Allow", "*", ranges.nodes, ranges.nodes, ("*",)),
            ("api-servers", "Inbound", "Allow", "Tcp", (ranges.api,), ranges.nodes, ("*",)),
            ("hub", "Inbound", "Allow", "*", ranges.hub, ranges.nodes, ("*",)),
            (
                "probe",
                "Inbound",
                "Allow",
                "Tcp",
                LOAD_BALANCER if ingress else (),
                ranges.nodes,
                tuple(str(node) for _, node in INGRESS_PORTS),
            ),
            ("nodes-out", "Outbound", "Allow", "*", ranges.nodes, ranges.nodes, ("*",)),
            ("api-servers-out", "Outbound", "Allow", "Tcp", ranges.nodes, (ranges.api,), API),
            ("endpoints", "Outbound", "Allow", "Tcp", ranges.nodes, (ranges.endpoints,), HTTPS),
            (
                "ingress",
                "Outbound",
                "Allow",
                "Tcp",
                ranges.nodes,
                (ingress,) if ingress else (),
                tuple(str(front) for front, _ in INGRESS_PORTS),
            ),
            ("other-internal", "Outbound", "Deny", "*", ranges.nodes, INTERNAL, ("*",)),
            ("internet", "Outbound", "Allow", "*", ranges.nodes, INTERNET, ("*",)),
        )
    )


def endpoint_rules(ranges: Ranges) -> tuple[SecurityRulePlan, ...]:
    """Return the rules of the private endpoints' subnet: HTTPS from the cluster's own machines."""
    return _rules(
        (("cluster", "Inbound", "Allow", "Tcp", (ranges.etcd, ranges.events, ranges.api, *ranges.nodes), (ranges.endpoints,), HTTPS),)
    )


def hub_rules(hub: str, people: str) -> tuple[SecurityRulePlan, ...]:
    """Return the rules of the hub's subnets: inbound from VPN clients and the hub itself."""
    return _rules((("people", "Inbound", "Allow", "*", (people, hub), (hub,), ("*",)),))
