"""Security groups accept and refuse rules as Azure does."""

from __future__ import annotations

from typing import Any

import pytest
from network_bodies import NET, NODES, full, located, made, ref, subnet
from plain_calls import Calls
from published import answer_faults, needs_published_types

GROUP_OF_RULES = f"{NET}/networkSecurityGroups/nodes"


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
    calls.cloud.bodies = None
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
        assert calls.refusal("PUT", text, body).code == "RetryableErrorDueToAnotherOperation"


def test_a_used_group_stays() -> None:
    calls = made_group()
    calls.put(NODES, subnet("10.0.0.0/24", networkSecurityGroup=ref(GROUP_OF_RULES)))
    refused = calls.refusal("DELETE", GROUP_OF_RULES)
    assert (refused.status, refused.code) == (400, "InUseNetworkSecurityGroupCannotBeDeleted")
    assert calls.get(GROUP_OF_RULES)["properties"]["subnets"] == [ref(NODES)]
    calls.put(NODES, subnet("10.0.0.0/24"))
    calls.delete(GROUP_OF_RULES)


@needs_published_types
def test_groups_and_their_rules_are_answered_in_azures_published_shape() -> None:
    calls = made_group()
    calls.put(NODES, subnet("10.0.0.0/24", networkSecurityGroup=ref(GROUP_OF_RULES)))
    found = [calls.get(one) for one in (GROUP_OF_RULES, f"{GROUP_OF_RULES}/securityRules/ssh", NODES)]
    assert [fault for body in found for fault in answer_faults(body["type"], "", body)] == []
