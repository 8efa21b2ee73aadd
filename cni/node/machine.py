"""The machine's network links, its network card and its addresses."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from dataclasses import dataclass

from cni.node.commands import run


@dataclass(frozen=True)
class Link:
    """One network link: mac in lower case with colons, mtu in bytes, IPv4 addresses."""

    name: str
    mac: str
    mtu: int
    addresses: tuple[str, ...]
    enslaved: bool
    default_route: bool


def list_links() -> tuple[Link, ...]:
    """Return the links of this network namespace. CommandError."""
    outward = {row.get("dev") for row in json.loads(run("ip", "-json", "-4", "route", "show", "default") or "[]")}
    return tuple(
        Link(
            name=row["ifname"],
            mac=str(row.get("address", "")).lower(),
            mtu=int(row.get("mtu", 0)),
            addresses=tuple(str(one["local"]) for one in row.get("addr_info", ()) if one.get("family") == "inet" and "local" in one),
            enslaved="master" in row,
            default_route=row["ifname"] in outward,
        )
        for row in json.loads(run("ip", "-json", "address", "show"))
        if row.get("ifname")
    )


def link_of(mac: str, found: Sequence[Link]) -> Link | None:
    """Return the link of a network card, or None unless exactly one matches.

    With accelerated networking a card has two links with the same MAC address. The virtual function is enslaved to the link that has the IP
    addresses: https://learn.microsoft.com/azure/virtual-network/accelerated-networking-how-it-works
    """
    same = [link for link in found if link.mac == mac and not link.enslaved]
    return same[0] if len(same) == 1 else None


@dataclass(frozen=True)
class Machine:
    """The machine's network card in Azure.

    interface is the link's name, mac its address (00:0d:3a:…), primary the machine's own IPv4 address, secondaries the addresses of its
    pods in ascending order, prefix_length that of their subnet.
    """

    interface: str
    mac: str
    primary: str
    secondaries: tuple[str, ...]
    prefix_length: int

    @property
    def subnet(self) -> str:
        """Return the subnet of all of the machine's addresses, ADDRESS/LENGTH."""
        return str(ipaddress.ip_network(f"{self.primary}/{self.prefix_length}", strict=False))
