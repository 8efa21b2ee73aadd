"""Traffic shaping: each pod's share of the machine's internet rate.

A filter on the machine's link, and on each pod's link towards the pod, redirects internet packets to one of two intermediate devices, one
per direction. Internal packets bypass them. Each device has one HTB class per pod address. An ipset selects the class, because addresses
are translated before the packet reaches the link. All pod links share one block of filters, which a link joins in one step. Packets are
counted before they are shaped.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from cni.node import accounting, commands, nat
from cni.node.addresses import Holder
from cni.node.commands import CommandError, run
from cni.node.errors import NodeNetworkError
from cni.node.machine import Machine
from cni.node.routes import pod_links
from cni.node.settings import Settings, Shaping

KBIT = 1000
"""Kbit/s in one Mbit/s, as tc defines it."""

HOST_MINOR = 0x2
"""Minor number of the class of the machine's own traffic, and of unclassified packets."""

FIRST_MINOR = 0x10
"""Minor number of the first address."""

QUANTUM = 65_536
"""Bytes that the lowest weight sends per turn: the largest packet of segmentation offload. A turn is at least one packet, so a smaller
quantum would give all classes equal shares: https://man7.org/linux/man-pages/man8/tc-htb.8.html
"""

MOST_QUANTUM = 100 * QUANTUM
"""Quantum of the highest weight that a region file allows; with more, a turn would last longer than a connection waits."""

BURST_SECONDS = 0.002
"""A class may save the bytes of this time, because the kernel wakes it less exactly on a busy machine."""


@dataclass(frozen=True)
class Share:
    """One class: guaranteed rate and ceiling in Kbit/s, and bytes per turn when it borrows."""

    rate: int
    ceiling: int
    quantum: int

    @property
    def burst(self) -> int:
        """Return the bytes that the class may send at once at its ceiling."""
        return max(QUANTUM, int(self.ceiling * KBIT / 8 * BURST_SECONDS))


def minors(addresses: Sequence[str]) -> dict[str, int]:
    """Return the minor number of each address's class, in numerical order of the addresses."""
    ordered = sorted(addresses, key=lambda address: int(ipaddress.ip_address(address)))
    return {address: FIRST_MINOR + place for place, address in enumerate(ordered)}


