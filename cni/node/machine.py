"""What the program knows of its machine: the link to the network, its own address, and those that its pods get."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The machine's network card as Azure has it.

    interface is the link's name, mac its address (00:0d:3a:…), primary the machine's own IPv4 address, secondaries those of its pods,
    lowest first; prefix_length is that of the subnet which holds them all.
    """

    interface: str
    mac: str
    primary: str
    secondaries: tuple[str, ...]
    prefix_length: int

    @property
    def subnet(self) -> str:
        """The subnet of all of the machine's addresses, ADDRESS/LENGTH."""
        return str(ipaddress.ip_network(f"{self.primary}/{self.prefix_length}", strict=False))
