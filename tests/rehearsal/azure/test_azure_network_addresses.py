"""Subnets allocate addresses as on Azure: the lowest free address first, five reserved ones, and limits per network and peered group."""

from __future__ import annotations

import time
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from network_bodies import HUB, NODES, SINGLE, SPOKE, address_of, full, interface, made, network, place, ref
from plain_calls import Calls

from rehearsal.azure.errors import AzureError
from rehearsal.azure.network.address_pools import PER_NETWORK, PER_PEERED_GROUP, AddressPool, NetworkUse, addresses_of, pool_of


def pool(prefix: str = "10.0.0.0/24") -> AddressPool:
    return AddressPool("nodes", prefix, NetworkUse("net"))


def texts(addresses: list[int]) -> list[str]:
    return [str(IPv4Address(address)) for address in addresses]


def test_the_first_address_is_the_fourth_of_the_subnet_and_the_last_is_kept() -> None:
    small = pool("10.0.0.8/29")
    assert small.free == 3
    assert texts(small.take(3)) == ["10.0.0.12", "10.0.0.13", "10.0.0.14"]
    with pytest.raises(AzureError) as full_up:
        small.take(1)
    assert full_up.value.code == "SubnetIsFull"
    assert full_up.value.message == "Subnet nodes with address prefix 10.0.0.8/29 does not have enough capacity for 1 IP addresses."


def test_more_addresses_than_are_free_are_refused_as_a_whole() -> None:
    small = pool("10.0.0.0/29")
    small.take(2)
    with pytest.raises(AzureError, match="SubnetIsFull"):
        small.take(2)
    assert (small.used, small.free) == (2, 1)


def test_a_released_address_is_the_next_to_be_given() -> None:
    nodes = pool()
    taken = nodes.take(5)
    nodes.release((taken[1], taken[3]))
    assert texts(nodes.take(3)) == ["10.0.0.5", "10.0.0.7", "10.0.0.9"]


def test_static_addresses_are_passed_over() -> None:
    nodes = pool()
    nodes.take_exactly(int(IPv4Address("10.0.0.5")))
    assert texts(nodes.take(2)) == ["10.0.0.4", "10.0.0.6"]


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("10.0.1.4", "PrivateIPAddressNotInSubnet"),
        ("9.255.255.255", "PrivateIPAddressNotInSubnet"),
        ("10.0.0.0", "PrivateIPAddressInReservedRange"),
        ("10.0.0.3", "PrivateIPAddressInReservedRange"),
        ("10.0.0.255", "PrivateIPAddressInReservedRange"),
        ("10.0.0.9", "PrivateIPAddressIsAllocated"),
    ],
)
def test_a_static_address_that_cannot_be_had_is_refused(address: str, code: str) -> None:
    nodes = pool()
    nodes.take_exactly(int(IPv4Address("10.0.0.9")))
    with pytest.raises(AzureError) as refused:
        nodes.take_exactly(int(IPv4Address(address)))
    assert refused.value.code == code
    assert nodes.used == 1


def test_what_is_not_in_use_cannot_be_released() -> None:
    nodes = pool()
    for address in ("10.0.0.4", "10.0.0.0", "10.0.1.4"):
        with pytest.raises(ValueError, match="is not in use"):
            nodes.release((int(IPv4Address(address)),))
    assert nodes.used == 0


def test_a_network_uses_65536_addresses_and_no_more() -> None:
    net = NetworkUse("net")
    big, small = AddressPool("big", "10.0.0.0/15", net), AddressPool("small", "10.2.0.0/24", net)
    big.take(PER_NETWORK - 1)
    small.take(1)
    with pytest.raises(AzureError) as refused:
        small.take(1)
    assert refused.value.code == "PrivateIPAddressLimitExceeded"
    assert "65536" in refused.value.message
    big.release((int(IPv4Address("10.0.0.4")),))
    small.take(1)


def peered() -> Calls:
    calls = made()
    calls.put(HUB, network("10.0.0.0/15", subnets={"nodes": "10.0.0.0/15"}))
    calls.put(SPOKE, network("10.2.0.0/15", subnets={"nodes": "10.2.0.0/15"}))
    return calls


def put_peering(calls: Calls, local: str, remote: str) -> None:
    calls.put(f"{local}/virtualNetworkPeerings/to", {"properties": {"remoteVirtualNetwork": ref(remote)}})


def test_peered_networks_use_128000_addresses_together() -> None:
    calls = peered()
    hub, spoke = (pool_of(calls.cloud, full(f"{one}/subnets/nodes")) for one in (HUB, SPOKE))
    hub.take(65_000)
    spoke.take(PER_PEERED_GROUP - 65_000 - 1)
    put_peering(calls, HUB, SPOKE)
    spoke.release(spoke.take(2))
    put_peering(calls, SPOKE, HUB)
    spoke.take(1)
    with pytest.raises(AzureError) as refused:
        hub.take(1)
    assert refused.value.code == "PrivateIPAddressLimitExceeded"
    assert "128000" in refused.value.message
    calls.delete(f"{SPOKE}/virtualNetworkPeerings/to")
    hub.take(1)


