"""Private link services and private endpoints connect, and endpoints write their records into private zones."""

from __future__ import annotations

from typing import Any

import pytest
from network_bodies import HUB, NET, NODES, SPOKE, full, located, made, network, place, ref, subnet
from plain_calls import GROUP, LOCATION, OTHER, SUBSCRIPTION, TENANT, Calls
from published import answer_faults, needs_published_types

from rehearsal.azure.network.address_pools import pool_of

BALANCER = f"{NET}/loadBalancers/api"
LINK = f"{NET}/privateLinkServices/api"
NAT_SUBNET = f"{HUB}/subnets/nat"
ENDPOINT = f"{NET}/privateEndpoints/to-vault"
VAULT = "Microsoft.KeyVault/vaults/gf-node"
ZONE = f"{NET}/privateDnsZones/privatelink.vaultcore.azure.net"
GROUP_OF_ZONES = f"{ENDPOINT}/privateDnsZoneGroups/default"
RECORD = f"{ZONE}/A/gf-node"


def link(*places: dict[str, Any], **other: Any) -> dict[str, Any]:
    found = list(places) or [place("one", NAT_SUBNET, address="10.0.1.9", primary=True)]
    front = ref(f"{BALANCER}/frontendIPConfigurations/front")
    return located(**{"ipConfigurations": found, "loadBalancerFrontendIpConfigurations": [front], **other})


def endpoint(service: str = VAULT, groups: tuple[str, ...] = ("vault",), where: str = NODES, **other: Any) -> dict[str, Any]:
    inner: dict[str, Any] = {"privateLinkServiceId": full(service)}
    if groups:
        inner["groupIds"] = list(groups)
    return located(**{"subnet": ref(where), "privateLinkServiceConnections": [{"name": "one", "properties": inner}], **other})


def static(address: str) -> list[dict[str, Any]]:
    return [{"name": "one", "properties": {"privateIPAddress": address}}]


def served() -> Calls:
    """A load balancer and a subnet for NAT in the hub, and a vault."""
    calls = made()
    calls.put(NAT_SUBNET, subnet("10.0.1.0/24", privateLinkServiceNetworkPolicies="Disabled"))
    calls.put(BALANCER, located("Standard", frontendIPConfigurations=[place("front", address="10.0.0.100")]))
    sku = {"family": "A", "name": "standard"}
    calls.put(VAULT, {"location": LOCATION, "properties": {"tenantId": TENANT, "sku": sku, "enableRbacAuthorization": True}})
    return calls


def used(calls: Calls, text: str) -> int:
    return pool_of(calls.cloud, full(text)).used


def test_a_link_holds_its_addresses_and_its_load_balancer() -> None:
    calls = served()
    calls.put(LINK, link(place("one", NAT_SUBNET, address="10.0.1.4", primary=True), place("two", NAT_SUBNET)))
    inner = calls.get(LINK)["properties"]
    assert [one["properties"]["privateIPAddress"] for one in inner["ipConfigurations"]] == ["10.0.1.4", "10.0.1.5"]
    assert inner["alias"].startswith("api.")
    assert inner["alias"].endswith(f".{LOCATION}.azure.privatelinkservice")
    assert calls.refusal("DELETE", BALANCER).code == "CannotDeleteLoadBalancerWithPrivateLinkService"
    calls.delete(LINK)
    assert used(calls, NAT_SUBNET) == 0
    calls.delete(BALANCER)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (link(place("one", primary=True)), "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled"),
        (link(ipConfigurations=[]), "PrivateLinkServiceIpConfigurationCountInvalid"),
        (link(*(place(f"a{n}", NAT_SUBNET, primary=n == 0) for n in range(9))), "PrivateLinkServiceIpConfigurationCountInvalid"),
        (link(place("one", NAT_SUBNET), place("two", NAT_SUBNET)), "ExactlyOneIpConfigurationMustBePrimary"),
        (link(loadBalancerFrontendIpConfigurations=[]), "PrivateLinkServiceMustReferenceLoadBalancerFrontend"),
        (link(loadBalancerFrontendIpConfigurations=[ref(f"{BALANCER}/frontendIPConfigurations/none")]), "InvalidResourceReference"),
    ],
)
def test_a_link_that_azure_would_not_take_is_refused(body: dict[str, Any], code: str) -> None:
    calls = served()
    calls.cloud.body_reader = None
    assert calls.refusal("PUT", LINK, body).code == code


