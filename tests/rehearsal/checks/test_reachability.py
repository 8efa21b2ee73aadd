"""Reachability is computed from the registered networks alone: a statement fails exactly when a flow contradicts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rehearsed_regions import Rehearsed, rehearsed

from rehearsal.checks import reachability as reach
from rehearsal.checks.finding import Finding
from rehearsal.checks.network_model import NetworkModel, azure_part
from rehearsal.checks.reachability import REACHABILITY, check_reachability

Change = Callable[[dict[str, Any]], None]
Rule = dict[str, Any]
PLURALS = {
    "sourceAddressPrefix": "sourceAddressPrefixes",
    "destinationAddressPrefix": "destinationAddressPrefixes",
    "destinationPortRange": "destinationPortRanges",
}


def found_in(region: Rehearsed) -> tuple[Finding, ...]:
    return check_reachability(region.plan, NetworkModel(azure_part(region.base), azure_part(region.clusters)))


def broken(region: Rehearsed) -> set[str]:
    """The statements that do not hold."""
    return {finding.check for finding in found_in(region)}


def pairs(region: Rehearsed, check: str) -> set[str]:
    """Return the source and destination pairs of a check's findings."""
    return {finding.where for finding in found_in(region) if finding.check == check}


def drop(rule: str) -> Change:
    """Takes a rule out of a security group, whatever its direction."""

    def change(inputs: dict[str, Any]) -> None:
        left = [item for item in inputs["securityRules"] if item["name"] != rule]
        assert len(left) < len(inputs["securityRules"]), f"no rule {rule}"
        inputs["securityRules"] = left

    return change


def widen(rule: str, **fields: str) -> Change:
    """Sets singular fields of a rule, in place of what it has there."""

    def change(inputs: dict[str, Any]) -> None:
        (chosen,) = (item for item in inputs["securityRules"] if item["name"] == rule)
        for field, value in fields.items():
            chosen.pop(PLURALS.get(field, ""), None)
            chosen[field] = value

    return change


def allow(priority: int, source: str, direction: str = "Inbound") -> Change:
    """Adds a rule that allows everything from a source."""
    rule: Rule = {"name": "added", "priority": priority, "direction": direction, "access": "Allow", "protocol": "*"}
    everything = {"sourceAddressPrefix": source, "destinationAddressPrefix": "*", "sourcePortRange": "*", "destinationPortRange": "*"}
    return lambda inputs: inputs["securityRules"].append({**rule, **everything})


def peered(region: Rehearsed, near: str, far: str) -> Rehearsed:
    """With one side of a peering from one network to another."""
    side = region.resource("virtualNetworkPeerings/near-to-hub")
    networks = {name: str(region.resource(f"virtualNetworks/{name}").id) for name in (near, far)}
    inputs = {**side.inputs, "remoteVirtualNetwork": {"id": networks[far]}, "useRemoteGateways": False}
    added = replace(side, urn=f"urn:{near}:{far}", id=f"{networks[near]}/virtualNetworkPeerings/rogue", inputs=inputs)
    return region.joined_by(added)


@pytest.mark.parametrize(
    ("group", "change", "check"),
    [
        ("near-nsg-api", drop("hub"), reach.HUB_REACHES),
        ("far-nsg-api", drop("private-link"), reach.HUB_REACHES),
        ("far-nsg-api", drop("nodes"), reach.OWN_SERVERS),
        ("far-nsg-nodes", drop("api-servers-out"), reach.OWN_SERVERS),
        ("far-nsg-nodes", drop("nodes"), reach.NODES_TOGETHER),
        ("far-nsg-nodes", drop("nodes-out"), reach.NODES_TOGETHER),
        ("far-nsg-etcd", drop("api-servers"), reach.ETCD_REACHED),
        ("far-nsg-events", drop("members-out"), reach.ETCD_REACHED),
        ("far-nsg-api", drop("etcd"), reach.ETCD_REACHED),
        ("far-nsg-endpoints", drop("cluster"), reach.ENDPOINTS_REACHED),
        ("far-nsg-etcd", drop("endpoints"), reach.ENDPOINTS_REACHED),
        ("near-nsg-nodes", drop("probe"), reach.PROBES_ARRIVE),
        ("near-nsg-api", drop("probe"), reach.PROBES_ARRIVE),
        ("near-nsg-nodes", allow(90, "Internet"), reach.NO_INTERNET),
        ("near-nsg-nodes", allow(90, "AzureCloud"), reach.NO_INTERNET),
        ("near-nsg-nodes", allow(90, "52.0.0.0/8"), reach.NO_INTERNET),
        ("near-nsg-etcd", allow(90, "*"), reach.NO_INTERNET),
    ],
)
def test_a_rule_dropped_or_added_breaks_the_statement_that_rests_on_it(group: str, change: Change, check: str) -> None:
    assert check in broken(rehearsed("pair").changed(group, change))


@pytest.mark.parametrize("check", REACHABILITY)
def test_every_statement_holds_for_a_region_as_planned(check: str) -> None:
    assert pairs(rehearsed("pair"), check) == set()


def test_without_its_last_refusal_an_etcd_falls_back_on_azures_rule_and_whoever_may_go_out_gets_in() -> None:
    region = rehearsed("pair").changed("far-nsg-etcd", drop("refuse-other-inbound"))
    assert pairs(region, reach.ETCD_ONLY) == {"far-snet-endpoints -> far-snet-etcd", "far-snet-private-link -> far-snet-etcd"}


