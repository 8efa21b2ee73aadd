"""Which network links the machine has, and which of them a network card of Azure's is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from cni.node.commands import run


@dataclass(frozen=True)
class Link:
    """A network link: mac is lower case with colons, mtu in bytes, addresses are IPv4; is it enslaved, has it a default route."""

    name: str
    mac: str
    mtu: int
    addresses: tuple[str, ...]
    enslaved: bool
    default_route: bool


def list_links() -> tuple[Link, ...]:
    """The links of this network namespace; CommandFailed where ip cannot say."""
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
    """The link of a network card, or None where not exactly one is.

    With accelerated networking a card has two links of one address, of which the virtual function is enslaved to the one that carries the
    addresses: https://learn.microsoft.com/azure/virtual-network/accelerated-networking-how-it-works
    """
    same = [link for link in found if link.mac == mac and not link.enslaved]
    return same[0] if len(same) == 1 else None