def test_an_endpoint_is_let_in_and_shown_by_its_service() -> None:
    calls = served()
    calls.put(LINK, link())
    calls.put(SPOKE, network("10.1.0.0/16", subnets={"nodes": "10.1.0.0/24"}))
    text = f"{NET}/privateEndpoints/to-api"
    calls.put(text, endpoint(LINK, (), f"{SPOKE}/subnets/nodes", ipConfigurations=static("10.1.0.40")))
    inner = calls.get(text)["properties"]
    assert inner["privateLinkServiceConnections"][0]["properties"]["privateLinkServiceConnectionState"]["status"] == "Approved"
    assert inner["customDnsConfigs"] == [{"ipAddresses": ["10.1.0.40"]}]
    (connection,) = calls.get(LINK)["properties"]["privateEndpointConnections"]
    assert connection["properties"]["privateEndpoint"] == ref(text)
    assert calls.refusal("DELETE", LINK).code == "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted"
    assert calls.refusal("DELETE", f"{SPOKE}/subnets/nodes").code == "InUseSubnetCannotBeDeleted"
    calls.delete(text)
    assert used(calls, f"{SPOKE}/subnets/nodes") == 0
    calls.delete(LINK)


def test_a_request_by_hand_waits_for_approval_unless_the_service_names_its_subscription() -> None:
    calls = served()
    theirs = GROUP.replace(SUBSCRIPTION, OTHER)
    calls.put(f"{theirs}/providers/{SPOKE}", network("10.1.0.0/16", subnets={"nodes": "10.1.0.0/24"}))
    service = {"name": "one", "properties": {"privateLinkServiceId": full(LINK)}}
    body = located(subnet={"id": f"{theirs}/providers/{SPOKE}/subnets/nodes"}, manualPrivateLinkServiceConnections=[service])
    text = f"{theirs}/providers/{NET}/privateEndpoints/to-api"
    calls.put(LINK, link(visibility={"subscriptions": [SUBSCRIPTION]}))
    refused = calls.refusal("PUT", text, body)
    assert (refused.status, refused.code) == (403, "PrivateLinkServiceNotVisible")
    for number, (approved, status) in enumerate((([], "Pending"), ([OTHER], "Approved"))):
        calls.put(LINK, link(visibility={"subscriptions": ["*"]}, autoApproval={"subscriptions": approved}))
        calls.put(f"{text}-{number}", body)
        (connection,) = calls.get(f"{text}-{number}")["properties"]["manualPrivateLinkServiceConnections"]
        assert connection["properties"]["privateLinkServiceConnectionState"]["status"] == status


def test_an_endpoint_stays_where_it_is_and_with_whom_it_is_for() -> None:
    calls = served()
    calls.put(LINK, link())
    calls.put(ENDPOINT, endpoint())
    for body in (endpoint(where=NAT_SUBNET), endpoint(LINK, ())):
        assert calls.refusal("PUT", ENDPOINT, body).code == "PropertyChangeNotAllowed"
    calls.put(ENDPOINT, endpoint(ipConfigurations=static("10.0.0.77")))
    assert calls.get(ENDPOINT)["properties"]["customDnsConfigs"] == [{"fqdn": "gf-node.vault.azure.net", "ipAddresses": ["10.0.0.77"]}]
    assert used(calls, NODES) == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (located(privateLinkServiceConnections=endpoint()["properties"]["privateLinkServiceConnections"]), "InvalidRequestFormat"),
        (endpoint(privateLinkServiceConnections=[]), "PrivateEndpointMustHaveOneConnection"),
        (endpoint("Microsoft.KeyVault/vaults/none"), "InvalidResourceReference"),
        (endpoint(ipConfigurations=static("10.0.0.100")), "PrivateIPAddressIsAllocated"),
        (endpoint(ipConfigurations=static("10.0.9.9")), "PrivateIPAddressNotInSubnet"),
    ],
)
def test_an_endpoint_that_azure_would_not_take_is_refused(body: dict[str, Any], code: str) -> None:
    assert served().refusal("PUT", ENDPOINT, body).code == code


