"""Virtual networks and their subnets are accepted, refused and changed as on Azure."""

from __future__ import annotations

from typing import Any

import pytest
from network_bodies import HUB, NET, NODES, SINGLE, full, interface, located, made, network, ref, subnet
from plain_calls import OTHER, Calls

from rehearsal.azure.errors import AzureError
from rehearsal.azure.network.address_pools import pool_of

OTHER_SUBNET = f"{HUB}/subnets/other"


def subnets(calls: Calls) -> dict[str, str]:
    return {one["name"]: one["properties"]["addressPrefix"] for one in calls.get(HUB)["properties"]["subnets"]}


def test_a_network_shows_the_subnets_of_its_body_as_resources_of_their_own() -> None:
    calls = made()
    body = calls.get(HUB)
    assert body["properties"]["provisioningState"] == "Succeeded"
    assert body["properties"]["resourceGuid"]
    (shown,) = body["properties"]["subnets"]
    assert shown == calls.get(NODES)
    assert shown["id"] == full(NODES)
    assert shown["type"] == "Microsoft.Network/virtualNetworks/subnets"
    assert shown["properties"] == {
        "addressPrefix": "10.0.0.0/24",
        "delegations": [],
        "privateEndpointNetworkPolicies": "Disabled",
        "privateLinkServiceNetworkPolicies": "Enabled",
        "provisioningState": "Succeeded",
    }


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"properties": {}}, "AddressPrefixStringCannotBeNullOrEmpty"),
        (subnet("10.0.1.0/33"), "InvalidAddressPrefixFormat"),
        (subnet("10.0.1.7/24"), "InvalidCIDRNotation"),
        (subnet("10.0.1.0/30"), "NetcfgInvalidSubnet"),
        (subnet("10.1.0.0/24"), "NetcfgSubnetRangeOutsideVnet"),
        (subnet("10.0.0.0/15"), "NetcfgSubnetRangeOutsideVnet"),
        (subnet("10.0.0.128/25"), "NetcfgSubnetRangesOverlap"),
        (subnet("10.0.0.0/16"), "NetcfgSubnetRangesOverlap"),
        (subnet("fd00::/64"), "NotModelled"),
        ({"properties": {"addressPrefixes": ["10.0.1.0/24", "10.0.2.0/24"]}}, "NotModelled"),
    ],
)
def test_a_subnet_lies_in_its_network_and_apart_from_the_others(body: dict[str, Any], code: str) -> None:
    assert made().refusal("PUT", OTHER_SUBNET, body).code == code


def test_the_sentences_of_refusal_are_azures() -> None:
    calls = made()
    outside = calls.refusal("PUT", OTHER_SUBNET, subnet("10.1.0.0/24"))
    overlapping = calls.refusal("PUT", OTHER_SUBNET, subnet("10.0.0.0/25"))
    assert outside.message == (
        "Subnet 'other' is not valid because its IP address range is outside the IP address range of virtual network 'hub'."
    )
    assert overlapping.message == (
        "Subnet 'other' is not valid because its IP address range overlaps with that of an existing subnet in virtual network 'hub'."
    )


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (located(addressSpace={"addressPrefixes": []}), "AddressPrefixStringCannotBeNullOrEmpty"),
        (network("10.0.0.0/16", "10.0.128.0/17"), "OverlappingAddressPrefixes"),
        (network("10.0.0.0/16", subnets={"a": "10.0.0.0/24", "b": "10.0.0.64/26"}), "NetcfgSubnetRangesOverlap"),
        (network("10.0.0.0/16", subnets={"a": "10.1.0.0/24"}), "NetcfgSubnetRangeOutsideVnet"),
        (network("10.9.0.0/16"), "NetcfgSubnetRangeOutsideVnet"),
        ({"properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}, "LocationRequired"),
        ({**network("10.0.0.0/16"), "location": "westus"}, "InvalidResourceLocation"),
    ],
)
def test_a_network_has_prefixes_of_its_own_that_hold_its_subnets(body: dict[str, Any], code: str) -> None:
    assert made().refusal("PUT", HUB, body).code == code


def test_a_body_that_names_a_subnet_twice_is_refused() -> None:
    body = network("10.0.0.0/16", subnets={"a": "10.0.1.0/24", "A": "10.0.2.0/24"})
    assert made().refusal("PUT", HUB, body).code == "InvalidRequestFormat"


