"""Reads what the kernel has counted: the rules of the mangle table that carry the exporter's mark, and the sets of pods' addresses.

The mark is a comment that begins `iptables-exporter `, as https://github.com/madron/iptables-exporter has it. That program reads the older
of iptables' two backends alone and says nothing of rules in the newer; the output of iptables-save has one form in both.
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
"""Tables of the older backend in this network namespace; asking that backend for one that is not there would make it."""
SHAPING_SET = "gpufleet-shape"
_LINE = re.compile(r"\[(\d+):(\d+)\] (-A (\S+) .*)")
_MARK = re.compile(r'--comment "iptables-exporter ([^"]+)"')
_ENTRY = re.compile(r"add (\S+) (\S+) packets \d+ bytes (\d+)")


class CounterReadError(Exception):
    """A program of the system did not tell the counts; the message says which, and its last words."""


@dataclass(frozen=True)
class Rules:
    """Counts of marked rules as (packets, bytes) by chain and name, rules by chain, and what must be there and is not."""

    counts: Mapping[tuple[str, str], tuple[int, int]]
    by_chain: Mapping[str, int]
    missing: frozenset[str]


@dataclass(frozen=True)
class Sets:
    """Bytes by direction and pod's address; a direction whose set is not there is not in it. shaped says whether shaping is on."""

    bytes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    shaped: bool = False


def parse_rules(text: str) -> Rules:
    """Counts of what `iptables-save -c -t mangle` prints; of a rule that stands twice the first counts, for both count the same packets."""
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
    """Counts of what `ipset save` prints."""
    names = {name: direction for direction, (name, _) in SETS.items()}
    found: dict[str, dict[str, int]] = {direction: {} for name, direction in names.items() if f"\ncreate {name} " in f"\n{text}"}
    for entry in _ENTRY.finditer(text):
        if entry[1] in names:
            found[names[entry[1]]][entry[2]] = int(entry[3])
    return Sets(found, f"\ncreate {SHAPING_SET} " in f"\n{text}")


class Kernel:
    """Asks the kernel by iptables-save and ipset, both at once; remembers in which backend the rules were found."""

    def __init__(self) -> None:
        self._legacy = False

    def both(self) -> tuple[Rules, Sets]:
        """Rules and sets; Unreadable where either is not told."""
        asked_sets, asked_rules = _start("ipset", "save"), self._ask_rules()
        sets, rules = parse_sets(_told(asked_sets)), parse_rules(_told(asked_rules))
        if len(rules.missing) == len(ALWAYS) and (other := self._other_backend()):
            self._legacy = other == "legacy"
            rules = parse_rules(_told(self._ask_rules()))
        return rules, sets

    def sets(self) -> Sets:
        """Sets alone; Unreadable where they are not told."""
        return parse_sets(_told(_start("ipset", "save")))

    def _other_backend(self) -> str | None:
        """The backend that was not asked and may hold the rules."""
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


def _told(asked: subprocess.Popen[str]) -> str:
    with asked:
        try:
            said, wrong = asked.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            asked.kill()
            raise CounterReadError(f"{asked.args!r} gave no answer within {SECONDS:.0f} s") from None
    if asked.returncode:
        raise CounterReadError(f"{asked.args!r} ended with status {asked.returncode}: {' '.join(wrong.split())[-300:]}")
    return said