def test_a_spoke_counts_with_the_other_spokes_of_its_hub() -> None:
    calls = peered()
    calls.put("Microsoft.Network/virtualNetworks/third", network("10.4.0.0/15", subnets={"nodes": "10.4.0.0/15"}))
    pools = [pool_of(calls.cloud, full(f"Microsoft.Network/virtualNetworks/{one}/subnets/nodes")) for one in ("spoke", "third")]
    third = "Microsoft.Network/virtualNetworks/third"
    put_peering(calls, SPOKE, HUB)
    put_peering(calls, third, HUB)
    calls.put(f"{HUB}/virtualNetworkPeerings/to-spoke", {"properties": {"remoteVirtualNetwork": ref(SPOKE)}})
    calls.put(f"{HUB}/virtualNetworkPeerings/to-third", {"properties": {"remoteVirtualNetwork": ref(third)}})
    pools[0].take(65_000)
    pools[1].take(63_000)
    with pytest.raises(AzureError, match="PrivateIPAddressLimitExceeded"):
        pools[1].take(1)


def test_a_cloud_that_was_saved_gives_the_same_addresses() -> None:
    calls = made()
    calls.put(SINGLE, interface(place("one", address="10.0.0.9"), place("two")))
    calls.put(f"{SINGLE}-2", interface())
    calls.delete(f"{SINGLE}-2")
    again = calls.rebuilt()
    for one in (calls, again):
        assert pool_of(one.cloud, full(NODES)).used == 2
        one.put(f"{SINGLE}-3", interface(place("a"), place("b"), place("c"), place("d"), place("e")))
        assert [address_of(one, f"{SINGLE}-3", number) for number in range(5)] == [f"10.0.0.{last}" for last in (5, 6, 7, 8, 10)]


def test_a_region_of_22500_machines_of_eight_addresses_is_quick() -> None:
    calls = Calls()
    begun = time.perf_counter()
    taken = 0
    for number in range(3):
        base = number * 8
        subnets = {f"nodes-{slot}": f"10.{base + slot // 8}.{slot % 8 * 32}.0/19" for slot in range(8)}
        calls.put(f"Microsoft.Network/virtualNetworks/net-{number}", network(f"10.{base}.0.0/13", subnets=subnets))
        for slot in range(8):
            for _ in range(938 if slot < 7 else 7_500 - 7 * 938):
                taken += len(pool_of(calls.cloud, full(f"Microsoft.Network/virtualNetworks/net-{number}/subnets/nodes-{slot}")).take(8))
    print(f"{taken} addresses in {time.perf_counter() - begun:.2f} s")
    assert taken == 180_000
    assert sum(one.used for one in addresses_of(calls.cloud).pools.values()) == taken


class TakingAndReleasing(RuleBasedStateMachine):
    """A pool against a plain set of addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = pool("10.0.0.64/26")
        self.used: set[int] = set()
        first = int(IPv4Address("10.0.0.64"))
        self.usable = range(first + 4, first + 63)

    @rule(count=st.integers(0, 12))
    def take(self, count: int) -> None:
        free = [one for one in self.usable if one not in self.used]
        if count > len(free):
            with pytest.raises(AzureError, match="SubnetIsFull"):
                self.pool.take(count)
        else:
            assert self.pool.take(count) == free[:count]
            self.used.update(free[:count])

    @rule(place=st.integers(-2, 70))
    def take_exactly(self, place: int) -> None:
        address = self.usable[0] - 4 + place
        if address in self.usable and address not in self.used:
            self.pool.take_exactly(address)
            self.used.add(address)
        else:
            with pytest.raises(AzureError):
                self.pool.take_exactly(address)

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        gone = data.draw(st.sets(st.sampled_from(sorted(self.used)))) if self.used else set()
        self.pool.release(gone)
        self.used -= gone

    @invariant()
    def it_counts_right(self) -> None:
        assert self.pool.used == len(self.used)
        assert self.pool.free == len(self.usable) - len(self.used)


TestTakingAndReleasing = TakingAndReleasing.TestCase
TestTakingAndReleasing.settings = settings(max_examples=50, stateful_step_count=30)


@given(st.integers(2, 29), st.lists(st.integers(0, 40), max_size=6))
def test_no_address_is_given_twice_or_outside_of_the_subnet(length: int, counts: list[int]) -> None:
    nodes = pool(f"64.0.0.0/{length}")
    seen: set[int] = set()
    for count in counts:
        if count <= nodes.free:
            taken = nodes.take(count)
            assert len(taken) == count
            assert not seen & set(taken)
            assert all(IPv4Address(one) in nodes.prefix for one in taken)
            seen.update(taken)
    assert nodes.prefix.broadcast_address not in {IPv4Address(one) for one in seen}
