"""Bandwidth share of each pod's address, and the commands that configure the system's programs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cni.node import nat
from cni.node.addresses import Holder
from cni.node.settings import Settings, Shaping
from cni.node.shaping import HOST_MINOR, KBIT, MOST_QUANTUM, QUANTUM, Share, class_rules, exempt_networks, minors, parse_classes, shares

SHAPING = Shaping(
    machine_mbit=1000, floor_mbit=5, ceiling_mbit=800, weights={"vision": 4, "toys": 1000}, default_weight=1, connections_per_pod=4000
)
SETTINGS = Settings(
    mode="native",
    internal=("10.0.0.0/8",),
    not_masqueraded=("10.0.0.0/8", "172.20.0.0/16", "fd00::/8"),
    service_cidr="10.255.0.0/16",
    snat=True,
    mtu=1500,
    planned_pods=30,
    host_network_pods=3,
    shaping=SHAPING,
)
ADDRESSES = tuple(f"10.0.0.{last}" for last in range(5, 35))

LISTING = """\
class htb 1:11 parent 1:1 leaf 8004: prio 0 quantum 65536 rate 5Mbit ceil 800Mbit linklayer ethernet burst 64Kb/1 level 0
class htb 1:2 parent 1:1 leaf 8002: prio 0 quantum 262144 rate 12345Kbit ceil 1Gbit linklayer ethernet burst 64Kb/1 level 0
class htb 1:1 root rate 1Gbit ceil 1Gbit linklayer ethernet burst 65512b/1 mpu 0b cburst 65512b/1 mpu 0b level 7
"""


def test_every_address_has_its_floor_and_ceiling_and_takes_at_its_turn_what_its_team_weighs() -> None:
    of = minors(ADDRESSES)
    got = shares(SHAPING, ADDRESSES, {"10.0.0.6": Holder("vision", "trainer", "vision"), "10.0.0.7": Holder("kube-system", "dns", "")})
    assert got[of["10.0.0.6"]] == Share(5 * KBIT, 800 * KBIT, 4 * QUANTUM)
    assert got[of["10.0.0.7"]] == got[of["10.0.0.5"]] == Share(5 * KBIT, 800 * KBIT, QUANTUM)
    assert got[HOST_MINOR] == Share(5 * KBIT, 1000 * KBIT, QUANTUM)


def test_an_addresss_class_depends_on_nothing_but_the_set_of_addresses() -> None:
    assert minors(ADDRESSES) == minors(tuple(reversed(ADDRESSES)))
    assert minors(("10.0.0.10", "10.0.0.9")) == {"10.0.0.9": 0x10, "10.0.0.10": 0x11}


@given(
    machine=st.integers(1, 100_000),
    floor=st.integers(1, 100_000),
    ceiling=st.integers(1, 100_000),
    weight=st.integers(1, 10_000),
    count=st.integers(1, 255),
)
def test_floors_never_promise_more_than_the_machine_has_and_no_turn_is_too_long(
    machine: int, floor: int, ceiling: int, weight: int, count: int
) -> None:
    shaping = replace(SHAPING, machine_mbit=machine, floor_mbit=floor, ceiling_mbit=ceiling, weights={"vision": weight})
    addresses = [f"10.0.{number // 250}.{number % 250}" for number in range(count)]
    got = shares(shaping, addresses, {addresses[0]: Holder("vision", "trainer", "vision")})
    assert len(got) == count + 1
    assert sum(share.rate for share in got.values()) <= max(machine * KBIT, len(got))
    for share in got.values():
        assert 1 <= share.rate <= share.ceiling <= machine * KBIT
        assert QUANTUM <= share.quantum <= MOST_QUANTUM


def test_what_tc_lists_is_read_back_as_it_was_asked_for() -> None:
    assert parse_classes(LISTING) == {
        0x11: Share(5_000, 800_000, 65_536),
        0x2: Share(12_345, 1_000_000, 262_144),
        0x1: Share(1_000_000, 1_000_000, 0),
    }


def test_nothing_internal_peered_or_of_azures_own_is_shaped() -> None:
    assert exempt_networks(SETTINGS) == ["10.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.20.0.0/16"]


def test_there_is_a_rule_for_each_direction_where_no_packet_between_internal_addresses_comes() -> None:
    rules = class_rules("eth0")
    assert [line.split()[1] for line in rules] == ["GPUFLEET-FORWARD-IN", "GPUFLEET-FORWARD-OUT"]
    assert all('"gpufleet shaping"' in line and "eth0" in line for line in rules)


def test_connections_are_limited_to_the_internet_alone() -> None:
    *returned, limit = nat.limit_rules("gpufleet-shape", exempt_networks(SETTINGS), 4000)
    assert [line.split()[3] for line in returned] == exempt_networks(SETTINGS)
    assert all(line.endswith(" -j RETURN") for line in returned)
    assert "--match-set gpufleet-shape src " in limit
    assert "--connlimit-above 4000 " in limit
