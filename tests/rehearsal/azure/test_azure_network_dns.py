"""Private zones, their links and record sets, and DNS resolvers are accepted, refused and changed as on Azure."""

from __future__ import annotations

from typing import Any

import pytest
from network_bodies import HUB, NET, SINGLE, SPOKE, full, interface, located, made, network, place, ref, subnet
from plain_calls import GROUP, Calls
from published import answer_faults, needs_published_types

ZONE = f"{NET}/privateDnsZones/fleet.internal"
LINK = f"{ZONE}/virtualNetworkLinks/hub"
GLOBAL = {"location": "global"}
RESOLVER = f"{NET}/dnsResolvers/hub"
INBOUND = f"{RESOLVER}/inboundEndpoints/inbound"
DNS = f"{HUB}/subnets/dns"


def link(to: str = HUB, *, registers: bool = False) -> dict[str, Any]:
    return {**GLOBAL, "properties": {"virtualNetwork": ref(to), "registrationEnabled": registers}}


def a(*addresses: str, ttl: int = 300) -> dict[str, Any]:
    return {"properties": {"ttl": ttl, "aRecords": [{"ipv4Address": one} for one in addresses]}}


def zoned() -> Calls:
    calls = made()
    calls.put(ZONE, GLOBAL)
    return calls


def test_a_zone_counts_what_it_holds() -> None:
    calls = zoned()
    calls.put(LINK, link(registers=True))
    calls.put(f"{ZONE}/A/api", a("10.0.0.4"))
    inner = calls.get(ZONE)["properties"]
    assert (inner["numberOfRecordSets"], inner["maxNumberOfRecordSets"]) == (2, 25_000)
    assert (inner["numberOfVirtualNetworkLinks"], inner["numberOfVirtualNetworkLinksWithRegistration"]) == (1, 1)


@pytest.mark.parametrize("name", ["internal", ".".join("a" * 35), "fleet..internal"])
def test_a_zone_has_two_to_thirty_four_labels(name: str) -> None:
    assert made().refusal("PUT", f"{NET}/privateDnsZones/{name}", GLOBAL).code == "BadRequest"


def test_zones_and_links_are_global() -> None:
    calls = zoned()
    for text, body in ((ZONE + "s", located()), (LINK, {**link(), "location": "westus"})):
        assert calls.refusal("PUT", text, body).code == "LocationNotAvailableForResourceType"


def test_every_zone_has_a_start_of_authority_that_goes_with_it_alone() -> None:
    calls = zoned()
    soa = f"{ZONE}/SOA/@"
    assert calls.get(soa)["properties"]["soaRecord"]["minimumTtl"] == 10
    assert calls.get(soa)["properties"]["fqdn"] == "fleet.internal."
    assert calls.refusal("DELETE", soa).code == "BadRequest"
    assert calls.refusal("GET", f"{ZONE}/SOA/other").code == "ResourceNotFound"
    for scope in (ZONE, GROUP):
        (found,) = calls.cloud.list(calls.full(scope), f"{NET}/privateDnsZones/SOA")
        assert found.id.text == full(soa)
    calls.delete(ZONE)
    assert not calls.exists(soa)


def test_a_start_of_authority_keeps_what_a_client_changed_except_its_host() -> None:
    calls = zoned()
    soa = f"{ZONE}/SOA/@"
    before = calls.get(soa)
    calls.put(soa, {"properties": {"ttl": 60, "metadata": {"team": "a"}, "soaRecord": {"minimumTtl": 300}}})
    assert calls.get(soa)["etag"] != before["etag"]
    calls.settled(calls.call("PATCH", soa, {"properties": {"metadata": {"team": "b"}}}))
    calls.put(ZONE, {**located(), "location": "global", "tags": {"team": "a"}})
    after = calls.get(soa)
    record = {**before["properties"]["soaRecord"], "minimumTtl": 300}
    assert after["properties"] == {**before["properties"], "ttl": 60, "metadata": {"team": "b"}, "soaRecord": record}
    assert calls.refusal("PUT", soa, {"properties": {"soaRecord": {"host": "ns.example.com"}}}).code == "BadRequest"
    assert calls.refusal("PUT", soa, {"properties": {"ttl": 0}}).code == "BadRequest"
    assert calls.get(soa) == after


def test_a_link_is_completed_when_its_operation_ends() -> None:
    calls = zoned()
    calls.call("PUT", LINK, link())
    assert calls.get(LINK)["properties"]["virtualNetworkLinkState"] == "InProgress"
    calls.cloud.run_until_idle()
    assert calls.get(LINK)["properties"]["virtualNetworkLinkState"] == "Completed"


