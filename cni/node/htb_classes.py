"""Which share of the machine's internet rate each pod's address has: a class of HTB for each from boot on, whoever holds it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cni.node.address_holders import Holder
from cni.node.settings import Shaping

KBIT = 1000
"""Kbit/s in one Mbit/s, as tc has it."""

HOST_MINOR = 0x2
"""Minor number of the class of the machine's own traffic, and of whatever has no other."""

FIRST_MINOR = 0x10
"""Minor number of the first address."""

QUANTUM = 65_536
"""Bytes that the least weight sends at its turn: the largest packet that segmentation offload makes, for a turn is one packet at least, and
a smaller one would have every class send as much as every other, https://man7.org/linux/man-pages/man8/tc-htb.8.html"""

MOST_QUANTUM = 100 * QUANTUM
"""Of the highest weight that a region file may give; above, a turn would last longer than a connection waits."""

BURST_SECONDS = 0.002
"""A class may save up what it sends in that time, as the kernel wakes it no more exactly on a busy machine."""


@dataclass(frozen=True)
class Share:
    """A class: what it always gets and what it may borrow up to, in Kbit/s, and what it takes of others' rest at its turn, in bytes."""

    rate: int
    ceiling: int
    quantum: int

    @property
    def burst(self) -> int:
        """Bytes that it may send at once at its ceiling."""
        return max(QUANTUM, int(self.ceiling * KBIT / 8 * BURST_SECONDS))


def minors(addresses: Sequence[str]) -> dict[str, int]:
    """Minor number of the class of each address, in the addresses' numerical order."""
    ordered = sorted(addresses, key=lambda address: int(ipaddress.ip_address(address)))
    return {address: FIRST_MINOR + place for place, address in enumerate(ordered)}


def shares(shaping: Shaping, addresses: Sequence[str], holders: Mapping[str, Holder]) -> dict[int, Share]:
    """The share of every class by its minor number.

    Of n that want more than they get, each has floor + (machine - n * floor) * its weight / the weights of all n. The floor is lowered
    where the machine has not so much for all of them.
    """
    teams = {address: holders[address].team if address in holders else "" for address in addresses}
    weights = {minor: shaping.weights.get(teams[address], shaping.default_weight) for address, minor in minors(addresses).items()}
    weights[HOST_MINOR] = shaping.default_weight
    machine = shaping.machine_mbit * KBIT
    floor = max(1, min(shaping.floor_mbit * KBIT, machine // len(weights)))
    ceiling = max(floor, min(shaping.ceiling_mbit * KBIT, machine))
    least = min(weights.values())
    return {
        minor: Share(floor, machine if minor == HOST_MINOR else ceiling, min(QUANTUM * weight // least, MOST_QUANTUM))
        for minor, weight in sorted(weights.items())
    }
