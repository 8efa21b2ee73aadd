"""Network interfaces and load balancers allocate addresses, and are accepted, refused and changed as on Azure."""

from __future__ import annotations

from typing import Any

import pytest
from network_bodies import HUB, NET, NODES, SINGLE, SPOKE, address_of, full, interface, located, made, network, place, public, ref, subnet
from plain_calls import Calls

from rehearsal.azure.network.address_pools import pool_of

BALANCER = f"{NET}/loadBalancers/api"
POOL = f"{BALANCER}/backendAddressPools/servers"


def used(calls: Calls, text: str = NODES) -> int:
    return pool_of(calls.cloud, full(text)).used


def test_an_interface_is_answered_with_its_addresses_and_ids() -> None:
    calls = made()
    calls.put(SINGLE, interface(place("one"), place("two", address="10.0.0.4")))
    inner = calls.get(SINGLE)["properties"]
    one, two = inner["ipConfigurations"]
    assert (one["properties"]["privateIPAddress"], two["properties"]["privateIPAddress"]) == ("10.0.0.5", "10.0.0.4")
    assert (one["properties"]["privateIPAllocationMethod"], one["properties"]["primary"]) == ("Dynamic", True)
    assert one["id"] == f"{full(SINGLE)}/ipConfigurations/one"
    assert inner["macAddress"].startswith("00-0D-3A-")
    assert inner["enableAcceleratedNetworking"] is False


def test_an_interface_keeps_its_addresses_when_it_is_put_again() -> None:
    calls = made()
    calls.put(f"{SINGLE}-0", interface())
    calls.put(SINGLE, interface(place("one"), place("two")))
    calls.delete(f"{SINGLE}-0")
    calls.put(SINGLE, interface(place("one"), place("two"), place("three")))
    assert [address_of(calls, SINGLE, number) for number in range(3)] == ["10.0.0.5", "10.0.0.6", "10.0.0.4"]
    calls.put(SINGLE, interface(place("two", address="10.0.0.20")))
    assert (address_of(calls, SINGLE), used(calls)) == ("10.0.0.20", 1)
    calls.delete(SINGLE)
    assert used(calls) == 0


def test_two_static_addresses_can_change_places() -> None:
    calls = made()
    calls.put(SINGLE, interface(place("one", address="10.0.0.4"), place("two", address="10.0.0.5")))
    calls.put(SINGLE, interface(place("one", address="10.0.0.5"), place("two", address="10.0.0.4")))
    assert [address_of(calls, SINGLE, number) for number in range(2)] == ["10.0.0.5", "10.0.0.4"]


def test_an_interface_that_cannot_have_all_its_addresses_keeps_those_it_had() -> None:
    calls = made()
    calls.put(f"{HUB}/subnets/small", subnet("10.0.1.0/29"))
    calls.put(SINGLE, interface(place("one", f"{HUB}/subnets/small")))
    more = [place(f"more-{number}", f"{HUB}/subnets/small") for number in range(3)]
    assert calls.refusal("PUT", SINGLE, interface(place("other", f"{HUB}/subnets/small"), *more)).code == "SubnetIsFull"
    assert (used(calls, f"{HUB}/subnets/small"), address_of(calls, SINGLE)) == (1, "10.0.1.4")
    calls.put(f"{SINGLE}-2", interface(place("one", f"{HUB}/subnets/small")))
    assert address_of(calls, f"{SINGLE}-2") == "10.0.1.5"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (interface(place("one", address="10.0.0.4")), "PrivateIPAddressIsAllocated"),
        (interface(place("one", address="10.0.0.1")), "PrivateIPAddressInReservedRange"),
        (interface(place("one", address="10.0.1.4")), "PrivateIPAddressNotInSubnet"),
        (interface(place("one", privateIPAllocationMethod="Static")), "InvalidIPAddressFormat"),
        (interface(place("one", address="10.0.0.400")), "InvalidIPAddressFormat"),
        (interface(place("one", primary=False)), "ExactlyOneIpConfigurationMustBePrimary"),
        (interface(place("one"), place("two", primary=True)), "ExactlyOneIpConfigurationMustBePrimary"),
        (interface(place("one"), place("ONE")), "InvalidRequestFormat"),
        (interface(place("one"), place("two", f"{SPOKE}/subnets/nodes")), "IpConfigurationsMustBeInOneVirtualNetwork"),
        (interface(place("one", f"{HUB}/subnets/none")), "InvalidResourceReference"),
        (located(ipConfigurations=[]), "NetworkInterfaceMustHaveAtLeastOneIpConfiguration"),
        (interface(*(place(f"a{number}") for number in range(257))), "IpConfigurationCountLimitReached"),
        ({**interface(), "location": "westus"}, "InvalidResourceReference"),
        (interface(place("one", publicIPAddress=ref(f"{NET}/publicIPAddresses/taken"))), "PublicIPAddressInUse"),
    ],
)
def test_an_interface_that_azure_would_not_take_is_refused(body: dict[str, Any], code: str) -> None:
    calls = made()
    calls.put(SPOKE, network("10.1.0.0/16", subnets={"nodes": "10.1.0.0/24"}))
    calls.put(f"{NET}/publicIPAddresses/taken", public())
    calls.put(f"{SINGLE}-0", interface(place("one", publicIPAddress=ref(f"{NET}/publicIPAddresses/taken"))))
    assert calls.refusal("PUT", SINGLE, body).code == code


