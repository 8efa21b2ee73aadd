"""How many connections to the internet a pod may have: which is the first too many, and how it is refused.

Each takes a port of the machine's address, and of the NAT gateway's, which the whole network shares:
https://learn.microsoft.com/azure/nat-gateway/nat-gateway-snat. The limit stands in the table that only a connection's first packet passes,
so it costs all later ones nothing; that table can refuse nothing itself, so it marks the packet, and a rule of routing refuses what is
marked, at once and with an answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from cni.node import iptables
from cni.node.commands import CommandError, run

LIMIT_CHAIN = "GPUFLEET-CONNECTIONS"
JUMP = f"-A PREROUTING -j {CHAIN}"

MARK = "0x1000000/0x1000000"
"""A bit that kube-proxy, with 0x4000 and 0x8000, does not use: https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/."""

PRIORITY = 102
"""Of the rule of routing, behind those that close Azure's own addresses and before the tables."""


def limit_rules(pods: str, passing: Sequence[str], most: int) -> list[str]:
    """Rules of the chain as iptables lists them: networks to which nothing is limited, then the limit for each address of a set."""
    limit = (
        f"-A {CHAIN} -m set --match-set {pods} src -m connlimit --connlimit-above {most} --connlimit-mask 32 --connlimit-saddr"
        f" -j MARK --set-xmark {MARK}"
    )
    return [*(f"-A {CHAIN} -d {network} -j RETURN" for network in passing), limit]


def ensure_limit(pods: str, passing: Sequence[str], most: int) -> list[str]:
    """Has chain, jump and rule of routing in place; one line for each that was not. CommandFailed."""
    made, wanted = list[str](), limit_rules(pods, passing, most)
    if not _has_refusal():
        run("ip", "-4", "rule", "add", "priority", str(PRIORITY), "fwmark", MARK, "prohibit")
        made.append("rule of routing: what is marked is prohibited")
    standing = [line for line in iptables.list_rules("nat", "PREROUTING") if line.endswith(f" -j {CHAIN}")]
    chain = [line for line in _chain() if line.startswith("-A ")]
    whole = chain == wanted or (len(chain) == len(wanted) and all(iptables.has_rule("nat", line) for line in wanted))
    if not whole or standing != [JUMP]:
        # One transaction, which empties the chain first and counts connections anew.
        iptables.restore("nat", [f":{CHAIN} - [0:0]", *wanted, *(f"-D{line[2:]}" for line in standing), f"-I PREROUTING 1 -j {CHAIN}"])
        made.append(f"iptables: {most} connections to the internet for each pod")
    return made


def remove_limit() -> list[str]:
    """Takes all of it away; one line for each thing that was there. CommandFailed."""
    gone = [f"iptables: {CHAIN} removed"] if iptables.remove_chain("nat", LIMIT_CHAIN) else []
    if _has_refusal():
        run("ip", "-4", "rule", "del", "priority", str(PRIORITY), "fwmark", MARK, "prohibit")
        gone.append("rule of routing removed")
    return gone


def _chain() -> list[str]:
    """The chain's lines, none where it is not there."""
    try:
        return iptables.list_rules("nat", LIMIT_CHAIN)
    except CommandError as failed:
        if failed.status is None:
            raise
        return []


def _has_refusal() -> bool:
    rows = json.loads(run("ip", "-json", "-4", "rule", "show", "priority", str(PRIORITY)) or "[]")
    value, _, mask = MARK.partition("/")
    return any(row.get("fwmark") == value and row.get("fwmask") == mask and row.get("action") == "prohibit" for row in rows)
