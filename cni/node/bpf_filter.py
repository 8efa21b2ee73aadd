"""A filter's program for tc that takes the packets whose far address is outside of given networks.

One program in place of a filter for each network: every packet of a link passes it, so it is as short as it can be. In the words of classic
BPF, https://docs.kernel.org/networking/filter.html, as tc takes them, https://man7.org/linux/man-pages/man8/tc-bpf.8.html.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network

from cni.node.errors import NodeNetworkError

LOAD_WORD, TO_X, FROM_X, AND, JUMP_IF_EQUAL, RETURN = 0x20, 0x07, 0x87, 0x54, 0x15, 0x06

ETHERNET = 14
"""Bytes of the header before IPv4's, on a machine's card and on a pod's link alike."""

PASS, TAKE = 0, 0xFFFF_FFFF
"""What a program returns for a packet that the filter does not match, and for one that it does."""

MOST_NETWORKS = 1000
"""The kernel takes 4,096 instructions at most, a network has four:
https://github.com/torvalds/linux/blob/v6.8/include/uapi/linux/bpf_common.h"""


def filter_program(networks: Iterable[IPv4Network], offset: int) -> str:
    """The program, "number of instructions,code jump-if-true jump-if-false constant,…", for the address at that byte of the IPv4 header.

    Networks are looked at in their order. Refused where there are more than MOST_NETWORKS.
    """
    given = tuple(networks)
    if len(given) > MOST_NETWORKS:
        raise NodeNetworkError(
            "networks that are not shaped", str(len(given)), f"at most {MOST_NETWORKS}, the kernel's limit", "name fewer, larger ones"
        )
    program = [(LOAD_WORD, 0, 0, ETHERNET + offset), (TO_X, 0, 0, 0)]
    for one in given:
        program += [
            (FROM_X, 0, 0, 0),
            (AND, 0, 0, int(one.netmask)),
            (JUMP_IF_EQUAL, 0, 1, int(one.network_address)),
            (RETURN, 0, 0, PASS),
        ]
    program.append((RETURN, 0, 0, TAKE))
    return ",".join((str(len(program)), *(" ".join(map(str, instruction)) for instruction in program)))