def zones(*names: str) -> dict[str, Any]:
    configs = [{"name": f"zone-{number}", "properties": {"privateDnsZoneId": full(name)}} for number, name in enumerate(names)]
    return {"properties": {"privateDnsZoneConfigs": configs}}


def test_a_zone_group_writes_the_endpoints_address_into_the_zone() -> None:
    calls = served()
    calls.put(ENDPOINT, endpoint())
    calls.put(ZONE, {"location": "global"})
    calls.put(GROUP_OF_ZONES, zones(ZONE))
    inner = calls.get(RECORD)["properties"]
    assert (inner["aRecords"], inner["ttl"], inner["fqdn"]) == (
        [{"ipv4Address": "10.0.0.4"}],
        10,
        "gf-node.privatelink.vaultcore.azure.net.",
    )
    (config,) = calls.get(GROUP_OF_ZONES)["properties"]["privateDnsZoneConfigs"]
    assert config["properties"]["recordSets"][0]["ipAddresses"] == ["10.0.0.4"]
    again = calls.rebuilt()
    again.delete(GROUP_OF_ZONES)
    assert not again.exists(RECORD)
    calls.delete(ENDPOINT)
    assert not calls.exists(RECORD)


def test_a_zone_group_that_names_another_zone_takes_its_record_out_of_the_first() -> None:
    calls = served()
    calls.put(ENDPOINT, endpoint())
    for zone in (ZONE, f"{NET}/privateDnsZones/a.internal"):
        calls.put(zone, {"location": "global"})
    calls.put(GROUP_OF_ZONES, zones(ZONE))
    calls.put(GROUP_OF_ZONES, zones(f"{NET}/privateDnsZones/a.internal"))
    assert calls.exists(f"{NET}/privateDnsZones/a.internal/A/gf-node")
    assert not calls.exists(RECORD)


def test_of_two_endpoints_for_one_service_the_later_has_the_record() -> None:
    calls = served()
    calls.put(ZONE, {"location": "global"})
    for name in ("a", "b"):
        calls.put(f"{ENDPOINT}-{name}", endpoint())
        calls.put(f"{ENDPOINT}-{name}/privateDnsZoneGroups/default", zones(ZONE))
    assert calls.get(RECORD)["properties"]["aRecords"] == [{"ipv4Address": "10.0.0.5"}]
    calls.delete(f"{ENDPOINT}-a")
    assert calls.get(RECORD)["properties"]["aRecords"] == [{"ipv4Address": "10.0.0.5"}]
    calls.delete(f"{ENDPOINT}-b")
    assert not calls.exists(RECORD)


def test_an_endpoint_has_one_zone_group_of_one_to_five_zones() -> None:
    calls = served()
    calls.put(ENDPOINT, endpoint())
    calls.put(ZONE, {"location": "global"})
    assert calls.refusal("PUT", GROUP_OF_ZONES, zones()).code == "PrivateDnsZoneGroupZoneCountInvalid"
    assert calls.refusal("PUT", GROUP_OF_ZONES, zones(*[ZONE] * 6)).code == "PrivateDnsZoneGroupZoneCountInvalid"
    assert calls.refusal("PUT", GROUP_OF_ZONES, zones(f"{NET}/privateDnsZones/none.internal")).code == "InvalidResourceReference"
    calls.put(GROUP_OF_ZONES, zones(ZONE))
    assert calls.refusal("PUT", f"{ENDPOINT}/privateDnsZoneGroups/more", zones(ZONE)).code == "OnlyOnePrivateDnsZoneGroupAllowed"


@needs_published_types
def test_links_and_endpoints_are_answered_in_azures_published_shape() -> None:
    calls = served()
    calls.put(LINK, link())
    calls.put(ZONE, {"location": "global"})
    calls.put(f"{ENDPOINT}-api", endpoint(LINK, (), ipConfigurations=static("10.0.0.40")))
    calls.put(ENDPOINT, endpoint())
    calls.put(GROUP_OF_ZONES, zones(ZONE))
    found = [calls.get(one) for one in (BALANCER, LINK, ENDPOINT, f"{ENDPOINT}-api", GROUP_OF_ZONES)]
    assert [fault for body in found for fault in answer_faults(body["type"], "", body)] == []
