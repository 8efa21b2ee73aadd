"""Counters of the kernel: marked rules of the mangle table, sets of pods' addresses, and totals over resets.

The mark is a comment that begins with `iptables-exporter `, as in https://github.com/madron/iptables-exporter. That program reads only the
older of iptables' two backends and ignores rules in the newer one. The output of iptables-save has one form in both.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cni.node.accounting import ALWAYS, SETS

SECONDS = 5.0
LEGACY_TABLES = Path("/proc/net/ip_tables_names")
"""Tables of the older backend in this network namespace; a query of a missing table would create it."""
SHAPING_SET = "gpufleet-shape"
_LINE = re.compile(r"\[(\d+):(\d+)\] (-A (\S+) .*)")
_MARK = re.compile(r'--comment "iptables-exporter ([^"]+)"')
_ENTRY = re.compile(r"add (\S+) (\S+) packets \d+ bytes (\d+)")


class CounterReadError(Exception):
    """A program of the system did not tell the counts; the message says which, and its last words."""


@dataclass(frozen=True)
class Rules:
    """Counts of marked rules as (packets, bytes) by chain and name, rules by chain, and missing rules."""

    counts: Mapping[tuple[str, str], tuple[int, int]]
    by_chain: Mapping[str, int]
    missing: frozenset[str]


@dataclass(frozen=True)
class Sets:
    """Bytes by direction and pod's address, without directions whose set does not exist. shaped is whether shaping is on."""

    bytes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    shaped: bool = False


def parse_rules(text: str) -> Rules:
    """Return the counts in the output of `iptables-save -c -t mangle`; of duplicate rules the first counts."""
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    by_chain: Counter[str] = Counter()
    missing = set(ALWAYS)
    for line in text.splitlines():
        if not (found := _LINE.match(line)):
            continue
        packets, octets, rule, chain = found.groups()
        by_chain[chain.lower()] += 1
        missing.discard(rule)
        if mark := _MARK.search(rule):
            counts.setdefault((chain.lower(), mark[1]), (int(packets), int(octets)))
    return Rules(counts, dict(by_chain), frozenset(missing))


def parse_sets(text: str) -> Sets:
    """Return the counts in the output of `ipset save`."""
    names = {name: direction for direction, (name, _) in SETS.items()}
    found: dict[str, dict[str, int]] = {direction: {} for name, direction in names.items() if f"\ncreate {name} " in f"\n{text}"}
    for entry in _ENTRY.finditer(text):
        if entry[1] in names:
            found[names[entry[1]]][entry[2]] = int(entry[3])
    return Sets(found, f"\ncreate {SHAPING_SET} " in f"\n{text}")


class Kernel:
    """Reads the kernel's counters by iptables-save and ipset in parallel, and remembers the backend that has the rules."""

    def __init__(self) -> None:
        self._legacy = False

    def both(self) -> tuple[Rules, Sets]:
        """Return rules and sets; raise where either cannot be read."""
        asked_sets, asked_rules = _start("ipset", "save"), self._ask_rules()
        sets, rules = parse_sets(_output(asked_sets)), parse_rules(_output(asked_rules))
        if len(rules.missing) == len(ALWAYS) and (other := self._other_backend()):
            self._legacy = other == "legacy"
            rules = parse_rules(_output(self._ask_rules()))
        return rules, sets

    def sets(self) -> Sets:
        """Return the sets only; raise where they cannot be read."""
        return parse_sets(_output(_start("ipset", "save")))

    def _other_backend(self) -> str | None:
        """Return the other backend if it may have the rules."""
        if self._legacy:
            return "nft"
        try:
            return "legacy" if "mangle" in LEGACY_TABLES.read_text().split() else None
        except OSError:
            return None

    def _ask_rules(self) -> subprocess.Popen[str]:
        return _start(f"iptables-{'legacy' if self._legacy else 'nft'}-save", "-c", "-t", "mangle")


def _start(*words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(  # noqa: S603 - words of this module
            words, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True, errors="replace"
        )
    except OSError as error:
        raise CounterReadError(f"{words[0]}: {error.strerror or error}; install it, or put its folder on PATH") from None


def _output(process: subprocess.Popen[str]) -> str:
    with process:
        try:
            said, wrong = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            raise CounterReadError(f"{process.args!r} gave no answer within {SECONDS:.0f} s") from None
    if process.returncode:
        raise CounterReadError(f"{process.args!r} ended with status {process.returncode}: {' '.join(wrong.split())[-300:]}")
    return said


Counts = tuple[int, int]
"""Packets and bytes."""


class RuleTotals:
    """Counts of every marked rule by chain and name, since the exporter first saw it."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], Counts] = {}
        self.total: dict[tuple[str, str], Counts] = {}
        self.resets = 0

    def count(self, counts: Mapping[tuple[str, str], Counts]) -> None:
        """Add the increase of each rule's counter; a counter that is smaller than before was reset, and its whole value is added.

        A deleted rule retains its total, and starts at 0 when it exists again.
        """
        for rule, now in counts.items():
            last = self.seen.get(rule, (0, 0))
            if now[0] < last[0] or now[1] < last[1]:
                self.resets += 1
                last = (0, 0)
            total = self.total.get(rule, (0, 0))
            self.total[rule] = (total[0] + now[0] - last[0], total[1] + now[1] - last[1])
            self.seen[rule] = now
