"""Packets that match a filter's program, run by an interpreter of classic BPF; the kernel runs it in the tests of shaping."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cni.node.errors import NodeNetworkError
from cni.node.shaping import MOST_NETWORKS, filter_program

DESTINATION = 16
MOST_INSTRUCTIONS = 4096

networks = st.builds(lambda address, length: IPv4Network((address, length), strict=False), st.integers(0, 2**32 - 1), st.integers(0, 32))


def takes(program: str, packet: bytes) -> bool:
    """Run a program over a packet, as https://docs.kernel.org/networking/filter.html says what each instruction does."""
    count, *rest = program.split(",")
    instructions = [tuple(map(int, one.split())) for one in rest]
    assert int(count) == len(instructions) <= MOST_INSTRUCTIONS
    a = x = place = 0
    while True:
        code, if_true, if_false, constant = instructions[place]
        place += 1
        match code:
            case 0x20:
                a = int.from_bytes(packet[constant : constant + 4], "big")
            case 0x07:
                x = a
            case 0x87:
                a = x
            case 0x54:
                a &= constant
            case 0x15:
                place += if_true if a == constant else if_false
            case 0x06:
                return constant != 0
            case _:
                raise AssertionError(f"instruction {code:#x}")


def packet_to(address: IPv4Address) -> bytes:
    return bytes(14) + bytes(DESTINATION) + address.packed + b"payload"


@given(st.lists(networks, max_size=20), st.integers(0, 2**32 - 1))
def test_a_packet_is_taken_if_its_address_is_in_none_of_the_networks(given: list[IPv4Network], number: int) -> None:
    address = IPv4Address(number)
    program = filter_program(given, DESTINATION)
    assert takes(program, packet_to(address)) == all(address not in one for one in given)
    for one in given:
        assert not takes(program, packet_to(one.network_address))
        assert not takes(program, packet_to(one.broadcast_address))


def test_as_many_networks_as_the_kernel_takes_and_not_one_more() -> None:
    many = [IPv4Network((number << 8, 24)) for number in range(MOST_NETWORKS)]
    assert takes(filter_program(many, DESTINATION), packet_to(IPv4Address("200.0.0.1")))
    with pytest.raises(NodeNetworkError, match=r"1001; at most 1000, the kernel's limit; name fewer"):
        filter_program([*many, IPv4Network("200.0.0.0/24")], DESTINATION)