def test_a_network_is_linked_once_to_a_name_and_registers_in_one_zone() -> None:
    calls = zoned()
    calls.put(LINK, link(registers=True))
    calls.put(f"{NET}/privateDnsZones/other.internal", GLOBAL)
    assert calls.refusal("PUT", f"{ZONE}/virtualNetworkLinks/again", link()).code == "Conflict"
    refused = calls.refusal("PUT", f"{NET}/privateDnsZones/other.internal/virtualNetworkLinks/hub", link(registers=True))
    assert (refused.status, refused.code) == (409, "Conflict")
    assert refused.message == (
        "A virtual network can only be linked to 1 Private DNS zone(s) with auto-registration enabled; conflicting Private DNS zone is "
        "'fleet.internal'."
    )
    calls.put(f"{NET}/privateDnsZones/other.internal/virtualNetworkLinks/hub", link())
    elsewhere = f"{GROUP[:-1]}h/providers/{ZONE}"
    calls.put(elsewhere, GLOBAL)
    assert calls.refusal("PUT", f"{elsewhere}/virtualNetworkLinks/hub", link()).code == "Conflict"
    calls.put(SPOKE, network("10.1.0.0/16"))
    assert calls.refusal("PUT", LINK, link(SPOKE)).code == "Conflict"
    assert calls.refusal("PUT", f"{ZONE}/virtualNetworkLinks/none", link(f"{HUB}-none")).code == "InvalidResourceReference"


def test_a_zone_with_links_stays() -> None:
    calls = zoned()
    calls.put(LINK, link())
    refused = calls.refusal("DELETE", ZONE)
    assert (refused.status, refused.code) == (409, "CannotDeleteResource")
    assert "'Microsoft.Network/privateDnsZones/fleet.internal/virtualNetworkLinks/hub'" in refused.message
    calls.delete(LINK)
    calls.put(f"{ZONE}/A/api", a("10.0.0.4"))
    calls.delete(ZONE)
    assert not calls.exists(f"{ZONE}/A/api")


RECORDS: dict[str, dict[str, Any]] = {
    "A": {"aRecords": [{"ipv4Address": "10.0.0.4"}]},
    "AAAA": {"aaaaRecords": [{"ipv6Address": "fd00::4"}]},
    "CNAME": {"cnameRecord": {"cname": "api.fleet.internal"}},
    "MX": {"mxRecords": [{"preference": 10, "exchange": "mail.fleet.internal"}]},
    "PTR": {"ptrRecords": [{"ptrdname": "api.fleet.internal"}]},
    "SRV": {"srvRecords": [{"priority": 0, "weight": 1, "port": 2380, "target": "etcd-0.fleet.internal"}]},
    "TXT": {"txtRecords": [{"value": ["fleet"]}]},
}


@pytest.mark.parametrize("kind", RECORDS)
def test_a_record_set_is_put_at_once_and_answered_with_its_full_name(kind: str) -> None:
    calls = zoned()
    answer = calls.call("PUT", f"{ZONE}/{kind}/one", {"properties": {"ttl": 60, **RECORDS[kind]}})
    assert (answer.status, answer.operation) == (201, None)
    body = calls.get(f"{ZONE}/{kind}/one")
    assert body["properties"] == {"ttl": 60, **RECORDS[kind], "fqdn": "one.fleet.internal.", "isAutoRegistered": False}
    assert (body["name"], body["type"]) == ("one", f"Microsoft.Network/privateDnsZones/{kind}")
    calls.delete(f"{ZONE}/{kind}/one")


def test_the_apex_has_the_name_of_the_zone() -> None:
    calls = zoned()
    assert calls.put(f"{ZONE}/A/@", a("10.0.0.4"))["properties"]["fqdn"] == "fleet.internal."


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("A/one", {"properties": {"aRecords": []}}),
        ("A/one", a(ttl=0)),
        ("A/one", a(ttl=2**31)),
        ("A/one", a("10.0.0.400")),
        ("A/one", a(*(f"10.0.0.{last}" for last in range(21)))),
        ("AAAA/one", {"properties": {"ttl": 60, "aaaaRecords": [{"ipv6Address": "10.0.0.4"}]}}),
        ("CNAME/@", {"properties": {"ttl": 60, **RECORDS["CNAME"]}}),
        ("CNAME/there", {"properties": {"ttl": 60, **RECORDS["CNAME"]}}),
        ("TXT/alias", {"properties": {"ttl": 60, **RECORDS["TXT"]}}),
        ("SRV/one", {"properties": {"ttl": 60, "srvRecords": [{"priority": 0, "weight": 1, "port": 2380}]}}),
    ],
)
def test_a_record_set_that_azure_would_not_take_is_refused(text: str, body: dict[str, Any]) -> None:
    calls = zoned()
    calls.put(f"{ZONE}/A/there", a("10.0.0.4"))
    calls.put(f"{ZONE}/CNAME/alias", {"properties": {"ttl": 60, **RECORDS["CNAME"]}})
    calls.cloud.body_reader = None
    assert calls.refusal("PUT", f"{ZONE}/{text}", body).code == "BadRequest"


