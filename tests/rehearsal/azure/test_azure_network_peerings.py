"""Peerings have two sides with states and address spaces as on Azure."""

from __future__ import annotations

from typing import Any

import pytest
from network_bodies import HUB, NET, SPOKE, THIRD, full, gateway, made, network, public, ref, subnet
from plain_calls import Calls

TO_SPOKE = f"{HUB}/virtualNetworkPeerings/to-spoke"
TO_HUB = f"{SPOKE}/virtualNetworkPeerings/to-hub"


def to(remote: str, **properties: Any) -> dict[str, Any]:
    return {"properties": {"remoteVirtualNetwork": ref(remote), **properties}}


def pair() -> Calls:
    calls = made()
    calls.put(SPOKE, network("10.1.0.0/16", subnets={"nodes": "10.1.0.0/24", "own": "10.1.1.0/24"}))
    return calls


def state(calls: Calls, text: str) -> str:
    return str(calls.get(text)["properties"]["peeringState"])


def test_a_peering_is_initiated_until_its_other_side_is_there() -> None:
    calls = pair()
    calls.put(TO_SPOKE, to(SPOKE))
    assert state(calls, TO_SPOKE) == "Initiated"
    calls.put(TO_HUB, to(HUB))
    for one in (TO_SPOKE, TO_HUB):
        inner = calls.get(one)["properties"]
        assert (inner["peeringState"], inner["peeringSyncLevel"]) == ("Connected", "FullyInSync")
    inner = calls.get(TO_SPOKE)["properties"]
    assert inner["remoteAddressSpace"] == {"addressPrefixes": ["10.1.0.0/16"]}
    assert (inner["allowVirtualNetworkAccess"], inner["allowForwardedTraffic"]) == (True, False)
    assert [one["name"] for one in calls.get(HUB)["properties"]["virtualNetworkPeerings"]] == ["to-spoke"]


def test_the_side_that_is_left_is_disconnected_and_has_to_be_put_anew() -> None:
    calls = pair()
    calls.put(TO_SPOKE, to(SPOKE))
    calls.put(TO_HUB, to(HUB))
    calls.delete(TO_HUB)
    assert state(calls, TO_SPOKE) == "Disconnected"
    refused = calls.refusal("PUT", TO_HUB, to(HUB))
    assert refused.code == "RemotePeeringIsDisconnected"
    assert full(TO_SPOKE) in refused.message
    calls.put(TO_SPOKE, to(SPOKE))
    assert state(calls, TO_SPOKE) == "Initiated"
    calls.put(TO_HUB, to(HUB))
    assert state(calls, TO_SPOKE) == state(calls, TO_HUB) == "Connected"


def test_a_deleted_network_leaves_its_peers_disconnected() -> None:
    calls = pair()
    calls.put(TO_SPOKE, to(SPOKE))
    calls.put(TO_HUB, to(HUB))
    calls.delete(SPOKE)
    assert state(calls, TO_SPOKE) == "Disconnected"


def test_networks_that_overlap_are_not_peered() -> None:
    calls = pair()
    calls.put(THIRD, network("10.0.128.0/17", "10.3.0.0/16"))
    refused = calls.refusal("PUT", f"{HUB}/virtualNetworkPeerings/to-third", to(THIRD))
    assert refused.code == "VnetAddressSpacesOverlap"
    assert refused.message.endswith("Overlapping address prefixes: 10.0.0.0/16")


def test_a_network_is_not_peered_with_one_that_has_a_peer_like_it() -> None:
    calls = pair()
    calls.put(THIRD, network("10.1.128.0/17"))
    calls.put(TO_SPOKE, to(SPOKE))
    refused = calls.refusal("PUT", f"{THIRD}/virtualNetworkPeerings/to-hub", to(HUB))
    assert refused.code == "VnetAddressSpaceOverlapsWithAlreadyPeeredVnet"
    assert full(SPOKE) in refused.message