def test_a_body_without_subnets_leaves_them_and_one_that_lists_none_deletes_them() -> None:
    calls = made()
    calls.put(OTHER_SUBNET, subnet("10.0.1.0/24"))
    calls.put(HUB, network("10.0.0.0/16", "10.1.0.0/16"))
    assert subnets(calls) == {"nodes": "10.0.0.0/24", "other": "10.0.1.0/24"}
    calls.put(HUB, network("10.0.0.0/16", subnets={"other": "10.0.1.0/24"}))
    assert subnets(calls) == {"other": "10.0.1.0/24"}
    assert not calls.exists(NODES)
    calls.put(HUB, network("10.0.0.0/16", subnets={}))
    assert subnets(calls) == {}


def test_a_body_that_leaves_out_a_used_subnet_is_refused() -> None:
    calls = made()
    calls.put(SINGLE, interface())
    assert calls.refusal("PUT", HUB, network("10.0.0.0/16", subnets={})).code == "InUseSubnetCannotBeDeleted"
    assert calls.refusal("DELETE", HUB).code == "InUseSubnetCannotBeDeleted"


def test_a_patch_of_tags_leaves_prefixes_and_subnets() -> None:
    calls = made()
    calls.put(OTHER_SUBNET, subnet("10.0.1.0/24"))
    calls.settled(calls.call("PATCH", HUB, {"tags": {"team": "fleet"}}))
    assert calls.get(HUB)["tags"] == {"team": "fleet"}
    assert subnets(calls) == {"nodes": "10.0.0.0/24", "other": "10.0.1.0/24"}


def test_a_prefix_in_use_neither_moves_nor_goes() -> None:
    calls = made()
    calls.put(SINGLE, interface())
    refused = calls.refusal("PUT", NODES, subnet("10.0.0.0/23"))
    assert (refused.status, refused.code) == (400, "InUsePrefixCannotBeDeleted")
    assert refused.message == "IpPrefix 10.0.0.0/24 on Subnet nodes has active allocations and cannot be deleted."
    listed = network("10.0.0.0/16", subnets={"nodes": "10.0.4.0/24"})
    assert calls.refusal("PUT", HUB, listed).code == "InUsePrefixCannotBeDeleted"
    deleted = calls.refusal("DELETE", NODES)
    assert (deleted.status, deleted.code) == (400, "InUseSubnetCannotBeDeleted")
    assert full(SINGLE) in deleted.message
    calls.delete(SINGLE)
    calls.put(NODES, subnet("10.0.4.0/24"))
    assert str(pool_of(calls.cloud, full(NODES)).prefix) == "10.0.4.0/24"
    calls.delete(NODES)
    assert not calls.exists(NODES)


def test_changes_of_one_network_come_one_after_another() -> None:
    calls = made()
    calls.put(f"{NET}/virtualNetworks/spoke", network("10.1.0.0/16"))
    calls.call("PUT", OTHER_SUBNET, subnet("10.0.1.0/24"))
    for method, text, body in (
        ("PUT", f"{HUB}/subnets/third", subnet("10.0.2.0/24")),
        ("PUT", HUB, network("10.0.0.0/16")),
        ("DELETE", NODES, None),
        ("DELETE", HUB, None),
    ):
        refused = calls.refusal(method, text, body)
        assert (refused.status, refused.code) == (409, "AnotherOperationInProgress")
        assert refused.retry_after is None
    calls.call("PUT", f"{NET}/virtualNetworks/spoke/subnets/one", subnet("10.1.0.0/24"))
    calls.cloud.run_until_idle()
    calls.call("PUT", HUB, network("10.0.0.0/16"))
    assert calls.refusal("PUT", OTHER_SUBNET, subnet("10.0.1.0/24")).code == "AnotherOperationInProgress"


def test_what_leads_out_of_a_subnet_must_exist_in_its_region() -> None:
    calls = made()
    calls.put(f"{NET}/networkSecurityGroups/far", {**located(), "location": "westus"})
    for name in ("far", "none"):
        body = subnet("10.0.1.0/24", networkSecurityGroup=ref(f"{NET}/networkSecurityGroups/{name}"))
        assert calls.refusal("PUT", OTHER_SUBNET, body).code == "InvalidResourceReference"
        inline = network("10.0.0.0/16")
        inline["properties"]["subnets"] = [{"name": "other", **body}]
        assert calls.refusal("PUT", f"{NET}/virtualNetworks/new", inline).code == "InvalidResourceReference"


