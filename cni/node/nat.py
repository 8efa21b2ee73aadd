"""NAT rules of pods: source address of outgoing packets, and limit of connections to the internet.

Each connection uses a port of the machine's address and of the NAT gateway, which the whole network shares:
https://learn.microsoft.com/azure/nat-gateway/nat-gateway-snat. Only the first packet of a connection passes the nat table, so the limit
costs later packets nothing. That table cannot reject packets. The rule therefore marks the packet, and a routing rule rejects marked
packets at once with an error.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence

from cni.node import commands
from cni.node.commands import CommandError, run
from cni.node.machine import Machine

SNAT_CHAIN = "GPUFLEET-SNAT"


def snat_rules(machine: Machine, not_masqueraded: Sequence[str]) -> list[str]:
    """Return the rules of the chain as iptables prints them: packets to not_masqueraded and of the machine itself keep their source.

    Azure translates a card's primary address only: https://github.com/Azure/azure-container-networking/issues/93
    """
    networks = [network for network in map(ipaddress.ip_network, not_masqueraded) if network.version == 4]
    return [
        f"-A {SNAT_CHAIN} -s {machine.primary}/32 -j RETURN",
        *(f"-A {SNAT_CHAIN} -d {network} -j RETURN" if network.prefixlen else f"-A {SNAT_CHAIN} -j RETURN" for network in networks),
        # Random ports: otherwise two simultaneous connections would take the same port, and one would be dropped.
        f"-A {SNAT_CHAIN} -j SNAT --to-source {machine.primary} --random-fully",
    ]


def ensure_snat(machine: Machine, not_masqueraded: Sequence[str]) -> list[str]:
    """Ensure the chain and one jump to it for packets that leave by the machine's link; return one line if they changed."""
    chain, expected = [f"-N {SNAT_CHAIN}", *snat_rules(machine, not_masqueraded)], f"-A POSTROUTING -o {machine.interface} -j {SNAT_CHAIN}"
    present = commands.list_rules("nat")
    jumps = [line for line in present if line.startswith("-A POSTROUTING ") and line.endswith(f" -j {SNAT_CHAIN}")]
    if [line for line in present if line.split()[1] == SNAT_CHAIN] == chain and jumps == [expected]:
        return []
    # One transaction, which empties the chain first: no packet sees a partial chain.
    commands.restore("nat", [f":{SNAT_CHAIN} - [0:0]", *chain[1:], *(f"-D{line[2:]}" for line in jumps), expected])
    return [f"iptables: packets of pods leave {machine.interface} as {machine.primary}"]


def remove_snat() -> list[str]:
    """Remove the chain and every jump to it; return one line if it existed."""
    return [f"iptables: {SNAT_CHAIN} removed"] if commands.remove_chain("nat", SNAT_CHAIN) else []


LIMIT_CHAIN = "GPUFLEET-CONNECTIONS"
JUMP = f"-A PREROUTING -j {LIMIT_CHAIN}"

MARK = "0x1000000/0x1000000"
"""A bit that kube-proxy, with 0x4000 and 0x8000, does not use:
https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/.
"""

PRIORITY = 102
"""Priority of the routing rule: after those that block Azure's own addresses and before the tables."""


def limit_rules(pods: str, passing: Sequence[str], most: int) -> list[str]:
    """Return the rules of the chain as iptables prints them: exempt networks, then the limit for each address of a set."""
    limit = (
        f"-A {LIMIT_CHAIN} -m set --match-set {pods} src -m connlimit --connlimit-above {most} --connlimit-mask 32 --connlimit-saddr"
        f" -j MARK --set-xmark {MARK}"
    )
    return [*(f"-A {LIMIT_CHAIN} -d {network} -j RETURN" for network in passing), limit]


def ensure_limit(pods: str, passing: Sequence[str], most: int) -> list[str]:
    """Ensure chain, jump and routing rule; return one line per change. CommandError."""
    made, expected = list[str](), limit_rules(pods, passing, most)
    if not _has_refusal():
        run("ip", "-4", "rule", "add", "priority", str(PRIORITY), "fwmark", MARK, "prohibit")
        made.append("rule of routing: what is marked is prohibited")
    present = [line for line in commands.list_rules("nat", "PREROUTING") if line.endswith(f" -j {LIMIT_CHAIN}")]
    chain = [line for line in _chain() if line.startswith("-A ")]
    whole = chain == expected or (len(chain) == len(expected) and all(commands.has_rule("nat", line) for line in expected))
    if not whole or present != [JUMP]:
        # One transaction, which empties the chain first and restarts the count of connections.
        commands.restore(
            "nat", [f":{LIMIT_CHAIN} - [0:0]", *expected, *(f"-D{line[2:]}" for line in present), f"-I PREROUTING 1 -j {LIMIT_CHAIN}"]
        )
        made.append(f"iptables: {most} connections to the internet for each pod")
    return made


def remove_limit() -> list[str]:
    """Remove chain, jump and routing rule; return one line per removed part. CommandError."""
    gone = [f"iptables: {LIMIT_CHAIN} removed"] if commands.remove_chain("nat", LIMIT_CHAIN) else []
    if _has_refusal():
        run("ip", "-4", "rule", "del", "priority", str(PRIORITY), "fwmark", MARK, "prohibit")
        gone.append("rule of routing removed")
    return gone


def _chain() -> list[str]:
    """Return the chain's lines; none where it does not exist."""
    try:
        return commands.list_rules("nat", LIMIT_CHAIN)
    except CommandError as failed:
        if failed.status is None:
            raise
        return []


def _has_refusal() -> bool:
    rows = json.loads(run("ip", "-json", "-4", "rule", "show", "priority", str(PRIORITY)) or "[]")
    value, _, mask = MARK.partition("/")
    return any(row.get("fwmark") == value and row.get("fwmask") == mask and row.get("action") == "prohibit" for row in rows)