def test_a_rule_widened_on_one_side_opens_nothing_that_the_other_side_refuses() -> None:
    nodes = widen("api-servers", sourceAddressPrefix="10.56.0.0/14")
    region = rehearsed("pair").changed("far-nsg-etcd", nodes)
    assert not [pair for pair in pairs(region, reach.ETCD_ONLY) if "nodes" in pair]
    both = region.changed("far-nsg-nodes", drop("other-internal")).changed("far-nsg-nodes", drop("refuse-other-outbound"))
    assert {"far-snet-nodes-00 -> far-snet-etcd", "far-snet-nodes-04 -> far-snet-etcd"} <= pairs(both, reach.ETCD_ONLY)


def test_ssh_from_the_hub_widened_to_all_ports_lets_people_at_etcd() -> None:
    region = rehearsed("pair").changed("near-nsg-etcd", widen("hub-ssh", destinationPortRange="*"))
    assert "VPN clients -> near-snet-etcd" in pairs(region, reach.ETCD_ONLY)
    assert {pair.rpartition(" ")[2] for pair in pairs(region, reach.ETCD_ONLY)} == {"near-snet-etcd"}


def test_an_api_server_has_no_business_at_the_peer_port() -> None:
    ports = widen("api-servers", destinationPortRange="2379-2380")
    region = rehearsed("pair").changed("far-nsg-etcd", ports).changed("far-nsg-api", widen("etcd", destinationPortRange="2379-2380"))
    (finding,) = [finding for finding in found_in(region) if finding.check == reach.ETCD_ONLY]
    assert "TCP 2380 " in finding.found


def test_one_ring_reaches_not_the_other() -> None:
    events = widen("members", sourceAddressPrefix="10.59.128.0/22")
    region = rehearsed("pair").changed("far-nsg-etcd", events).changed("far-nsg-events", widen("members-out", destinationAddressPrefix="*"))
    assert "far-snet-events -> far-snet-etcd" in pairs(region, reach.ETCD_ONLY)


def test_two_clusters_peered_with_each_other_reach_each_other_where_a_subnet_has_no_rules() -> None:
    region = peered(peered(rehearsed("pair"), "near-vnet", "far-vnet"), "far-vnet", "near-vnet")
    assert "near-snet-endpoints -> far-snet-private-link" in pairs(region, reach.APART)
    assert all("far" in pair and "near" in pair for pair in pairs(region, reach.APART))


def test_a_peering_with_one_side_only_carries_nothing() -> None:
    assert broken(peered(rehearsed("pair"), "near-vnet", "far-vnet")) == set()


def test_a_peering_that_blocks_traffic_on_one_side_carries_nothing() -> None:
    region = peered(peered(rehearsed("pair"), "near-vnet", "far-vnet"), "far-vnet", "near-vnet")
    region = region.changed("virtualNetworkPeerings/rogue", lambda inputs: inputs.update(allowVirtualNetworkAccess=False))
    assert broken(region) == set()


def test_a_hub_that_lets_clusters_in_leads_them_through_its_private_endpoints_to_other_clusters() -> None:
    region = rehearsed("pair").changed("pair-hub-nsg", widen("people", sourceAddressPrefix="10.0.0.0/8"))
    assert pairs(region, reach.APART) == {"near-snet-endpoints -> far-snet-api"}


def test_private_endpoints_that_pass_by_their_subnets_rules_let_clusters_through_as_well() -> None:
    region = rehearsed("pair").changed("pair-hub-snet-endpoints", lambda inputs: inputs.pop("privateEndpointNetworkPolicies"))
    assert pairs(region, reach.APART) == {"near-snet-endpoints -> far-snet-api"}


def test_nodes_of_a_peered_cluster_that_may_go_anywhere_reach_another_clusters_servers_through_an_open_hub() -> None:
    open_hub = rehearsed("pair").changed("pair-hub-nsg", widen("people", sourceAddressPrefix="10.0.0.0/8"))
    region = open_hub.changed("near-nsg-nodes", widen("other-internal", access="Allow"))
    assert pairs(region, reach.OWN_SERVERS) == {"node subnets -> far-snet-api"}


def test_people_need_the_gateway_offered_and_used_to_reach_a_peered_cluster() -> None:
    for side, field in (("hub-to-near", "allowGatewayTransit"), ("near-to-hub", "useRemoteGateways")):
        region = rehearsed("pair").changed(f"virtualNetworkPeerings/{side}", lambda inputs, field=field: inputs.update({field: False}))  # type: ignore[misc]
        assert pairs(region, reach.HUB_REACHES) == {"VPN clients -> near-snet-api"}


def test_the_hub_reaches_no_servers_behind_a_load_balancer_without_their_rule() -> None:
    region = rehearsed("pair").changed("far-api-lb", lambda inputs: inputs.pop("loadBalancingRules"))
    assert reach.HUB_REACHES in broken(region)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("far-etcd-0-nic", lambda inputs: inputs["ipConfigurations"][0].update(publicIPAddress={"id": "/public"})),
        ("far-api-lb", lambda inputs: inputs["frontendIPConfigurations"][0].update(publicIPAddress={"id": "/public"})),
        (
            "far-cpu-000",
            lambda inputs: inputs["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]["ipConfigurations"][
                0
            ].update(publicIPAddressConfiguration={"name": "public"}),
        ),
    ],
)
def test_a_public_address_on_a_machine_or_a_load_balancer_is_found(name: str, change: Change) -> None:
    region = rehearsed("pair").changed(name, change)
    (finding,) = found_in(region)
    assert finding.check == reach.NO_INTERNET
    assert finding.where.endswith(name)


def test_a_subnet_without_its_security_group_lets_everybody_in_its_network_in() -> None:
    region = rehearsed("pair").changed("far-snet-etcd", lambda inputs: inputs.pop("networkSecurityGroup"))
    assert {"far-snet-endpoints -> far-snet-etcd", "far-snet-private-link -> far-snet-etcd"} <= pairs(region, reach.ETCD_ONLY)
