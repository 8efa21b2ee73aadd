"""Under which address pods' packets leave for the internet: the machine's own, the only one that Azure translates for certain."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from cni.node import iptables
from cni.node.machine import Machine

SNAT_CHAIN = "GPUFLEET-SNAT"


def snat_rules(machine: Machine, not_masqueraded: Sequence[str]) -> list[str]:
    """Rules of the chain as iptables prints them: networks of not_masqueraded and the machine's own packets keep their source.

    Azure translates a card's primary address only: https://github.com/Azure/azure-container-networking/issues/93
    """
    kept = [network for network in map(ipaddress.ip_network, not_masqueraded) if network.version == 4]
    return [
        f"-A {CHAIN} -s {machine.primary}/32 -j RETURN",
        *(f"-A {CHAIN} -d {network} -j RETURN" if network.prefixlen else f"-A {CHAIN} -j RETURN" for network in kept),
        # Ports drawn at random: two new connections of one moment would else take the same, and one of them be dropped.
        f"-A {CHAIN} -j SNAT --to-source {machine.primary} --random-fully",
    ]


def ensure_snat(machine: Machine, not_masqueraded: Sequence[str]) -> list[str]:
    """Has the chain, and one jump to it for what leaves by the machine's link; a line where they had to be put in place."""
    chain, wanted = [f"-N {CHAIN}", *snat_rules(machine, not_masqueraded)], f"-A POSTROUTING -o {machine.interface} -j {CHAIN}"
    standing = iptables.list_rules("nat")
    jumps = [line for line in standing if line.startswith("-A POSTROUTING ") and line.endswith(f" -j {CHAIN}")]
    if [line for line in standing if line.split()[1] == SNAT_CHAIN] == chain and jumps == [wanted]:
        return []
    # One transaction, which empties the chain first: no packet ever sees half of it.
    iptables.restore("nat", [f":{CHAIN} - [0:0]", *chain[1:], *(f"-D{line[2:]}" for line in jumps), wanted])
    return [f"iptables: packets of pods leave {machine.interface} as {machine.primary}"]


def remove_snat() -> list[str]:
    """Takes the chain and every jump to it away; a line where it was there."""
    return [f"iptables: {CHAIN} removed"] if iptables.remove_chain("nat", SNAT_CHAIN) else []
