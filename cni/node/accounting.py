"""Accounting rules of traffic between machine and internet, changed without losing a count.

The four published rules (https://openai.com/index/scaling-kubernetes-to-7500-nodes/) count everything outside of 10.0.0.0/8 as internet,
including loopback and Azure's own services. This program's chains count the part that is not internet again, by range, so that it can be
subtracted. Two sets with one rule each count the rest of FORWARD per pod address. Packets between internal addresses therefore pass four
comparisons, independent of the number of pods.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cni.node import commands
from cni.node.commands import run
from cni.node.errors import NodeNetworkError, shown
from cni.node.files import locked
from cni.node.machine import Machine
from cni.node.settings import Settings

LOCK = Path("/run/gpufleet/accounting.lock")
LOCK_SECONDS = 15.0
TABLE = "mangle"
INTERNAL = "10.0.0.0/8"
HOOKS = (("INPUT", "in"), ("FORWARD", "in"), ("OUTPUT", "out"), ("FORWARD", "out"))
"""Hooks that count each direction: INPUT and OUTPUT count the machine's own traffic, FORWARD that of its pods."""
SETS = {"out": ("gpufleet-out", "src"), "in": ("gpufleet-in", "dst")}
"""The set of each direction, and which address of a packet is the pod's."""
RANGES = (
    ("loopback", "127.0.0.0/8"),
    ("link-local", "169.254.0.0/16"),
    ("wireserver", "168.63.129.16/32"),
    ("private-172", "172.16.0.0/12"),
    ("private-192", "192.168.0.0/16"),
    ("shared", "100.64.0.0/10"),
    ("this-host", "0.0.0.0/8"),
    ("multicast", "224.0.0.0/4"),
    ("reserved", "240.0.0.0/4"),
)
"""Ranges that the published rules count and the internet does not carry: https://www.rfc-editor.org/rfc/rfc6890, and Azure's own
address, https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
"""
SHAPING_COMMENT = "gpufleet shaping"
"""Comment of shaping's rules in these chains, which packets between internal addresses do not pass."""
_CREATE = "hash:ip family inet counters"


def _flag(direction: str) -> str:
    return "-d" if direction == "out" else "-s"


def chain(hook: str, direction: str) -> str:
    """Return the name of the chain for a hook's packets of one direction."""
    return f"GPUFLEET-{hook}-{direction.upper()}"


def published_rule(hook: str, direction: str) -> str:
    """Return one of the four published rules, as iptables prints it."""
    name = f"iptables-exporter openai traffic=internet-{direction}"
    return f'-A {hook} ! {_flag(direction)} {INTERNAL} -m comment --comment "{name}"'


def jump_rule(hook: str, direction: str) -> str:
    """Return the rule that sends packets of a published rule through this program's chain."""
    return f'-A {hook} ! {_flag(direction)} {INTERNAL} -m comment --comment "gpufleet accounting" -j {chain(hook, direction)}'


def pod_rule(direction: str) -> str:
    """Return the rule that counts per pod address."""
    name, side = SETS[direction]
    return f'-A {chain("FORWARD", direction)} -m set --match-set {name} {side} -m comment --comment "gpufleet pods"'


def subtraction_rule(hook: str, direction: str, name: str, network: str) -> str:
    """Return the rule that counts and excludes packets to or from a range that is not the internet."""
    comment = f"iptables-exporter gpufleet traffic=not-internet-{direction} range={name}"
    return f'-A {chain(hook, direction)} {_flag(direction)} {network} -m comment --comment "{comment}" -j RETURN'


ALWAYS = (*(rule(*hook) for hook in HOOKS for rule in (published_rule, jump_rule)), *(pod_rule(direction) for direction in SETS))
"""Rules without which some internet traffic is not counted, whatever the machine's settings."""


