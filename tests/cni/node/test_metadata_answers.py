"""For any answer of the metadata service, the node program describes the machine correctly or fails with one line."""

from __future__ import annotations

import copy
import ipaddress
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cni.node.errors import NodeNetworkError
from cni.node.machine import Link, Machine
from cni.node.metadata_service import parse_machine

MAC = "00:0d:3a:01:02:03"
ETH0 = Link("eth0", MAC, 1500, ("10.0.0.4",), enslaved=False, default_route=True)
FUNCTION = Link("enP1s1", MAC, 1500, (), enslaved=True, default_route=False)
POD = Link("veth12345678", "ce:11:22:33:44:55", 1500, ("10.0.0.4",), enslaved=False, default_route=False)
LINKS = (Link("lo", "00:00:00:00:00:00", 65_536, ("127.0.0.1",), enslaved=False, default_route=False), ETH0, FUNCTION, POD)


def answer(*addresses: str, mac: str = "000D3A010203", prefix: object = "24") -> dict[str, Any]:
    rows = [{"privateIpAddress": address, "publicIpAddress": ""} for address in addresses]
    ipv4 = {"ipAddress": rows, "subnet": [{"address": "10.0.0.0", "prefix": prefix}]}
    return {"interface": [{"ipv4": ipv4, "ipv6": {"ipAddress": []}, "macAddress": mac}]}


GOOD = answer("10.0.0.4", "10.0.0.5", "10.0.0.9")


def refusal(document: object, links: tuple[Link, ...] = LINKS) -> str:
    with pytest.raises(NodeNetworkError) as refused:
        parse_machine(document, links)
    said = str(refused.value)
    assert "\n" not in said
    return said


def test_a_sound_answer_gives_the_link_the_own_address_and_those_of_the_pods() -> None:
    assert parse_machine(GOOD, LINKS) == Machine("eth0", MAC, "10.0.0.4", ("10.0.0.5", "10.0.0.9"), 24)


def test_the_same_addresses_in_another_order_are_the_same_machine() -> None:
    assert parse_machine(answer("10.0.0.4", "10.0.0.10", "10.0.0.9"), LINKS) == parse_machine(
        answer("10.0.0.4", "10.0.0.9", "10.0.0.10"), LINKS
    )


def test_an_address_in_ipv6_beside_them_changes_nothing() -> None:
    document = copy.deepcopy(GOOD)
    document["interface"][0]["ipv6"]["ipAddress"] = [{"privateIpAddress": "fd00::5"}]
    assert parse_machine(document, LINKS) == parse_machine(GOOD, LINKS)


def test_with_accelerated_networking_the_link_is_the_one_that_carries_the_addresses() -> None:
    assert parse_machine(GOOD, (FUNCTION, ETH0)).interface == "eth0"


def test_of_two_cards_the_one_with_the_default_route_is_the_pods() -> None:
    other = Link("eth1", "00:0d:3a:0a:0b:0c", 1500, ("10.0.1.4",), enslaved=False, default_route=False)
    second = answer("10.0.1.4", "10.0.1.5", mac="000D3A0A0B0C")["interface"]
    second[0]["ipv4"]["subnet"][0]["address"] = "10.0.1.0"
    document = {"interface": [*second, *GOOD["interface"]]}
    assert parse_machine(document, (*LINKS, other)).primary == "10.0.0.4"


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ({}, "an object that has interface"),
        ({"interface": []}, "one card is that of one link"),
        ([GOOD], "an object that has interface"),
        (None, "an object that has interface"),
        (answer(), "0 addresses"),
        (answer("10.0.0.4"), "1 addresses; the machine's own and at least one for a pod"),
        (answer("10.0.0.5", "10.0.0.4"), "10.0.0.5 first; the first address is the machine's own, of which link eth0 has 10.0.0.4"),
        (answer("10.0.0.4", "10.0.0.5", "10.0.0.5"), "10.0.0.5 twice"),
        (answer("10.0.0.4", "10.0.1.5"), "10.0.1.5; it is an address for machines in subnet 10.0.0.0/24"),
        (answer("10.0.0.4", "10.0.0.255"), "10.0.0.255; it is an address for machines"),
        (answer("10.0.0.4", "10.0.0.0"), "10.0.0.0; it is an address for machines"),
        (answer("10.0.0.4", "10.0.0.05"), "it is an IPv4 address"),
        (answer("10.0.0.4", "10.0.0.5 "), "it is an IPv4 address"),
        (answer("10.0.0.4", "fd00::1"), "it is an IPv4 address"),
        (answer("10.0.0.4", ""), "it is an IPv4 address"),
        (answer("10.0.0.4", "10.0.0.5", mac="000D3A010204"), "one card is that of one link"),
        (answer("10.0.0.4", "10.0.0.5", mac="00:0D:3A:01:02:03"), "12 hexadecimal digits"),
        (answer("10.0.0.4", "10.0.0.5", prefix=24), 'a text from "8" to "29"'),
        (answer("10.0.0.4", "10.0.0.5", prefix="0"), 'a text from "8" to "29"'),
        (answer("10.0.0.4", "10.0.0.5", prefix="٢٤"), 'a text from "8" to "29"'),
        (answer("10.0.0.4", "10.0.0.5", prefix="999999999999"), 'a text from "8" to "29"'),
        ({"interface": GOOD["interface"] * 2}, "two cards of one address"),
    ],
)
def test_an_unsound_answer_is_refused_with_what_is_wrong(document: object, why: str) -> None:
    assert why in refusal(document)