def shares(shaping: Shaping, addresses: Sequence[str], holders: Mapping[str, Holder]) -> dict[int, Share]:
    """Return the share of every class by its minor number.

    If n classes demand more than they get, each gets floor + (machine - n * floor) * its weight / the weights of all n. The floor is
    lowered where the machine's rate does not suffice for all.
    """
    teams = {address: holders[address].team if address in holders else "" for address in addresses}
    weights = {minor: shaping.weights.get(teams[address], shaping.default_weight) for address, minor in minors(addresses).items()}
    weights[HOST_MINOR] = shaping.default_weight
    machine = shaping.machine_mbit * KBIT
    floor = max(1, min(shaping.floor_mbit * KBIT, machine // len(weights)))
    ceiling = max(floor, min(shaping.ceiling_mbit * KBIT, machine))
    least = min(weights.values())
    return {
        minor: Share(floor, machine if minor == HOST_MINOR else ceiling, min(QUANTUM * weight // least, MOST_QUANTUM))
        for minor, weight in sorted(weights.items())
    }


LOAD_WORD, TO_X, FROM_X, AND, JUMP_IF_EQUAL, RETURN = 0x20, 0x07, 0x87, 0x54, 0x15, 0x06

ETHERNET = 14
"""Bytes of the header before the IPv4 header, on a machine's card and on a pod's link."""

PASS, TAKE = 0, 0xFFFF_FFFF
"""Return values of the program for packets that the filter does not match, and for those that it matches."""

MOST_NETWORKS = 1000
"""The kernel accepts 4,096 instructions; a network takes four:
https://github.com/torvalds/linux/blob/v6.8/include/uapi/linux/bpf_common.h
"""


def filter_program(networks: Iterable[IPv4Network], offset: int) -> str:
    """Return a classic BPF program for tc that matches packets whose far address is outside of the networks.

    The form is "number of instructions,code jump-if-true jump-if-false constant,…". offset is the byte of the address in the IPv4 header.
    One program replaces one filter per network, because every packet of a link passes it.
    https://docs.kernel.org/networking/filter.html, https://man7.org/linux/man-pages/man8/tc-bpf.8.html
    NodeNetworkError for more than MOST_NETWORKS.
    """
    given = tuple(networks)
    if len(given) > MOST_NETWORKS:
        raise NodeNetworkError(
            "networks that are not shaped", str(len(given)), f"at most {MOST_NETWORKS}, the kernel's limit", "name fewer, larger ones"
        )
    program = [(LOAD_WORD, 0, 0, ETHERNET + offset), (TO_X, 0, 0, 0)]
    for one in given:
        program += [
            (FROM_X, 0, 0, 0),
            (AND, 0, 0, int(one.netmask)),
            (JUMP_IF_EQUAL, 0, 1, int(one.network_address)),
            (RETURN, 0, 0, PASS),
        ]
    program.append((RETURN, 0, 0, TAKE))
    return ",".join((str(len(program)), *(" ".join(map(str, instruction)) for instruction in program)))


SHAPING_SET = "gpufleet-shape"
COMMENT = accounting.SHAPING_COMMENT
ROOT = 0x1
QUEUE = 1000
"""Packets that a device queues where HTB has no class for them."""

PLATFORM = ("168.63.129.16/32", "169.254.0.0/16")
"""Azure's own addresses, which are not the internet:
https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""

LEAVES = (("fq_codel", "limit", "1024", "flows", "128"), ("pfifo", "limit", "128"))
"""Queues of a class: fair queueing of a pod's flows, or FIFO where the kernel lacks it."""

BYTECODE = re.compile(r"bytecode '([^']*)'")
OTHER_FILTER = re.compile(r"^filter (?!protocol ip pref 1 bpf )", re.MULTILINE)
"""A filter in one of the blocks that another program added."""
CLASS_LINE = re.compile(r"class htb 1:([0-9a-f]+) .*?(?:quantum (\d+) )?rate (\S+) ceil (\S+) ")
CHAIN_OF_RULE = re.compile(r"^-A (\S+) ")
UNITS = {"": 0.001, "K": 1, "M": 1_000, "G": 1_000_000, "T": 1_000_000_000}


@dataclass(frozen=True)
class Direction:
    """One direction: its device, its block of filters, and which address of a packet is the far one."""

    device: str
    block: int
    far: str

    @property
    def offset(self) -> int:
        """Byte of the far address in an IPv4 header: https://www.rfc-editor.org/rfc/rfc791#section-3.1."""
        return {"src": 12, "dst": 16}[self.far]


UP = Direction("gpufleet-up", 7701, "dst")
DOWN = Direction("gpufleet-down", 7702, "src")
DIRECTIONS = (UP, DOWN)


def ensure(settings: Settings, machine: Machine, holders: Mapping[str, Holder]) -> list[str]:
    """Put missing or changed parts in place, or remove all where the settings have no shaping; return one line per change.

    CommandError where a program of the system fails. NodeNetworkError where another program shapes a link.
    """
    if settings.shaping is None:
        return remove(machine)
    expected = shares(settings.shaping, machine.secondaries, holders)
    made = _ensure_set(machine.secondaries)
    for direction in DIRECTIONS:
        made += _ensure_device(direction)
        made += _ensure_classes(direction, expected, settings.shaping)
        made += _ensure_filters(direction, exempt_networks(settings))
    made += _ensure_links(machine)
    made += _ensure_rules(class_rules(machine.interface))
    return made + nat.ensure_limit(SHAPING_SET, exempt_networks(settings), settings.shaping.connections_per_pod)


def remove(_machine: Machine) -> list[str]:
    """Remove all parts of shaping; return one line per removed part. CommandError."""
    gone = _ensure_rules(()) + nat.remove_limit()
    blocks = _blocks()
    for direction in DIRECTIONS:
        for link in sorted(name for name, block in blocks.items() if block == direction.block and name != direction.device):
            if _on_link(link, "del", "dev", link, "clsact"):
                gone.append(f"tc: {link} is shaped no more")
        if _exists(direction.device):
            run("ip", "link", "del", direction.device)
            gone.append(f"device {direction.device} removed")
    if SHAPING_SET in run("ipset", "list", "-name").split():
        run("ipset", "destroy", SHAPING_SET)
        gone.append(f"ipset: {SHAPING_SET} removed")
    return gone


def exempt_networks(settings: Settings) -> list[str]:
    """Return networks that are not the internet: neither shaping nor the limit of connections applies to them."""
    given = [ipaddress.ip_network(one) for one in (*settings.internal, *settings.not_masqueraded, settings.service_cidr, *PLATFORM)]
    return [str(one) for one in ipaddress.collapse_addresses(one for one in given if isinstance(one, ipaddress.IPv4Network))]


def class_rules(interface: str) -> tuple[str, ...]:
    """Return the rules of the mangle table that set a packet's class, as iptables prints them.

    They are in accounting's chains, which packets between internal addresses do not pass: each rule costs a packet about 1 % of its path.
    """
    words = f'-m comment --comment "{COMMENT}"'
    return (
        f"-A {accounting.chain('FORWARD', 'in')} -i {interface} {words} -j SET --map-set {SHAPING_SET} dst --map-prio",
        f"-A {accounting.chain('FORWARD', 'out')} -o {interface} {words} -j SET --map-set {SHAPING_SET} src --map-prio",
    )


def _ensure_set(addresses: Sequence[str]) -> list[str]:
    expected = {address: f"1:{minor:x}" for address, minor in minors(addresses).items()}
    there = SHAPING_SET in run("ipset", "list", "-name").split()
    entries = [line.split() for line in run("ipset", "save", SHAPING_SET).splitlines() if line.startswith("add ")] if there else []
    present = {words[2]: words[-1] for words in entries}
    lines = [] if there else [f"create {SHAPING_SET} hash:ip family inet skbinfo"]
    lines += [f"del {SHAPING_SET} {address}" for address in present if address not in expected]
    lines += [f"add {SHAPING_SET} {address} skbprio {mark}" for address, mark in expected.items() if present.get(address) != mark]
    if lines:
        run("ipset", "restore", "-exist", given="\n".join([*lines, ""]))
    return [f"ipset: {line}" for line in lines]


def _ensure_device(direction: Direction) -> list[str]:
    """Ensure the device with an empty HTB and the block of filters, which would vanish with the last link that joined it."""
    made = []
    if not _exists(direction.device):
        run("ip", "link", "add", direction.device, "txqueuelen", str(QUEUE), "type", "ifb")
        made.append(f"device {direction.device}")
    listing = run("tc", "qdisc", "show", "dev", direction.device)
    if "qdisc htb 1: root" not in listing:
        run("tc", "qdisc", "replace", "dev", direction.device, "root", "handle", "1:", "htb", "default", f"{HOST_MINOR:x}")
        made.append(f"tc: HTB on {direction.device}")
    if _blocks().get(direction.device) != direction.block:
        run("tc", "qdisc", "add", "dev", direction.device, "ingress_block", str(direction.block), "clsact")
        made.append(f"tc: block {direction.block} of filters")
    if made:
        run("ip", "link", "set", direction.device, "up")
    return made


def _ensure_classes(direction: Direction, expected: Mapping[int, Share], shaping: Shaping) -> list[str]:
    listing = run("tc", "-d", "class", "show", "dev", direction.device)
    machine = shaping.machine_mbit * KBIT
    all_of_it = {ROOT: Share(machine, machine, 0), **expected}
    present = parse_classes(listing)
    lines = [f"class del dev {direction.device} classid 1:{minor:x}" for minor in present if minor not in all_of_it]
    for minor, share in all_of_it.items():
        if present.get(minor) != share:
            parent = "1:" if minor == ROOT else f"1:{ROOT:x}"
            lines.append(
                f"class replace dev {direction.device} parent {parent} classid 1:{minor:x} htb"
                f" rate {share.rate}kbit ceil {share.ceiling}kbit burst {share.burst} cburst {share.burst}"
                f" quantum {share.quantum or QUANTUM}"
            )
    _batch(lines)
    without = [minor for minor in expected if f"class htb 1:{minor:x} parent 1:{ROOT:x} leaf " not in listing]
    if without:
        kind = _leaf(direction.device, without[0])
        _batch([f"qdisc replace dev {direction.device} parent 1:{minor:x} {kind}" for minor in without[1:]])
    return [f"tc: {len(lines)} classes of {direction.device}"] if lines or without else []


def parse_classes(listing: str) -> dict[int, Share]:
    """Return classes by minor number from the output of `tc -d class show`, which omits the quantum of inner classes."""
    return {
        int(minor, 16): Share(_kbit(rate), _kbit(ceiling), int(quantum or 0))
        for minor, quantum, rate, ceiling in CLASS_LINE.findall(listing)
    }


def _kbit(printed: str) -> int:
    """Return the Kbit/s of a rate as tc prints it: 12345Kbit."""
    number, unit = printed[: -len("bit")].rstrip("KMGT"), printed[: -len("bit")].lstrip("0123456789.")
    return int(float(number) * UNITS[unit])


def _leaf(device: str, minor: int) -> str:
    """Give a class the best queue that the kernel has; return its kind."""
    for kind in LEAVES[:-1]:
        try:
            run("tc", "qdisc", "replace", "dev", device, "parent", f"1:{minor:x}", *kind)
        except CommandError as failed:
            if failed.status is None:
                raise
        else:
            return " ".join(kind)
    run("tc", "qdisc", "replace", "dev", device, "parent", f"1:{minor:x}", *LEAVES[-1])
    return " ".join(LEAVES[-1])


def _ensure_filters(direction: Direction, networks: Sequence[str]) -> list[str]:
    """Ensure the block's one filter, which redirects packets outside of these networks to the device; it changes in one step."""
    program = filter_program([ipaddress.IPv4Network(one) for one in networks], direction.offset)
    listing = run("tc", "filter", "show", "block", str(direction.block))
    if (
        BYTECODE.findall(listing) == [program]
        and f"(Egress Redirect to device {direction.device})" in listing
        and not OTHER_FILTER.search(listing)
    ):
        return []
    line = (
        f"block {direction.block} protocol ip pref 1 handle 1 bpf bytecode '{program}' action mirred egress redirect dev {direction.device}"
    )
    _batch([*([f"filter del block {direction.block}"] if OTHER_FILTER.search(listing) else []), f"filter replace {line}"])
    return [f"tc: a filter to {direction.device}"]


def _ensure_links(machine: Machine) -> list[str]:
    """Join the machine's link to the block of outgoing packets, and each pod's link to that of incoming packets."""
    expected = {machine.interface: UP.block}
    expected.update({link: DOWN.block for address, link in pod_links().items() if address in machine.secondaries})
    present, made = _blocks(), []
    for link, block in expected.items():
        if present.get(link) == block:
            continue
        if link in present:
            remedy = f"stop what made it, then: tc qdisc del dev {link} clsact"
            raise NodeNetworkError(f"link {link}", "it has a clsact qdisc of another program", "one for each link, ours", remedy)
        if _on_link(link, "add", "dev", link, "egress_block", str(block), "clsact"):
            made.append(f"tc: {link} is shaped")
    return made


def _on_link(link: str, *words: str) -> bool:
    """Change the qdiscs of a link; return False where the link vanished because its pod ended."""
    try:
        run("tc", "qdisc", *words)
    except CommandError:
        if _exists(link):
            raise
        return False
    return True


def _blocks() -> dict[str, int]:
    """Return the block of each link that has a clsact qdisc; 0 where it has no block."""
    found = {}
    for line in run("tc", "qdisc", "show").splitlines():
        if line.startswith("qdisc clsact "):
            words = line.split()
            block = next((words[words.index(word) + 1] for word in ("egress_block", "ingress_block") if word in words), "0")
            found[words[words.index("dev") + 1]] = int(block)
    return found


def _ensure_rules(expected: Sequence[str]) -> list[str]:
    """Replace this program's rules in one transaction where they differ from the expected ones."""
    present = [line for line in commands.list_rules("mangle") if f'"{COMMENT}"' in line]
    if present == list(expected) or (len(present) == len(expected) and all(commands.has_rule("mangle", line) for line in expected)):
        return []
    # First in their chains: accounting's own rules leave the chain.
    todo = [*(f"-D{line[2:]}" for line in present), *(CHAIN_OF_RULE.sub(r"-I \1 1 ", line) for line in expected)]
    commands.restore("mangle", todo)
    return [f"iptables: mangle: {line}" for line in todo]


def _exists(device: str) -> bool:
    return any(line.split(":")[1].strip().partition("@")[0] == device for line in run("ip", "-oneline", "link", "show").splitlines())


def _batch(lines: Iterable[str]) -> None:
    """Run several tc commands in one process."""
    if text := "".join(f"{line}\n" for line in lines):
        run("tc", "-batch", "-", given=text)