def ranges(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return name and network of all ranges to subtract: reserved ones, and networks that the machine reaches by peering."""
    known = [ipaddress.ip_network(network) for network in (INTERNAL, *(network for _, network in RANGES))]
    given = [ipaddress.ip_network(network) for network in settings.not_masqueraded]
    peered = [one for one in given if isinstance(one, ipaddress.IPv4Network) and not any(_contained(one, range_) for range_ in known)]
    return RANGES + tuple((f"peered-{one}", str(one)) for one in ipaddress.collapse_addresses(peered))


def all_rules(settings: Settings) -> tuple[str, ...]:
    """Return every rule as iptables prints it; the sets' rule is the last of its chain, so that it does not count subtracted packets."""
    takes_out = tuple(subtraction_rule(*hook, *row) for hook in HOOKS for row in reversed(ranges(settings)))
    return takes_out + ALWAYS


def table_changes(listing: str, rules: Iterable[str], present: frozenset[str] = frozenset()) -> list[str]:
    """Return lines for iptables-restore after which the listed table has every rule once; correct rules are not touched.

    listing is the output of `iptables -t mangle -S`. present are rules that exist although iptables prints them differently.
    """
    rules, found = tuple(rules), [line for line in listing.splitlines() if line.startswith("-A ")]
    chains = {line.split()[1] for line in listing.splitlines() if line.startswith("-N ")}
    lines = [f":{name} - [0:0]" for name in _chains() if name not in chains]
    lines += [f"-D {name} {number}" for name, number in _surplus_rules(found, rules, keep_unknown=bool(present))]
    for rule in rules:
        if rule not in found and rule not in present:
            name = rule.split()[1]
            # In this program's chains a rule is inserted at the top; elsewhere it is appended.
            lines.append(f"-I {name} 1 {rule.split(' ', 2)[2]}" if rule.endswith("-j RETURN") else rule)
    return lines


def ensure(settings: Settings, machine: Machine) -> list[str]:
    """Put missing sets, addresses, chains and rules in place; return one line per change.

    CommandError where a program of the system fails. NodeNetworkError where another process holds the lock, or a set has another type.
    """
    with locked(LOCK, LOCK_SECONDS):
        return _ensure_sets(machine.secondaries) + _ensure_rules(settings)


def remove(_settings: Settings, _machine: Machine) -> None:
    """Remove all rules, chains and sets of this program, and with them the counts."""
    with locked(LOCK, LOCK_SECONDS):
        listing = commands.list_rules(TABLE)
        lines = [f"-D {line[3:]}" for line in listing if line in ALWAYS and line.split()[1] not in _chains()]
        chains = [name for name in _chains() if f"-N {name}" in listing]
        commands.restore(TABLE, [*lines, *(f"-F {name}" for name in chains), *(f"-X {name}" for name in chains)])
        for name in _existing_sets():
            run("ipset", "destroy", name)


def _contained(one: ipaddress.IPv4Network, other: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return isinstance(other, ipaddress.IPv4Network) and one.subnet_of(other)


def _chains() -> tuple[str, ...]:
    return tuple(chain(*hook) for hook in HOOKS)


def _surplus_rules(found: list[str], rules: tuple[str, ...], *, keep_unknown: bool) -> list[tuple[str, int]]:
    """Return chain and number of duplicate rules, and of unknown rules in this program's chains; highest number first."""
    known, own, times, places, surplus = set(rules), _chains(), Counter[str](), Counter[str](), list[tuple[str, int]]()
    for line in found:
        name = line.split()[1]
        places[name] += 1
        times[line] += 1
        twice = line in known and times[line] > 1
        unknown = name in own and line not in known and f'"{SHAPING_COMMENT}"' not in line
        if twice or (unknown and not keep_unknown):
            surplus.append((name, places[name]))
    return sorted(surplus, reverse=True)


def _ensure_rules(settings: Settings) -> list[str]:
    listing, rules = commands.list_rules(TABLE), all_rules(settings)
    chains = {line[3:] for line in listing if line.startswith("-N ")} | {hook for hook, _ in HOOKS}
    lines = set(listing)
    doubtful = [rule for rule in rules if rule not in lines and rule.split()[1] in chains]
    # Another version of iptables may print a rule differently, and would otherwise get it again in every pass.
    present = frozenset(rule for rule in doubtful if commands.has_rule(TABLE, rule)) if _has_rules(lines) else frozenset()
    todo = table_changes("\n".join(listing), rules, present)
    if todo:
        commands.restore(TABLE, todo)
    return [f"mangle: {line}" for line in todo]


def _has_rules(lines: set[str]) -> bool:
    """Return whether this program's chains contain rules, so that checking each missing rule is worth its time."""
    return any(line.startswith(f"-A {name} ") for line in lines for name in _chains())


def _existing_sets() -> list[str]:
    there = run("ipset", "list", "-name").split()
    return [name for name, _ in SETS.values() if name in there]


def _ensure_sets(addresses: tuple[str, ...]) -> list[str]:
    """Ensure both sets with every address from boot on: a counter that is added late or deleted early loses traffic."""
    own, lines = _existing_sets(), list[str]()
    for name, _ in SETS.values():
        present = _set_addresses(name) if name in own else None
        if present is None:
            lines.append(f"create {name} {_CREATE}")
        lines += [f"add {name} {address}" for address in addresses if address not in (present or ())]
        lines += [f"del {name} {address}" for address in sorted((present or set()) - set(addresses))]
    if lines:
        run("ipset", "restore", "-exist", given="\n".join([*lines, ""]))
    return [f"ipset: {line}" for line in lines]


def _set_addresses(name: str) -> set[str]:
    """Return the addresses in a set; NodeNetworkError if it does not count."""
    create, *entries = run("ipset", "save", name).splitlines()
    if not create.startswith(f"create {name} hash:ip family inet ") or " counters" not in create:
        raise NodeNetworkError(f"ipset {name}", shown(create), _CREATE, f"remove whatever made it, then the set: ipset destroy {name}")
    return {entry.split()[2] for entry in entries}
