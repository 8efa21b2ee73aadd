"""How the machine's internet rate is shared among its pods: which packets pass a shaper, in which class, and how that is put in place.

What leaves by the machine's link, or by a pod's towards the pod, passes a filter there: internal packets go on as they are, all others
through one of two intermediate devices, one for each direction, with a class of HTB for each pod's address. The class comes from a set, as
an address is translated before the link is reached. One filter stands in a block for all links of pods, which a link joins in one step.
Packets are counted before they are shaped.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cni.node import accounting, connections, iptables
from cni.node.address_holders import Holder
from cni.node.bpf_filter import filter_program
from cni.node.commands import CommandError, run
from cni.node.errors import NodeNetworkError
from cni.node.htb_classes import HOST_MINOR, KBIT, QUANTUM, Share, minors, shares
from cni.node.machine import Machine
from cni.node.routes import pod_links
from cni.node.settings import Settings, Shaping

SHAPING_SET = "gpufleet-shape"
COMMENT = accounting.SHAPING_COMMENT
ROOT = 0x1
QUEUE = 1000
"""Packets that wait on a device where HTB has no class for them."""

PLATFORM = ("168.63.129.16/32", "169.254.0.0/16")
"""Azure's own addresses, which are not the internet:
https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""

LEAVES = (("fq_codel", "limit", "1024", "flows", "128"), ("pfifo", "limit", "128"))
"""What queues a class's packets: flows of one pod beside each other, or in their order where the kernel has nothing better."""

BYTECODE = re.compile(r"bytecode '([^']*)'")
OTHER_FILTER = re.compile(r"^filter (?!protocol ip pref 1 bpf )", re.MULTILINE)
"""A filter in one of the blocks that is not the one of this program."""
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
        """Where the far address stands in an IPv4 header, https://www.rfc-editor.org/rfc/rfc791#section-3.1."""
        return {"src": 12, "dst": 16}[self.far]


UP = Direction("gpufleet-up", 7701, "dst")
DOWN = Direction("gpufleet-down", 7702, "src")
DIRECTIONS = (UP, DOWN)


def ensure(settings: Settings, machine: Machine, holders: Mapping[str, Holder]) -> list[str]:
    """Put in place what is missing or differs, or take all away where settings say nothing of shaping; one line for each thing changed.

    CommandFailed where a program of the system refuses; Refused where a link is shaped by another program.
    """
    if settings.shaping is None:
        return remove(machine)
    wanted = shares(settings.shaping, machine.secondaries, holders)
    made = _ensure_set(machine.secondaries)
    for way in DIRECTIONS:
        made += _ensure_device(way)
        made += _ensure_classes(way, wanted, settings.shaping)
        made += _ensure_filters(way, exempt_networks(settings))
    made += _ensure_links(machine)
    made += _ensure_rules(class_rules(machine.interface))
    return made + connections.ensure_limit(SHAPING_SET, exempt_networks(settings), settings.shaping.connections_per_pod)


def remove(_machine: Machine) -> list[str]:
    """Take all of it away; one line for each thing that was there. CommandFailed."""
    gone = _ensure_rules(()) + connections.remove_limit()
    blocks = _blocks()
    for way in DIRECTIONS:
        for link in sorted(name for name, block in blocks.items() if block == way.block and name != way.device):
            if _on_link(link, "del", "dev", link, "clsact"):
                gone.append(f"tc: {link} is shaped no more")
        if _exists(way.device):
            run("ip", "link", "del", way.device)
            gone.append(f"device {way.device} removed")
    if SHAPING_SET in run("ipset", "list", "-name").split():
        run("ipset", "destroy", SHAPING_SET)
        gone.append(f"ipset: {SET} removed")
    return gone


def exempt_networks(settings: Settings) -> list[str]:
    """Networks that are not the internet: no shaper sees their packets, and connections to them are not limited."""
    given = [ipaddress.ip_network(one) for one in (*settings.internal, *settings.not_masqueraded, settings.service_cidr, *PLATFORM)]
    return [str(one) for one in ipaddress.collapse_addresses(one for one in given if isinstance(one, ipaddress.IPv4Network))]


