"""Which rules count what crosses the border between the machine and the internet, and how they are put in place without losing a count.

The four published rules stand as published (https://openai.com/index/scaling-kubernetes-to-7500-nodes/): whatever is not 10.0.0.0/8 is the
internet to them, loopback and Azure's own services included. What of that is none is counted again, by range, in chains of ours beside
them, to be subtracted. What is left in FORWARD is counted for each pod's address by two sets, one rule each, so that packets between
internal addresses pass four comparisons and no more, however many pods there are.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from cni.node import iptables
from cni.node.commands import run
from cni.node.errors import NodeNetworkError, shown
from cni.node.file_lock import locked
from cni.node.machine import Machine
from cni.node.settings import Settings

LOCK = Path("/run/gpufleet/accounting.lock")
LOCK_SECONDS = 15.0
TABLE = "mangle"
INTERNAL = "10.0.0.0/8"
HOOKS = (("INPUT", "in"), ("FORWARD", "in"), ("OUTPUT", "out"), ("FORWARD", "out"))
"""Where each direction is counted: INPUT and OUTPUT are the machine's own traffic, FORWARD its pods'."""
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
"""What the published rules count and the internet does not carry: https://www.rfc-editor.org/rfc/rfc6890, and Azure's own address,
https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""
SHAPING_COMMENT = "gpufleet shaping"
"""Comment of the rules that shaping keeps in our chains, to which packets between internal addresses do not come."""
_CREATE = "hash:ip family inet counters"


def _flag(direction: str) -> str:
    return "-d" if direction == "out" else "-s"


def chain(hook: str, direction: str) -> str:
    """Chain of ours that a hook's packets of one direction pass."""
    return f"GPUFLEET-{hook}-{direction.upper()}"


def published_rule(hook: str, direction: str) -> str:
    """One of the four published rules, as iptables lists it."""
    name = f"iptables-exporter openai traffic=internet-{direction}"
    return f'-A {hook} ! {_flag(direction)} {INTERNAL} -m comment --comment "{name}"'


def jump_rule(hook: str, direction: str) -> str:
    """The rule that leads what a published rule counts through our chain."""
    return f'-A {hook} ! {_flag(direction)} {INTERNAL} -m comment --comment "gpufleet accounting" -j {chain(hook, direction)}'


def pod_rule(direction: str) -> str:
    """The rule that counts for each pod's address."""
    name, side = SETS[direction]
    return f'-A {chain("FORWARD", direction)} -m set --match-set {name} {side} -m comment --comment "gpufleet pods"'


def subtraction_rule(hook: str, direction: str, name: str, network: str) -> str:
    """The rule that counts, and takes out, what goes to or comes from a range that is not the internet's."""
    comment = f"iptables-exporter gpufleet traffic=not-internet-{direction} range={name}"
    return f'-A {chain(hook, direction)} {_flag(direction)} {network} -m comment --comment "{comment}" -j RETURN'


ALWAYS = (*(rule(*hook) for hook in HOOKS for rule in (published_rule, jump_rule)), *(pod_rule(direction) for direction in SETS))
"""Rules without which a byte of the internet is not counted, whatever the machine's settings."""