def rule(name: str = "api", **other: Any) -> dict[str, Any]:
    inner = {
        "frontendIPConfiguration": ref(f"{BALANCER}/frontendIPConfigurations/front"),
        "backendAddressPool": ref(POOL),
        "probe": ref(f"{BALANCER}/probes/ready"),
        "protocol": "Tcp",
        "frontendPort": 6443,
        "backendPort": 6443,
    }
    return {"name": name, "properties": {**inner, **other}}


def balancer(*rules: dict[str, Any], **other: Any) -> dict[str, Any]:
    probe = {"name": "ready", "properties": {"protocol": "Https", "port": 6443, "requestPath": "/readyz", "intervalInSeconds": 5}}
    inner = {
        "frontendIPConfigurations": [place("front", address="10.0.0.10")],
        "backendAddressPools": [{"name": "servers"}],
        "probes": [probe],
        "loadBalancingRules": list(rules or (rule(),)),
    }
    return located("Standard", **{**inner, **other})


def test_a_load_balancer_is_answered_with_ids_states_and_who_names_whom() -> None:
    calls = made()
    calls.put(BALANCER, balancer())
    inner = calls.get(BALANCER)["properties"]
    (front,), (pool,), (probe,), (one,) = (
        inner[name] for name in ("frontendIPConfigurations", "backendAddressPools", "probes", "loadBalancingRules")
    )
    assert pool["id"] == full(POOL)
    assert pool["type"] == "Microsoft.Network/loadBalancers/backendAddressPools"
    named = [{"id": one["id"]}]
    assert front["properties"]["loadBalancingRules"] == pool["properties"]["loadBalancingRules"] == named
    assert probe["properties"]["loadBalancingRules"] == named
    assert probe["properties"]["probeThreshold"] == 1
    assert one["properties"]["idleTimeoutInMinutes"] == 4
    assert front["properties"]["privateIPAddress"] == "10.0.0.10"
    assert (inner["outboundRules"], used(calls)) == ([], 1)
    calls.delete(BALANCER)
    assert used(calls) == 0


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (balancer(rule(probe=ref(f"{BALANCER}/probes/none"))), "InvalidResourceReference"),
        (balancer(rule(backendAddressPool=ref(f"{NET}/loadBalancers/other/backendAddressPools/servers"))), "InvalidResourceReference"),
        (balancer(rule(frontendIPConfiguration=None)), "InvalidRequestFormat"),
        (balancer(rule(), rule("two", frontendPort=443)), "RulesUseSameBackendPortProtocolAndPool"),
        (balancer(rule(), rule("two", backendPort=443)), "RulesUseSameFrontendPortProtocolAndIPConfig"),
        (balancer(rule(frontendPort=65_535)), "InvalidLoadBalancingRule"),
        (balancer(rule(backendPort=0)), "InvalidLoadBalancingRule"),
        (balancer(rule(protocol="All")), "InvalidLoadBalancingRule"),
        (balancer(rule(idleTimeoutInMinutes=101)), "InvalidLoadBalancingRule"),
        (
            balancer(frontendIPConfigurations=[{"name": "front", "properties": {}}]),
            "LoadBalancerFrontendIPConfigMustReferenceSubnetOrPublicIP",
        ),
        (located("Standard", probes=balancer()["properties"]["probes"]), "LoadBalancerWithoutFrontendIPCantHaveChildResources"),
        (balancer(probes=[{"name": "ready", "properties": {"protocol": "Http", "port": 80}}]), "InvalidLoadBalancerProbe"),
        (
            balancer(probes=[{"name": "ready", "properties": {"protocol": "Tcp", "port": 80, "requestPath": "/"}}]),
            "InvalidLoadBalancerProbe",
        ),
        (balancer(probes=[{"name": "ready", "properties": {"protocol": "Tcp", "port": 0}}]), "InvalidLoadBalancerProbe"),
        (
            balancer(probes=[{"name": "ready", "properties": {"protocol": "Tcp", "port": 80, "intervalInSeconds": 4}}]),
            "InvalidLoadBalancerProbe",
        ),
        ({**balancer(), "sku": {"name": "Basic"}}, "BasicSkuNotSupported"),
        (balancer(frontendIPConfigurations=[place("front", address="10.0.0.4")]), "PrivateIPAddressIsAllocated"),
    ],
)
def test_a_load_balancer_that_azure_would_not_take_is_refused(body: dict[str, Any], code: str) -> None:
    calls = made()
    calls.cloud.body_reader = None
    calls.put(SINGLE, interface())
    other = located("Standard", frontendIPConfigurations=[place("front")], backendAddressPools=[{"name": "servers"}])
    calls.put(f"{NET}/loadBalancers/other", other)
    assert calls.refusal("PUT", BALANCER, body).code == code