def test_prefixes_of_a_peered_network_do_not_grow_into_the_other() -> None:
    calls = pair()
    calls.put(TO_SPOKE, to(SPOKE))
    assert calls.refusal("PUT", HUB, network("10.0.0.0/15")).code == "VnetAddressSpacesOverlap"


def test_a_peering_is_out_of_sync_once_a_network_has_other_prefixes() -> None:
    calls = pair()
    calls.put(TO_SPOKE, to(SPOKE))
    calls.put(TO_HUB, to(HUB))
    calls.put(HUB, network("10.0.0.0/16", "10.9.0.0/16"))
    assert calls.get(TO_SPOKE)["properties"]["peeringSyncLevel"] == "LocalNotInSync"
    assert calls.get(TO_HUB)["properties"]["peeringSyncLevel"] == "RemoteNotInSync"
    calls.put(TO_SPOKE, to(SPOKE))
    calls.put(TO_HUB, to(HUB))
    assert calls.get(TO_HUB)["properties"]["peeringSyncLevel"] == "FullyInSync"


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("again", to(SPOKE), "AnotherPeeringAlreadyReferencesRemoteVnet"),
        ("self", to(HUB), "VnetCannotBePeeredWithItself"),
        ("none", to(THIRD), "InvalidResourceReference"),
        ("empty", {"properties": {}}, "InvalidRequestFormat"),
        ("to-spoke", to(THIRD), "PropertyChangeNotAllowed"),
        ("to-spoke", to(SPOKE, useRemoteGateways=True), "RemoteVnetHasNoGateways"),
    ],
)
def test_a_peering_names_one_other_network(name: str, body: dict[str, Any], code: str) -> None:
    calls = pair()
    calls.put(TO_SPOKE, to(SPOKE))
    assert calls.refusal("PUT", f"{HUB}/virtualNetworkPeerings/{name}", body).code == code


def test_the_other_networks_gateway_is_used_once_there_is_one() -> None:
    calls = pair()
    calls.put(f"{HUB}/subnets/GatewaySubnet", subnet("10.0.255.0/27"))
    calls.put(f"{NET}/publicIPAddresses/gateway", public("1", "2", "3"))
    calls.put(f"{NET}/virtualNetworkGateways/gateway", gateway(f"{HUB}/subnets/GatewaySubnet", f"{NET}/publicIPAddresses/gateway"))
    calls.put(TO_HUB, to(HUB, useRemoteGateways=True))
    assert calls.get(TO_HUB)["properties"]["useRemoteGateways"] is True


def test_networks_that_overlap_are_peered_by_subnets_that_do_not() -> None:
    calls = pair()
    calls.put(THIRD, network("10.0.0.0/16", subnets={"nodes": "10.0.0.0/24", "own": "10.0.9.0/24"}))
    there, back = f"{HUB}/virtualNetworkPeerings/to-third", f"{THIRD}/virtualNetworkPeerings/to-hub"
    same = {"peerCompleteVnets": False, "localSubnetNames": ["nodes"], "remoteSubnetNames": ["nodes"]}
    assert calls.refusal("PUT", there, to(THIRD, **same)).code == "VnetAddressSpacesOverlap"
    calls.put(there, to(THIRD, **{**same, "remoteSubnetNames": ["own"]}))
    calls.put(back, to(HUB, **{**same, "localSubnetNames": ["own"]}))
    assert state(calls, there) == state(calls, back) == "Connected"
    assert calls.get(there)["properties"]["remoteAddressSpace"] == {"addressPrefixes": ["10.0.9.0/24"]}


def test_a_side_of_subnets_does_not_answer_a_side_of_networks() -> None:
    calls = pair()
    calls.put(TO_SPOKE, to(SPOKE))
    calls.put(TO_HUB, to(HUB, peerCompleteVnets=False, localSubnetNames=["own"], remoteSubnetNames=["nodes"]))
    assert state(calls, TO_SPOKE) == state(calls, TO_HUB) == "Initiated"