def test_a_nat_gateway_serves_subnets_of_one_network() -> None:
    calls = made()
    calls.put(f"{NET}/natGateways/out", located("Standard"))
    out = ref(f"{NET}/natGateways/out")
    calls.put(NODES, subnet("10.0.0.0/24", natGateway=out))
    calls.put(OTHER_SUBNET, subnet("10.0.1.0/24", natGateway=out))
    calls.put(f"{NET}/virtualNetworks/spoke", network("10.1.0.0/16"))
    refused = calls.refusal("PUT", f"{NET}/virtualNetworks/spoke/subnets/one", subnet("10.1.0.0/24", natGateway=out))
    assert refused.code == "NatGatewayCannotSpanVirtualNetworks"
    assert calls.get(f"{NET}/natGateways/out")["properties"]["subnets"] == [ref(NODES), ref(OTHER_SUBNET)]
    assert calls.refusal("DELETE", f"{NET}/natGateways/out").code == "InUseNatGatewayCannotBeDeleted"


def test_a_subnet_kept_for_a_service_takes_nothing_else() -> None:
    calls = made()
    delegation = {"name": "dns", "properties": {"serviceName": "Microsoft.Network/dnsResolvers"}}
    calls.put(NODES, subnet("10.0.0.0/24", delegations=[delegation]))
    assert calls.get(NODES)["properties"]["delegations"][0]["id"] == f"{full(NODES)}/delegations/dns"
    assert calls.refusal("PUT", SINGLE, interface()).code == "SubnetIsDelegated"


def test_a_subnet_needs_its_network_and_a_network_its_subscription() -> None:
    calls = made()
    missing = calls.refusal("PUT", f"{NET}/virtualNetworks/none/subnets/one", subnet("10.0.0.0/24"))
    assert missing.code == "ParentResourceNotFound"
    other = f"/subscriptions/{OTHER}/resourceGroups/none/providers/{HUB}"
    assert calls.refusal("PUT", other, network("10.0.0.0/16")).code == "ResourceGroupNotFound"


def test_a_deleted_network_leaves_nothing() -> None:
    calls = made()
    calls.put(f"{NET}/privateDnsZones/a.internal", {"location": "global"})
    link = f"{NET}/privateDnsZones/a.internal/virtualNetworkLinks/hub"
    calls.put(link, {"location": "global", "properties": {"virtualNetwork": ref(HUB)}})
    calls.delete(HUB)
    assert not any(calls.exists(one) for one in (HUB, NODES, link))
    calls.put(HUB, network("10.0.0.0/16", subnets={"nodes": "10.0.0.0/24"}))
    assert pool_of(calls.cloud, full(NODES)).used == 0


def test_a_group_with_a_whole_network_in_it_can_be_deleted() -> None:
    calls = made()
    calls.put(SINGLE, interface())
    calls.put(f"{NET}/networkSecurityGroups/nodes", located())
    calls.put(NODES, subnet("10.0.0.0/24", networkSecurityGroup=ref(f"{NET}/networkSecurityGroups/nodes")))
    calls.delete(full("").partition("/providers/")[0])
    assert not calls.exists(HUB)


def test_a_network_keeps_its_peerings_out_of_its_body() -> None:
    calls = made()
    body = network("10.0.0.0/16")
    body["properties"]["virtualNetworkPeerings"] = [{"name": "to", "properties": {"remoteVirtualNetwork": ref(HUB)}}]
    assert calls.refusal("PUT", HUB, body).code == "NotModelled"


def test_a_failed_change_is_told_where_the_network_has_gone_meanwhile() -> None:
    calls = made()
    answer = calls.call("PUT", HUB, network("10.0.0.0/16"))
    calls.call("DELETE", HUB)
    calls.cloud.run_until_idle()
    assert answer.operation is not None
    assert not answer.operation.running
    with pytest.raises(AzureError, match="ResourceNotFound"):
        calls.get(HUB)