def class_rules(interface: str) -> tuple[str, ...]:
    """Rules of mangle that give a packet its class, as iptables lists them.

    They stand in accounting's chains, where no packet between internal addresses comes: each rule that it passes costs it about a hundredth
    of its way.
    """
    words = f'-m comment --comment "{COMMENT}"'
    return (
        f"-A {accounting.chain('FORWARD', 'in')} -i {interface} {words} -j SET --map-set {SET} dst --map-prio",
        f"-A {accounting.chain('FORWARD', 'out')} -o {interface} {words} -j SET --map-set {SET} src --map-prio",
    )


def _ensure_set(addresses: Sequence[str]) -> list[str]:
    wanted = {address: f"1:{minor:x}" for address, minor in minors(addresses).items()}
    there = SHAPING_SET in run("ipset", "list", "-name").split()
    entries = [line.split() for line in run("ipset", "save", SHAPING_SET).splitlines() if line.startswith("add ")] if there else []
    held = {words[2]: words[-1] for words in entries}
    lines = [] if there else [f"create {SET} hash:ip family inet skbinfo"]
    lines += [f"del {SET} {address}" for address in held if address not in wanted]
    lines += [f"add {SET} {address} skbprio {mark}" for address, mark in wanted.items() if held.get(address) != mark]
    if lines:
        run("ipset", "restore", "-exist", given="\n".join([*lines, ""]))
    return [f"ipset: {line}" for line in lines]


def _ensure_device(way: Direction) -> list[str]:
    """The device, up, with an empty HTB, and holding the block of filters, which would go with the last link that joined it."""
    made = []
    if not _exists(way.device):
        run("ip", "link", "add", way.device, "txqueuelen", str(QUEUE), "type", "ifb")
        made.append(f"device {way.device}")
    listing = run("tc", "qdisc", "show", "dev", way.device)
    if "qdisc htb 1: root" not in listing:
        run("tc", "qdisc", "replace", "dev", way.device, "root", "handle", "1:", "htb", "default", f"{HOST:x}")
        made.append(f"tc: HTB on {way.device}")
    if _blocks().get(way.device) != way.block:
        run("tc", "qdisc", "add", "dev", way.device, "ingress_block", str(way.block), "clsact")
        made.append(f"tc: block {way.block} of filters")
    if made:
        run("ip", "link", "set", way.device, "up")
    return made


def _ensure_classes(way: Direction, wanted: Mapping[int, Share], shaping: Shaping) -> list[str]:
    listing = run("tc", "-d", "class", "show", "dev", way.device)
    machine = shaping.machine_mbit * KBIT
    all_of_it = {ROOT: Share(machine, machine, 0), **wanted}
    standing = parse_classes(listing)
    lines = [f"class del dev {way.device} classid 1:{minor:x}" for minor in standing if minor not in all_of_it]
    for minor, share in all_of_it.items():
        if standing.get(minor) != share:
            parent = "1:" if minor == ROOT else f"1:{ROOT:x}"
            lines.append(
                f"class replace dev {way.device} parent {parent} classid 1:{minor:x} htb rate {share.rate}kbit ceil {share.ceiling}kbit"
                f" burst {share.burst} cburst {share.burst} quantum {share.quantum or QUANTUM}"
            )
    _batch(lines)
    without = [minor for minor in wanted if f"class htb 1:{minor:x} parent 1:{ROOT:x} leaf " not in listing]
    if without:
        kind = _leaf(way.device, without[0])
        _batch([f"qdisc replace dev {way.device} parent 1:{minor:x} {kind}" for minor in without[1:]])
    return [f"tc: {len(lines)} classes of {way.device}"] if lines or without else []