def resolver(to: str = HUB) -> dict[str, Any]:
    return located(virtualNetwork=ref(to))


def inbound(where: str = DNS, address: str = "") -> dict[str, Any]:
    static = {"privateIpAddress": address, "privateIpAllocationMethod": "Static"} if address else {}
    return located(ipConfigurations=[{"subnet": ref(where), **static}])


def delegated(prefix: str) -> dict[str, Any]:
    return subnet(prefix, delegations=[{"name": "dns", "properties": {"serviceName": "Microsoft.Network/dnsResolvers"}}])


def resolved() -> Calls:
    calls = made()
    calls.put(DNS, delegated("10.0.32.0/28"))
    calls.put(RESOLVER, resolver())
    return calls


def test_a_resolver_has_an_endpoint_with_an_address_of_its_subnet() -> None:
    calls = resolved()
    assert calls.get(RESOLVER)["properties"]["dnsResolverState"] == "Connected"
    calls.put(INBOUND, inbound(address="10.0.32.4"))
    (config,) = calls.get(INBOUND)["properties"]["ipConfigurations"]
    assert config == {"subnet": ref(DNS), "privateIpAddress": "10.0.32.4", "privateIpAllocationMethod": "Static"}
    assert calls.refusal("DELETE", DNS).code == "InUseSubnetCannotBeDeleted"
    assert calls.rebuilt().refusal("PUT", SINGLE, interface(place("one", DNS))).code == "SubnetIsDelegated"
    calls.delete(RESOLVER)
    calls.delete(DNS)


def test_a_network_has_one_resolver_of_its_region() -> None:
    calls = resolved()
    refused = calls.refusal("PUT", f"{RESOLVER}-2", resolver())
    assert (refused.status, refused.code) == (409, "Conflict")
    calls.put(SPOKE, network("10.1.0.0/16"))
    assert calls.refusal("PUT", RESOLVER, resolver(SPOKE)).code == "PropertyChangeNotAllowed"
    assert calls.refusal("PUT", f"{RESOLVER}-2", {**resolver(SPOKE), "location": "westus"}).code == "InvalidResourceReference"
    assert calls.refusal("DELETE", HUB).code == "InUseVirtualNetworkCannotBeDeleted"


@pytest.mark.parametrize(
    ("prefix", "why"),
    [
        ("10.0.33.0/29", "wants a /24 to /28"),
        ("10.0.64.0/23", "wants a /24 to /28"),
        ("10.0.1.0/24", "lies in 10.0.1.0 to 10.0.16.255"),
        ("10.0.16.0/24", "lies in 10.0.1.0 to 10.0.16.255"),
    ],
)
def test_an_endpoint_wants_a_subnet_of_the_right_size_and_place(prefix: str, why: str) -> None:
    calls = resolved()
    calls.put(f"{HUB}/subnets/other", delegated(prefix))
    assert why in calls.refusal("PUT", INBOUND, inbound(f"{HUB}/subnets/other")).message


def test_an_endpoint_wants_a_subnet_of_its_own() -> None:
    calls = resolved()
    calls.put(f"{HUB}/subnets/plain", subnet("10.0.40.0/28"))
    calls.put(SPOKE, network("10.1.0.0/16"))
    calls.put(f"{SPOKE}/subnets/dns", delegated("10.1.0.0/28"))
    assert "not delegated" in calls.refusal("PUT", INBOUND, inbound(f"{HUB}/subnets/plain")).message
    assert "not in the resolver's network" in calls.refusal("PUT", INBOUND, inbound(f"{SPOKE}/subnets/dns")).message
    assert "must have one" in calls.refusal("PUT", INBOUND, located(ipConfigurations=[])).message
    calls.put(INBOUND, inbound())
    assert "is used by" in calls.refusal("PUT", f"{INBOUND}-2", inbound()).message


def test_a_resolver_has_five_endpoints_at_most() -> None:
    calls = resolved()
    for number in range(6):
        calls.put(f"{HUB}/subnets/dns-{number}", delegated(f"10.0.{40 + number}.0/28"))
    for number in range(5):
        calls.put(f"{INBOUND}-{number}", inbound(f"{HUB}/subnets/dns-{number}"))
    assert calls.refusal("PUT", f"{INBOUND}-5", inbound(f"{HUB}/subnets/dns-5")).code == "InboundEndpointCountLimitReached"


@needs_published_types
def test_zones_links_and_record_sets_are_answered_in_azures_published_shape() -> None:
    calls = zoned()
    calls.put(LINK, link())
    for kind, records in RECORDS.items():
        calls.put(f"{ZONE}/{kind}/{kind}", {"properties": {"ttl": 60, **records}})
    texts = [ZONE, LINK, f"{ZONE}/SOA/@", *(f"{ZONE}/{kind}/{kind}" for kind in RECORDS)]
    found = [calls.get(one) for one in texts]
    assert [fault for body in found for fault in answer_faults(body["type"], "", body)] == []