def test_rules_with_floating_addresses_may_share_a_backend_port() -> None:
    calls = made()
    calls.put(BALANCER, balancer(rule(), rule("two", frontendPort=443, enableFloatingIP=True)))
    assert len(calls.get(BALANCER)["properties"]["loadBalancingRules"]) == 2


def test_a_public_frontend_has_the_zones_of_its_address() -> None:
    calls = made()
    calls.put(f"{NET}/publicIPAddresses/front", public("1", "2", "3"))
    front: dict[str, Any] = {"name": "front", "properties": {"publicIPAddress": ref(f"{NET}/publicIPAddresses/front")}}
    refused = calls.refusal("PUT", BALANCER, balancer(frontendIPConfigurations=[{**front, "zones": ["1"]}]))
    assert refused.code == "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress"
    calls.put(BALANCER, balancer(frontendIPConfigurations=[front]))
    assert calls.refusal("DELETE", f"{NET}/publicIPAddresses/front").code == "PublicIPAddressCannotBeDeleted"


def test_a_pool_that_is_used_is_not_left_out() -> None:
    calls = made()
    calls.put(BALANCER, balancer())
    calls.put(SINGLE, interface(place("one", loadBalancerBackendAddressPools=[ref(POOL)])))
    without = balancer(rule(backendAddressPool=None), backendAddressPools=[])
    assert calls.refusal("PUT", BALANCER, without).code == "InUseLoadBalancerItemCannotBeDeleted"
    assert calls.refusal("DELETE", BALANCER).code == "InUseLoadBalancerCannotBeDeleted"
    calls.delete(SINGLE)
    calls.put(BALANCER, without)
    calls.delete(BALANCER)


def test_a_load_balancer_has_six_hundred_frontends_at_most() -> None:
    fronts = [place(f"front-{number}") for number in range(601)]
    assert made().refusal("PUT", BALANCER, balancer(frontendIPConfigurations=fronts)).code == "LoadBalancerItemCountLimitReached"


def test_what_holds_an_address_says_where_it_is() -> None:
    assert made().refusal("PUT", SINGLE, {"properties": {}}).code == "LocationRequired"
