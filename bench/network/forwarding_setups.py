"""Setups of the forwarding benchmark: nothing, the four published rules, all of accounting, or shaping too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cni.node.nat import MARK, PRIORITY
from cni.node.shaping import COMMENT, DOWN, UP
from tests.support.azure_network.machine import Machine

NOTHING = "nothing"
FOUR_RULES = "four rules"
COUNTED = "rules + ipset"
SHAPED = "rules + ipset + shaping"
SETUPS = (FOUR_RULES, COUNTED, SHAPED)

SHAPING: dict[str, Any] = {
    "machine_mbit": 30_000,
    "floor_mbit": 5,
    "ceiling_mbit": 30_000,
    "weights": {},
    "default_weight": 1,
    "connections_per_pod": 4000,
}
"""A rate that the machine does not reach, so that the cost of shaping is measured and not its limit."""

PUBLISHED = "iptables-exporter openai"
TABLES = ("mangle", "filter")
"""Without nat, whose rules only a connection's first packet passes."""


@dataclass
class Switch:
    """Switches a machine with the whole node program between the setups; a table changes in one transaction."""

    machine: Machine
    links: Sequence[str]
    tables: dict[str, list[str]] = field(init=False)
    shaped: bool = field(init=False, default=True)

    def __post_init__(self) -> None:
        self.tables = {table: self.machine.run("iptables-save", "-t", table).splitlines() for table in TABLES}

    def to(self, way: str) -> None:
        """Apply a setup."""
        self._attach(way == SHAPED)
        for table, lines in self.tables.items():
            selected = [line for line in lines if not line.startswith("-A ") or _applies(line, way)]
            self.machine.run("iptables-restore", "-T", table, given="\n".join((*selected, "")))

    def _attach(self, shaped: bool) -> None:
        if shaped == self.shaped:
            return
        rule = "add" if shaped else "del"
        self.machine.run("ip", "-4", "rule", rule, "priority", str(PRIORITY), "fwmark", MARK, "prohibit")
        for link in self.links:
            block = str((UP if link == "eth0" else DOWN).block)
            words = ("add", "dev", link, "egress_block", block, "clsact") if shaped else ("del", "dev", link, "clsact")
            self.machine.run("tc", "qdisc", *words)
        self.shaped = shaped


def _applies(rule: str, way: str) -> bool:
    if PUBLISHED in rule:
        return way != NOTHING
    if COMMENT in rule:
        return way == SHAPED
    return way in (COUNTED, SHAPED)