def parse_classes(listing: str) -> dict[int, Share]:
    """Classes by minor number, from what `tc -d class show` prints; it prints no quantum of a class that has others below it."""
    return {
        int(minor, 16): Share(_kbit(rate), _kbit(ceiling), int(quantum or 0)) for minor, quantum, rate, ceiling in CLASS_LINE.findall(listing)
    }


def _kbit(printed: str) -> int:
    """Kbit/s of a rate as tc prints it: 12345Kbit."""
    number, unit = printed[: -len("bit")].rstrip("KMGT"), printed[: -len("bit")].lstrip("0123456789.")
    return int(float(number) * UNITS[unit])


def _leaf(device: str, minor: int) -> str:
    """Give a class the best queue that the kernel has, and say which."""
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


def _ensure_filters(way: Direction, networks: Sequence[str]) -> list[str]:
    """The block's one filter, which leads to the device whatever is outside of these networks; it changes in one step."""
    program = filter_program([ipaddress.IPv4Network(one) for one in networks], way.offset)
    listing = run("tc", "filter", "show", "block", str(way.block))
    if BYTECODE.findall(listing) == [program] and f"(Egress Redirect to device {way.device})" in listing and not OTHER_FILTER.search(listing):
        return []
    line = f"block {way.block} protocol ip pref 1 handle 1 bpf bytecode '{program}' action mirred egress redirect dev {way.device}"
    _batch([*([f"filter del block {way.block}"] if OTHER_FILTER.search(listing) else []), f"filter replace {line}"])
    return [f"tc: a filter to {way.device}"]


def _ensure_links(machine: Machine) -> list[str]:
    """The machine's link in the block of what leaves, each pod's in that of what comes."""
    wanted = {machine.interface: UP.block}
    wanted.update({link: DOWN.block for address, link in pod_links().items() if address in machine.secondaries})
    standing, made = _blocks(), []
    for link, block in wanted.items():
        if standing.get(link) == block:
            continue
        if link in standing:
            remedy = f"stop what made it, then: tc qdisc del dev {link} clsact"
            raise NodeNetworkError(f"link {link}", "it has a clsact qdisc of another program", "one for each link, ours", remedy)
        if _on_link(link, "add", "dev", link, "egress_block", str(block), "clsact"):
            made.append(f"tc: {link} is shaped")
    return made


def _on_link(link: str, *words: str) -> bool:
    """Change the qdiscs of a link; False where it is no more, as its pod has ended meanwhile."""
    try:
        run("tc", "qdisc", *words)
    except CommandError:
        if _exists(link):
            raise
        return False
    return True


def _blocks() -> dict[str, int]:
    """Block of each link that has a clsact qdisc; 0 where it has none."""
    found = {}
    for line in run("tc", "qdisc", "show").splitlines():
        if line.startswith("qdisc clsact "):
            words = line.split()
            block = next((words[words.index(word) + 1] for word in ("egress_block", "ingress_block") if word in words), "0")
            found[words[words.index("dev") + 1]] = int(block)
    return found


def _ensure_rules(wanted: Sequence[str]) -> list[str]:
    """One transaction where the rules of ours are not the wanted ones."""
    standing = [line for line in iptables.list_rules("mangle") if f'"{COMMENT}"' in line]
    if standing == list(wanted) or (len(standing) == len(wanted) and all(iptables.has_rule("mangle", line) for line in wanted)):
        return []
    # First in their chains: accounting's own rules lead out of them.
    todo = [*(f"-D{line[2:]}" for line in standing), *(CHAIN_OF_RULE.sub(r"-I \1 1 ", line) for line in wanted)]
    iptables.restore("mangle", todo)
    return [f"iptables: mangle: {line}" for line in todo]


def _exists(device: str) -> bool:
    return any(line.split(":")[1].strip().partition("@")[0] == device for line in run("ip", "-oneline", "link", "show").splitlines())


def _batch(lines: Iterable[str]) -> None:
    """Have tc do many things in one process."""
    if text := "".join(f"{line}\n" for line in lines):
        run("tc", "-batch", "-", given=text)