def test_an_answer_for_another_machine_is_refused() -> None:
    elsewhere = (Link("eth0", MAC, 1500, ("10.0.0.77",), enslaved=False, default_route=True),)
    assert "of which link eth0 has 10.0.0.77" in refusal(GOOD, elsewhere)


def test_a_subnet_with_host_bits_or_without_the_own_address_is_refused() -> None:
    document = copy.deepcopy(GOOD)
    subnet = document["interface"][0]["ipv4"]["subnet"]
    subnet[0]["address"] = "10.0.0.4"
    assert "without host bits" in refusal(document)
    subnet[0]["address"] = "10.9.0.0"
    assert "1 subnets without 10.0.0.4" in refusal(document)


def test_before_the_function_is_enslaved_no_link_is_guessed() -> None:
    free = Link("enP1s1", MAC, 1500, (), enslaved=False, default_route=False)
    assert "one card is that of one link" in refusal(GOOD, (ETH0, free))


KEYS = st.sampled_from(["interface", "ipv4", "ipv6", "ipAddress", "subnet", "privateIpAddress", "macAddress", "address", "prefix"])
TEXTS = st.sampled_from(
    ["10.0.0.4", "10.0.0.5", "10.0.0.0", "24", "8", "000D3A010203", "", "::1", "255.255.255.255", "10.0.0.4/24"]
) | st.text(max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20)


def places(value: object, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value inside a document."""
    inner = list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    return [way, *(place for key, one in inner for place in places(one, (*way, key)))]


def changed(document: Any, way: tuple[Any, ...], value: object) -> Any:
    if not way:
        return value
    document = copy.deepcopy(document)
    at = document
    for key in way[:-1]:
        at = at[key]
    at[way[-1]] = value
    return document


def sound(found: Machine) -> bool:
    """All that the rest of the program relies on."""
    subnet = ipaddress.IPv4Network(found.subnet)
    every = [ipaddress.IPv4Address(one) for one in (found.primary, *found.secondaries)]
    return (
        (found.interface, found.mac, found.primary) == ("eth0", MAC, "10.0.0.4")
        and 1 <= len(found.secondaries) == len(set(every)) - 1
        and all(one in subnet and one not in (subnet.network_address, subnet.broadcast_address) for one in every)
        and [str(one) for one in every[1:]] == list(found.secondaries)
    )


@given(ANYTHING)
@example(GOOD)
def test_garbage_never_becomes_a_wrong_machine_nor_a_traceback(document: object) -> None:
    try:
        found = parse_machine(document, LINKS)
    except NodeNetworkError:
        return
    assert sound(found)


@given(st.sampled_from(places(GOOD)), ANYTHING)
@example(("interface", 0, "ipv4", "ipAddress", 2, "privateIpAddress"), "10.0.0.4")
def test_a_good_answer_with_one_thing_changed_never_becomes_a_wrong_machine(way: tuple[Any, ...], value: object) -> None:
    try:
        found = parse_machine(json.loads(json.dumps(changed(GOOD, way, value))), LINKS)
    except NodeNetworkError:
        return
    assert sound(found)
