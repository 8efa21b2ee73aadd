"""Security groups and route tables accept rules and routes as on Azure."""

from __future__ import annotations

from typing import Any

import pytest
from network_bodies import NET, NODES, full, located, made, ref, subnet
from plain_calls import Calls
from published import answer_faults, needs_published_types

GROUP_OF_RULES = f"{NET}/networkSecurityGroups/nodes"
TABLE = f"{NET}/routeTables/nodes"


def rule(priority: int = 100, **other: Any) -> dict[str, Any]:
    """Properties of a rule."""
    return {
        "priority": priority,
        "direction": "Inbound",
        "access": "Allow",
        "protocol": "Tcp",
        "sourceAddressPrefix": "10.0.0.0/8",
        "sourcePortRange": "*",
        "destinationAddressPrefix": "*",
        "destinationPortRange": "22",
        **other,
    }


def group(**rules: dict[str, Any]) -> dict[str, Any]:
    return located(securityRules=[{"name": name, "properties": inner} for name, inner in rules.items()])


def made_group() -> Calls:
    calls = made()
    calls.put(GROUP_OF_RULES, group(ssh=rule()))
    return calls


def names(calls: Calls) -> list[str]:
    return [one["name"] for one in calls.get(GROUP_OF_RULES)["properties"]["securityRules"]]


def test_a_group_shows_its_rules_and_those_of_every_group() -> None:
    inner = made_group().get(GROUP_OF_RULES)["properties"]
    (ssh,) = inner["securityRules"]
    assert ssh["id"] == f"{full(GROUP_OF_RULES)}/securityRules/ssh"
    assert ssh["properties"]["sourceAddressPrefixes"] == []
    assert [(one["name"], one["properties"]["priority"]) for one in inner["defaultSecurityRules"]] == [
        ("AllowVnetInBound", 65_000),
        ("AllowAzureLoadBalancerInBound", 65_001),
        ("DenyAllInBound", 65_500),
        ("AllowVnetOutBound", 65_000),
        ("AllowInternetOutBound", 65_001),
        ("DenyAllOutBound", 65_500),
    ]


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        (rule(100), "SecurityRuleConflict"),
        (rule(99), "SecurityRuleInvalidPriority"),
        (rule(4_097), "SecurityRuleInvalidPriority"),
        (rule(200, direction="Sideways"), "InvalidRequestFormat"),
        (rule(200, access="Maybe"), "InvalidRequestFormat"),
        (rule(200, protocol=""), "InvalidRequestFormat"),
        (rule(200, destinationPortRange="22-21"), "SecurityRuleInvalidPortRange"),
        (rule(200, destinationPortRange="65536"), "SecurityRuleInvalidPortRange"),
        (rule(200, sourceAddressPrefix="10.0.0.0/33"), "SecurityRuleInvalidAddressPrefix"),
        (rule(200, sourceAddressPrefix=""), "SecurityRuleParameterNotSpecified"),
        (rule(200, sourceAddressPrefixes=[f"10.{n >> 8}.{n & 255}.1" for n in range(4_000)]), "SecurityRuleAddressCountLimitReached"),
    ],
)
def test_a_rule_that_azure_would_not_take_is_refused_alone_and_in_its_group(inner: dict[str, Any], code: str) -> None:
    calls = made_group()
    calls.cloud.body_reader = None
    assert calls.refusal("PUT", f"{GROUP_OF_RULES}/securityRules/new", {"properties": inner}).code == code
    assert calls.refusal("PUT", GROUP_OF_RULES, group(ssh=rule(), new=inner)).code == code


def test_the_sentence_of_a_conflict_is_azures() -> None:
    refused = made_group().refusal("PUT", f"{GROUP_OF_RULES}/securityRules/new", {"properties": rule()})
    assert refused.message == "Security rule new conflicts with rule ssh. Rules cannot have the same Priority and Direction."


def test_the_two_directions_have_priorities_of_their_own() -> None:
    calls = made_group()
    calls.put(f"{GROUP_OF_RULES}/securityRules/out", {"properties": rule(direction="Outbound")})
    calls.put(f"{GROUP_OF_RULES}/securityRules/ssh", {"properties": rule(destinationPortRange="2222")})
    assert names(calls) == ["ssh", "out"]


def test_a_body_makes_the_rules_those_that_it_lists() -> None:
    calls = made_group()
    calls.put(f"{GROUP_OF_RULES}/securityRules/out", {"properties": rule(direction="Outbound")})
    calls.put(GROUP_OF_RULES, group(web=rule()))
    assert names(calls) == ["web"]
    calls.put(GROUP_OF_RULES, located())
    assert names(calls) == []