def ranges(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Name and network of all that is subtracted: what no internet carries, and networks that the machine reaches by peering."""
    known = [ipaddress.ip_network(network) for network in (INTERNAL, *(network for _, network in RANGES))]
    given = [ipaddress.ip_network(network) for network in settings.not_masqueraded]
    peered = [one for one in given if isinstance(one, ipaddress.IPv4Network) and not any(_contained(one, range_) for range_ in known)]
    return RANGES + tuple((f"peered-{one}", str(one)) for one in ipaddress.collapse_addresses(peered))


def all_rules(settings: Settings) -> tuple[str, ...]:
    """Every rule, as iptables lists it; in a chain of ours the sets' rule is the last, so that it counts nothing that is subtracted."""
    takes_out = tuple(subtraction_rule(*hook, *row) for hook in HOOKS for row in reversed(ranges(settings)))
    return takes_out + ALWAYS


def table_changes(listing: str, rules: Iterable[str], present: frozenset[str] = frozenset()) -> list[str]:
    """Lines for iptables-restore that bring the listed table to hold every rule once, and that touch no rule which is right.

    listing is what `iptables -t mangle -S` prints; present are rules that are there although it prints them in other words.
    """
    rules, found = tuple(rules), [line for line in listing.splitlines() if line.startswith("-A ")]
    chains = {line.split()[1] for line in listing.splitlines() if line.startswith("-N ")}
    lines = [f":{name} - [0:0]" for name in _chains() if name not in chains]
    lines += [f"-D {name} {number}" for name, number in _surplus_rules(found, rules, keep_unknown=bool(present))]
    for rule in rules:
        if rule not in found and rule not in present:
            name = rule.split()[1]
            # A chain of ours is searched from its top; elsewhere a rule takes its place behind those of others.
            lines.append(f"-I {name} 1 {rule.split(' ', 2)[2]}" if rule.endswith("-j RETURN") else rule)
    return lines


def ensure(settings: Settings, machine: Machine) -> list[str]:
    """Put in place what is missing of sets, addresses in them, chains and rules; gives one line for each thing that was.

    CommandFailed where a program of the system refuses; Refused where another holds the lock, or a set of ours is of another kind.
    """
    with locked(LOCK, LOCK_SECONDS):
        return _ensure_sets(machine.secondaries) + _ensure_rules(settings)


def remove(_settings: Settings, _machine: Machine) -> None:
    """Take away every rule, chain and set of ours, and with them the counts."""
    with locked(LOCK, LOCK_SECONDS):
        listing = iptables.list_rules(TABLE)
        lines = [f"-D {line[3:]}" for line in listing if line in ALWAYS and line.split()[1] not in _chains()]
        chains = [name for name in _chains() if f"-N {name}" in listing]
        iptables.restore(TABLE, [*lines, *(f"-F {name}" for name in chains), *(f"-X {name}" for name in chains)])
        for name in _existing_sets():
            run("ipset", "destroy", name)


def _contained(one: ipaddress.IPv4Network, other: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    return isinstance(other, ipaddress.IPv4Network) and one.subnet_of(other)


def _chains() -> tuple[str, ...]:
    return tuple(chain(*hook) for hook in HOOKS)


def _surplus_rules(found: list[str], rules: tuple[str, ...], *, keep_unknown: bool) -> list[tuple[str, int]]:
    """Chain and number of each rule that stands twice or, in our chains, neither ours nor a guest; highest number first."""
    known, own, times, places, surplus = set(rules), _chains(), Counter[str](), Counter[str](), list[tuple[str, int]]()
    for line in found:
        name = line.split()[1]
        places[name] += 1
        times[line] += 1
        twice = line in known and times[line] > 1
        unknown = name in own and line not in known and f'"{GUEST}"' not in line
        if twice or (unknown and not keep_unknown):
            surplus.append((name, places[name]))
    return sorted(surplus, reverse=True)


def _ensure_rules(settings: Settings) -> list[str]:
    listing, rules = iptables.list_rules(TABLE), all_rules(settings)
    chains = {line[3:] for line in listing if line.startswith("-N ")} | {hook for hook, _ in HOOKS}
    lines = set(listing)
    doubtful = [rule for rule in rules if rule not in lines and rule.split()[1] in chains]
    # Another version of iptables may print a rule in other words than these, and would be given it again every time.
    present = frozenset(rule for rule in doubtful if iptables.has_rule(TABLE, rule)) if _has_rules(lines) else frozenset()
    todo = table_changes("\n".join(listing), rules, present)
    if todo:
        iptables.restore(TABLE, todo)
    return [f"mangle: {line}" for line in todo]


def _has_rules(lines: set[str]) -> bool:
    """Whether chains of ours hold rules, so that asking for each missing one is worth its time."""
    return any(line.startswith(f"-A {name} ") for line in lines for name in _chains())


def _existing_sets() -> list[str]:
    there = run("ipset", "list", "-name").split()
    return [name for name, _ in SETS.values() if name in there]


def _ensure_sets(addresses: tuple[str, ...]) -> list[str]:
    """Every address is in both sets from boot on: a counter that is added late or deleted early loses what passed meanwhile."""
    own, lines = _existing_sets(), list[str]()
    for name, _ in SETS.values():
        held = _set_addresses(name) if name in own else None
        if held is None:
            lines.append(f"create {name} {_CREATE}")
        lines += [f"add {name} {address}" for address in addresses if address not in (held or ())]
        lines += [f"del {name} {address}" for address in sorted((held or set()) - set(addresses))]
    if lines:
        run("ipset", "restore", "-exist", given="\n".join([*lines, ""]))
    return [f"ipset: {line}" for line in lines]


def _set_addresses(name: str) -> set[str]:
    """Addresses in a set; Refused for one that does not count."""
    create, *entries = run("ipset", "save", name).splitlines()
    if not create.startswith(f"create {name} hash:ip family inet ") or " counters" not in create:
        raise NodeNetworkError(f"ipset {name}", shown(create), _CREATE, f"remove whatever made it, then the set: ipset destroy {name}")
    return {entry.split()[2] for entry in entries}
