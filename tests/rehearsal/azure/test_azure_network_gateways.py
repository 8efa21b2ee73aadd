"""Public addresses, NAT gateways and VPN gateways are accepted as on Azure."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest
from network_bodies import HUB, LOCATION, NET, SINGLE, full, gateway, interface, located, made, place, public, ref, subnet
from plain_calls import Calls

PREFIX, ADDRESS, NAT = f"{NET}/publicIPPrefixes/ips", f"{NET}/publicIPAddresses/ip", f"{NET}/natGateways/nat"
VPN, GATEWAY_SUBNET = f"{NET}/virtualNetworkGateways/vpn", f"{HUB}/subnets/GatewaySubnet"


def prefix(length: int = 31, *zones: str) -> dict[str, Any]:
    return located("Standard", zones, prefixLength=length)


def nat(*, prefixes: tuple[str, ...] = (), addresses: tuple[str, ...] = (), zones: tuple[str, ...] = ()) -> dict[str, Any]:
    return located("Standard", zones, publicIpPrefixes=[ref(one) for one in prefixes], publicIpAddresses=[ref(one) for one in addresses])


def block(calls: Calls, text: str) -> str:
    return str(calls.get(text)["properties"]["ipPrefix"])


def test_public_addresses_are_the_lowest_free_ones_of_the_range_for_benchmarks() -> None:
    calls = Calls()
    calls.put(ADDRESS, public("1"))
    for name, length in (("a", 31), ("b", 28), ("c", 30)):
        calls.put(f"{PREFIX}-{name}", prefix(length))
    assert calls.get(ADDRESS)["properties"]["ipAddress"] == "198.18.0.0"
    assert [block(calls, f"{PREFIX}-{name}") for name in "abc"] == ["198.18.0.2/31", "198.18.0.16/28", "198.18.0.4/30"]
    calls.put(f"{ADDRESS}-2", public("1"))
    assert calls.get(f"{ADDRESS}-2")["properties"]["ipAddress"] == "198.18.0.1"
    calls.delete(f"{PREFIX}-b")
    again = calls.rebuilt()
    for one in (calls, again):
        one.put(f"{PREFIX}-d", prefix(29))
        one.put(f"{PREFIX}-e", prefix(28))
        assert [block(one, f"{PREFIX}-{name}") for name in "de"] == ["198.18.0.8/29", "198.18.0.16/28"]


def test_a_prefix_needs_a_length_whether_it_has_properties_or_not() -> None:
    calls = Calls()
    bodies: tuple[dict[str, Any], ...] = (
        {"location": LOCATION},
        {"location": LOCATION, "properties": None},
        located("Standard"),
    )
    for body in bodies:
        assert calls.refusal("PUT", PREFIX, body).status == 400
    calls.put(PREFIX, prefix())
    for body in bodies:
        assert calls.refusal("PUT", PREFIX, body).status == 400


def test_an_address_of_a_prefix_lies_in_it_and_keeps_it() -> None:
    calls = Calls()
    calls.put(PREFIX, prefix(31, "1"))
    for name in ("a", "b"):
        calls.put(f"{ADDRESS}-{name}", public("1", publicIPPrefix=ref(PREFIX)))
    found = [calls.get(f"{ADDRESS}-{name}")["properties"]["ipAddress"] for name in ("a", "b")]
    assert found == [str(one) for one in IPv4Network(block(calls, PREFIX))]
    assert calls.refusal("PUT", f"{ADDRESS}-c", public("1", publicIPPrefix=ref(PREFIX))).code == "PublicIPPrefixOutOfIpAddresses"
    assert calls.refusal("PUT", f"{ADDRESS}-c", public("2", publicIPPrefix=ref(PREFIX))).code == "PublicIpAndPublicIpPrefixZonesDoNotMatch"
    assert calls.refusal("DELETE", PREFIX).code == "InUsePublicIpPrefixCannotBeDeleted"
    assert len(calls.get(PREFIX)["properties"]["publicIPAddresses"]) == 2
    calls.delete(f"{ADDRESS}-a")
    calls.put(f"{ADDRESS}-c", public("1", publicIPPrefix=ref(PREFIX)))
    assert calls.get(f"{ADDRESS}-c")["properties"]["ipAddress"] == found[0]


@pytest.mark.parametrize(
    ("text", "body", "code"),
    [
        (PREFIX, prefix(27), "InvalidPublicIPPrefixLength"),
        (PREFIX, prefix(32), "InvalidPublicIPPrefixLength"),
        (f"{PREFIX}-there", prefix(30), "PropertyChangeNotAllowed"),
        (f"{PREFIX}-there", prefix(31, "1"), "ResourceAvailabilityZonesCannotBeModified"),
        (ADDRESS, located("Standard", publicIPAllocationMethod="Dynamic"), "StandardSkuPublicIPAddressesMustBeStatic"),
        (ADDRESS, located("Basic", publicIPAllocationMethod="Static"), "IPv4BasicSkuPublicIpCountLimitReached"),
        (ADDRESS, located(publicIPAllocationMethod="Static"), "IPv4BasicSkuPublicIpCountLimitReached"),
        (ADDRESS, public(publicIPAddressVersion="IPv6"), "NotModelled"),
        (ADDRESS, public(publicIPPrefix=ref(f"{PREFIX}-none")), "InvalidResourceReference"),
    ],
)
def test_a_public_address_that_azure_would_not_give_is_refused(text: str, body: dict[str, Any], code: str) -> None:
    calls = Calls()
    calls.put(f"{PREFIX}-there", prefix(31))
    assert calls.refusal("PUT", text, body).code == code


def test_a_nat_gateway_shows_its_defaults_and_keeps_its_addresses() -> None:
    calls = Calls()
    calls.put(PREFIX, prefix(31))
    calls.put(ADDRESS, public())
    calls.put(NAT, nat(prefixes=(PREFIX,), addresses=(ADDRESS,)))
    assert calls.get(NAT)["properties"]["idleTimeoutInMinutes"] == 4
    assert calls.get(PREFIX)["properties"]["natGateway"] == ref(NAT)
    assert calls.refusal("DELETE", PREFIX).code == "InUsePublicIpPrefixCannotBeDeleted"
    assert calls.refusal("DELETE", ADDRESS).code == "PublicIPAddressCannotBeDeleted"
    refused = calls.refusal("PUT", f"{NAT}-2", nat(addresses=(ADDRESS,)))
    assert refused.code == "PublicIPAddressInUse"
    assert full(NAT) in refused.message


def test_a_nat_gateway_has_sixteen_addresses_at_most() -> None:
    calls = Calls()
    calls.put(PREFIX, prefix(28))
    calls.put(ADDRESS, public())
    calls.put(NAT, nat(prefixes=(PREFIX,)))
    refused = calls.refusal("PUT", NAT, nat(prefixes=(PREFIX,), addresses=(ADDRESS,)))
    assert refused.code == "NatGatewayPublicIpCountLimitReached"
    assert "17" in refused.message


@pytest.mark.parametrize(
    ("zones", "taken", "refused"),
    [((), ("none", "one", "all"), ()), (("1",), ("one", "all"), ("none", "two")), (("2",), ("two", "all"), ("none", "one"))],
)
def test_a_nat_gateway_of_a_zone_has_addresses_of_it(zones: tuple[str, ...], taken: tuple[str, ...], refused: tuple[str, ...]) -> None:
    calls = Calls()
    for name, theirs in {"none": (), "one": ("1",), "two": ("2",), "all": ("1", "2", "3")}.items():
        calls.put(f"{PREFIX}-{name}", prefix(31, *theirs))
    calls.put(NAT, nat(prefixes=tuple(f"{PREFIX}-{name}" for name in taken), zones=zones))
    for name in refused:
        code = calls.refusal("PUT", f"{NAT}-2", nat(prefixes=(f"{PREFIX}-{name}",), zones=zones)).code
        assert code == "PublicIPOrPrefixAndStandardSkuNatGatewayZoneDoNotMatch"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (nat(zones=("1", "2")), "ResourceCannotHaveMultipleZonesSpecified"),
        (located("Basic"), "InvalidNatGatewaySku"),
        (located("Standard", idleTimeoutInMinutes=121), "InvalidIdleTimeout"),
        (located("Standard", idleTimeoutInMinutes=3), "InvalidIdleTimeout"),
        (nat(prefixes=(PREFIX,)), "InvalidResourceReference"),
    ],
)
def test_a_nat_gateway_that_azure_would_not_take_is_refused(body: dict[str, Any], code: str) -> None:
    calls = Calls()
    calls.cloud.body_reader = None
    assert calls.refusal("PUT", NAT, body).code == code


def with_gateway_subnet() -> Calls:
    calls = made()
    calls.put(GATEWAY_SUBNET, subnet("10.0.255.0/27"))
    calls.put(f"{ADDRESS}-zoned", public("1", "2", "3"))
    calls.put(f"{ADDRESS}-bare", public())
    return calls


def test_a_gateway_takes_the_better_part_of_an_hour() -> None:
    calls = with_gateway_subnet()
    begun = calls.cloud.now
    calls.put(VPN, gateway(GATEWAY_SUBNET, f"{ADDRESS}-zoned"))
    assert 1_800 < calls.cloud.now - begun < 5_400
    assert calls.get(VPN)["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] == "10.0.255.4"
    assert calls.refusal("DELETE", GATEWAY_SUBNET).code == "InUseSubnetCannotBeDeleted"
    assert calls.refusal("DELETE", f"{ADDRESS}-zoned").code == "PublicIPAddressCannotBeDeleted"
    calls.delete(VPN)
    calls.delete(GATEWAY_SUBNET)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (gateway(GATEWAY_SUBNET, f"{ADDRESS}-bare"), "VmssVpnGatewayPublicIpsMustHaveZonesConfigured"),
        (gateway(GATEWAY_SUBNET, f"{ADDRESS}-zoned", sku="VpnGw1"), "NonAzSkusNotAllowedForVPNGateway"),
        (gateway(f"{HUB}/subnets/nodes", f"{ADDRESS}-zoned"), "GatewayNotInGatewaySubnet"),
        (gateway(GATEWAY_SUBNET, f"{ADDRESS}-used"), "PublicIPAddressInUse"),
    ],
)
def test_a_gateway_that_azure_would_not_take_is_refused(body: dict[str, Any], code: str) -> None:
    calls = with_gateway_subnet()
    calls.put(f"{ADDRESS}-used", public("1", "2", "3"))
    calls.put(SINGLE, interface(place("one", publicIPAddress=ref(f"{ADDRESS}-used"))))
    assert calls.refusal("PUT", VPN, body).code == code


def test_a_network_has_one_vpn_gateway() -> None:
    calls = with_gateway_subnet()
    calls.put(f"{ADDRESS}-2", public("1", "2", "3"))
    calls.put(VPN, gateway(GATEWAY_SUBNET, f"{ADDRESS}-zoned"))
    assert calls.refusal("PUT", f"{VPN}-2", gateway(GATEWAY_SUBNET, f"{ADDRESS}-2")).code == "OnlyOneGatewayOfTypeAllowedInVirtualNetwork"