def test_a_patch_of_tags_leaves_the_rules_as_they_are_by_now() -> None:
    calls = made_group()
    calls.put(f"{GROUP_OF_RULES}/securityRules/out", {"properties": rule(direction="Outbound")})
    calls.delete(f"{GROUP_OF_RULES}/securityRules/ssh")
    calls.settled(calls.call("PATCH", GROUP_OF_RULES, {"tags": {"team": "fleet"}}))
    assert names(calls) == ["out"]
    assert calls.get(GROUP_OF_RULES)["tags"] == {"team": "fleet"}


def test_a_group_has_a_thousand_rules_at_most() -> None:
    rules = {f"r{number}": rule(100 + number) for number in range(1_000)}
    calls = made()
    calls.put(GROUP_OF_RULES, group(**rules))
    refused = calls.refusal("PUT", f"{GROUP_OF_RULES}/securityRules/more", {"properties": rule(2_000)})
    assert refused.code == "SecurityRuleCountLimitReached"


def test_changes_of_one_group_come_one_after_another() -> None:
    calls = made_group()
    calls.call("PUT", f"{GROUP_OF_RULES}/securityRules/out", {"properties": rule(direction="Outbound")})
    for text, body in ((f"{GROUP_OF_RULES}/securityRules/more", {"properties": rule(300)}), (GROUP_OF_RULES, group())):
        assert calls.refusal("PUT", text, body).code == "AnotherOperationInProgress"


def test_a_used_group_stays() -> None:
    calls = made_group()
    calls.put(NODES, subnet("10.0.0.0/24", networkSecurityGroup=ref(GROUP_OF_RULES)))
    refused = calls.refusal("DELETE", GROUP_OF_RULES)
    assert (refused.status, refused.code) == (400, "InUseNetworkSecurityGroupCannotBeDeleted")
    assert calls.get(GROUP_OF_RULES)["properties"]["subnets"] == [ref(NODES)]
    calls.put(NODES, subnet("10.0.0.0/24"))
    calls.delete(GROUP_OF_RULES)


def table(**routes: dict[str, Any]) -> dict[str, Any]:
    return located(routes=[{"name": name, "properties": inner} for name, inner in routes.items()])


OUT = {"addressPrefix": "0.0.0.0/0", "nextHopType": "Internet"}
THROUGH = {"addressPrefix": "10.9.0.0/16", "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.0.4"}


def test_a_route_table_shows_its_routes() -> None:
    calls = made()
    calls.put(TABLE, table(out=OUT, through=THROUGH))
    calls.put(f"{TABLE}/routes/tag", {"properties": {"addressPrefix": "Storage", "nextHopType": "Internet"}})
    inner = calls.get(TABLE)["properties"]
    assert [one["name"] for one in inner["routes"]] == ["out", "through", "tag"]
    assert inner["disableBgpRoutePropagation"] is False
    calls.put(NODES, subnet("10.0.0.0/24", routeTable=ref(TABLE)))
    assert calls.refusal("DELETE", TABLE).code == "InUseRouteTableCannotBeDeleted"
    calls.settled(calls.call("PATCH", TABLE, {"tags": {"team": "fleet"}}))
    assert len(calls.get(TABLE)["properties"]["routes"]) == 3


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        (OUT, "RouteConflict"),
        ({"addressPrefix": "10.0.0.0/8"}, "InvalidRequestFormat"),
        ({**OUT, "addressPrefix": "10.0.0.0/40"}, "InvalidAddressPrefixFormat"),
        ({**OUT, "addressPrefix": "10.0.0.0/8", "nextHopIpAddress": "10.0.0.4"}, "RouteNextHopIpAddressNotAllowed"),
        ({"addressPrefix": "10.0.0.0/8", "nextHopType": "VirtualAppliance"}, "RouteNextHopIpAddressNotAllowed"),
    ],
)
def test_a_route_that_azure_would_not_take_is_refused(inner: dict[str, Any], code: str) -> None:
    calls = made()
    calls.put(TABLE, table(out=OUT))
    calls.cloud.body_reader = None
    assert calls.refusal("PUT", f"{TABLE}/routes/new", {"properties": inner}).code == code
    assert calls.refusal("PUT", TABLE, table(out=OUT, new=inner)).code == code


@needs_published_types
def test_groups_tables_and_their_parts_are_answered_in_azures_published_shape() -> None:
    calls = made_group()
    calls.put(TABLE, table(out=OUT, through=THROUGH))
    calls.put(NODES, subnet("10.0.0.0/24", networkSecurityGroup=ref(GROUP_OF_RULES), routeTable=ref(TABLE)))
    found = [calls.get(one) for one in (GROUP_OF_RULES, f"{GROUP_OF_RULES}/securityRules/ssh", TABLE, f"{TABLE}/routes/out", NODES)]
    assert [fault for body in found for fault in answer_faults(body["type"], "", body)] == []
