"""Sets of flows behave as the single flows in them would, one by one, in front of Azure's rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.checks import range_sets
from rehearsal.checks.security_rules import (
    INBOUND,
    OUTBOUND,
    PROTOCOLS,
    FlowSet,
    SecurityRule,
    ServiceTags,
    allowed_flows,
    default_rules,
    difference,
    remaining,
)

TOP = 7
"""Small numbers stand for addresses and ports, so that every flow can be looked at."""
NUMBERS = st.lists(st.tuples(st.integers(0, TOP), st.integers(0, TOP)).map(lambda pair: (min(pair), max(pair))), max_size=3)
SPANS = NUMBERS.map(lambda pairs: range_sets.union(tuple(pairs)))
FLOWS = st.builds(FlowSet, st.sets(st.sampled_from(["Tcp", "Udp"])).map(frozenset), SPANS, SPANS, SPANS)
RULES = st.lists(
    st.builds(SecurityRule, st.just("rule"), st.integers(100, 4096), st.just(INBOUND), st.booleans(), FLOWS),
    max_size=5,
    unique_by=lambda rule: rule.priority,
)

Single = tuple[str, int, int, int]


def members(span: range_sets.RangeSet) -> set[int]:
    return {number for low, high in span for number in range(low, high + 1)}


def singles(flows: FlowSet) -> set[Single]:
    return {
        (protocol, source, destination, port)
        for protocol in flows.protocols
        for source in members(flows.sources)
        for destination in members(flows.destinations)
        for port in members(flows.ports)
    }


@given(SPANS, SPANS)
def test_spans_are_sets(first: range_sets.RangeSet, second: range_sets.RangeSet) -> None:
    assert members(range_sets.union(first, second)) == members(first) | members(second)
    assert members(range_sets.intersection(first, second)) == members(first) & members(second)
    assert members(range_sets.difference(first, second)) == members(first) - members(second)
    assert range_sets.size(first) == len(members(first))


@given(FLOWS, FLOWS)
def test_taking_flows_away_leaves_disjoint_parts_of_the_rest(first: FlowSet, second: FlowSet) -> None:
    parts = [singles(part) for part in difference(first, second)]
    assert set().union(*parts) == singles(first) - singles(second)
    assert sum(map(len, parts)) == len(singles(first) - singles(second))


@given(RULES, FLOWS)
def test_the_first_rule_that_matches_decides_each_flow(rules: list[SecurityRule], asked: FlowSet) -> None:
    ordered = sorted(rules, key=lambda rule: rule.priority)
    allowed = {flow for flow in singles(asked) if next((rule.allows for rule in ordered if flow in singles(rule.flows)), False)}
    assert {flow for flows in allowed_flows(rules, INBOUND, asked) for flow in singles(flows)} == allowed
    missing = {flow for flows in remaining(asked, allowed_flows(rules, INBOUND, asked)) for flow in singles(flows)}
    assert missing == singles(asked) - allowed


NETWORK = range_sets.of_networks(["10.4.0.0/14"])
AROUND = ServiceTags(NETWORK)


def verdict(direction: str, source: str, destination: str, port: int = 443) -> bool:
    """Return the verdict of Azure's default rules on one TCP flow."""
    flow = FlowSet(frozenset({"Tcp"}), range_sets.of_networks([source]), range_sets.of_networks([destination]), ((port, port),))
    return bool(allowed_flows(default_rules(AROUND), direction, flow))


@pytest.mark.parametrize(
    ("direction", "source", "destination", "passes"),
    [
        (INBOUND, "10.4.0.4", "10.5.0.4", True),
        (INBOUND, "168.63.129.16", "10.5.0.4", True),
        (INBOUND, "10.8.0.4", "10.5.0.4", False),
        (INBOUND, "52.1.2.3", "10.5.0.4", False),
        (OUTBOUND, "10.4.0.4", "10.5.0.4", True),
        (OUTBOUND, "10.4.0.4", "52.1.2.3", True),
        (OUTBOUND, "10.8.0.4", "10.5.0.4", False),
    ],
)
def test_azures_own_rules_let_the_network_and_probes_in_and_everything_out(
    direction: str, source: str, destination: str, passes: bool
) -> None:
    assert verdict(direction, source, destination) is passes


@pytest.mark.parametrize(
    ("prefix", "allows", "addresses"),
    [
        ("*", True, range_sets.ALL_ADDRESSES),
        ("VirtualNetwork", True, NETWORK),
        ("AzureLoadBalancer", True, range_sets.of_networks(["168.63.129.16"])),
        ("10.1.0.0/24", False, range_sets.of_networks(["10.1.0.0/24"])),
        ("Internet", False, AROUND.internet),
        ("AzureMonitor", True, AROUND.internet),
        ("AzureMonitor", False, range_sets.EMPTY),
    ],
)
def test_a_prefix_or_service_tag_stands_for_the_widest_that_a_rule_could_mean(
    prefix: str, allows: bool, addresses: range_sets.RangeSet
) -> None:
    assert AROUND.addresses(prefix, allows) == addresses


def test_flows_read_as_one_line() -> None:
    flow = FlowSet(
        PROTOCOLS,
        NETWORK,
        range_sets.of_networks(["10.8.0.0/16", "10.10.0.0/16", "10.12.0.0/16", "10.14.0.0/16"]),
        range_sets.of_ports(["22", "80-90"]),
    )
    assert flow.text() == "any protocol 22, 80-90 from 10.4.0.0/14 to 10.8.0.0/16, 10.10.0.0/16, 10.12.0.0/16 and 1 more"
    assert FlowSet(frozenset({"Tcp"}), NETWORK, NETWORK, range_sets.ALL_PORTS).text() == "TCP all ports from 10.4.0.0/14 to 10.4.0.0/14"
