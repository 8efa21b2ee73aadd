"""Pods share a machine's internet rate by weight, whatever the number of their connections, and lend what they do not use."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from fabric import INTERNET, OTHER_INTERNET, Azure, CommandError, Machine, Pod, fabric
from flows import PAYLOAD, SETTLES, WINDOW, Flow, flowing, rates, rates_of
from talking import PORT, tcp_server

pytestmark = [pytest.mark.xdist_group("shaping"), pytest.mark.alone]

MACHINE = 40
SHAPING: dict[str, Any] = {
    "machine_mbit": MACHINE,
    "floor_mbit": 1,
    "ceiling_mbit": MACHINE,
    "weights": {"vision": 4},
    "default_weight": 1,
    "connections_per_pod": 50,
}
WHOLE = MACHINE * PAYLOAD
CEILING = 15
DIRECTIONS = pytest.mark.parametrize("down", [False, True], ids=["up", "down"])


def within_5_percent(value: float) -> Any:
    return pytest.approx(value, rel=0.05)


@dataclass
class Shaped:
    """A shaped machine with two pods, and another machine with one."""

    azure: Azure
    machine: Machine
    one: Pod
    two: Pod
    far: Pod


@pytest.fixture(scope="module")
def shaped() -> Iterator[Shaped]:
    with fabric() as azure:
        machine = azure.machine("m1", "10.66.0.4", [f"10.66.0.{last}" for last in range(5, 12)])
        other = azure.machine("m2", "10.66.0.20", ["10.66.0.21"])
        machine.apply(shaping=SHAPING)
        other.apply()
        one, two = machine.add_pods(["one", "two"])
        far = other.add_pod("far")
        machine.node("apply")
        yield Shaped(azure, machine, one, two, far)


@DIRECTIONS
def test_a_pod_alone_borrows_all_that_the_machine_has(shaped: Shaped, down: bool) -> None:
    (rate,) = rates_of(shaped.azure, Flow(shaped.one, down))
    assert rate == within_5_percent(WHOLE)


@DIRECTIONS
def test_a_pod_with_one_connection_gets_as_much_as_one_with_eight(shaped: Shaped, down: bool) -> None:
    got = rates_of(shaped.azure, Flow(shaped.one, down), Flow(shaped.two, down, streams=8))
    assert got == [within_5_percent(WHOLE / 2)] * 2


def test_the_machines_own_uploads_are_a_share_like_a_pods(shaped: Shaped) -> None:
    got = rates_of(shaped.azure, Flow(shaped.one, streams=4), Flow(shaped.machine))
    assert got == [within_5_percent(WHOLE / 2)] * 2


@DIRECTIONS
def test_packets_between_internal_addresses_pass_as_fast_as_ever_beside_a_full_shaper(shaped: Shaped, down: bool) -> None:
    internet = Flow(shaped.one, down)
    internal = Flow(shaped.two, down, server=shaped.far.inside, address=shaped.far.address)
    slow, fast = rates_of(shaped.azure, internet, internal)
    assert slow == within_5_percent(WHOLE)
    assert fast > 10 * MACHINE


def test_what_a_team_weighs_follows_who_holds_the_address_while_it_sends(shaped: Shaped) -> None:
    holders = shaped.machine.state / "traffic" / "holders.json"
    holders.parent.mkdir(exist_ok=True)
    flows = Flow(shaped.one), Flow(shaped.two)
    with flowing(shaped.azure, *flows):
        for heavy, of_one in ((shaped.one, 0.8), (shaped.two, 0.2)):
            holders.write_text(json.dumps({heavy.address: {"namespace": "vision", "pod": "trainer", "team": "vision"}}))
            shaped.machine.node("apply")
            time.sleep(SETTLES)
            above = MACHINE - 2 * SHAPING["floor_mbit"]
            expected = [(SHAPING["floor_mbit"] + above * share) * PAYLOAD for share in (of_one, 1 - of_one)]
            # A fifth of the rate is a packet of 64 kB every 60 ms: in the usual window a few of them are the 5 percent.
            assert rates(flows, 3 * WINDOW) == [within_5_percent(rate) for rate in expected]
    holders.unlink()
    shaped.machine.node("apply")


def test_bytes_are_counted_before_they_are_shaped(azure: Azure) -> None:
    """They are twelve seconds of the pod's ceiling, and a queue of one second at most: some are lost, however slowly they are sent."""
    machine = azure.machine("m1", "10.66.0.4", ["10.66.0.5"])
    machine.apply(shaping={**SHAPING, "ceiling_mbit": 2})
    pod, count, size = machine.add_pod("counted"), 2000, 1400
    machine.node("apply")

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            for _ in range(count):
                datagrams.sendto(b"." * size, (INTERNET, PORT))

    with azure.internet.capture("eth0", f"udp port {PORT}") as arrived:
        pod.within(send)
    assert counted(machine, pod) == count * (size + 28)
    assert 0 < len(arrived.lines) < count


def counted(machine: Machine, pod: Pod) -> int:
    """Bytes of the pod to the internet."""
    entries = [line.split() for line in machine.run("ipset", "save", "gpufleet-out").splitlines() if f" {pod.address} " in line]
    return int(entries[0][entries[0].index("bytes") + 1])


def test_a_pod_has_so_many_connections_to_the_internet_and_no_more(shaped: Shaped) -> None:
    pod = shaped.machine.add_pod("three")
    with contextlib.ExitStack() as stack:
        for place, address in (
            (shaped.azure.internet, INTERNET),
            (shaped.azure.internet, OTHER_INTERNET),
            (shaped.far, shaped.far.address),
        ):
            stack.enter_context(tcp_server(place, address))

        def connect(address: str) -> None:
            stack.enter_context(socket.create_connection((address, PORT), timeout=3))

        for number in range(SHAPING["connections_per_pod"]):
            pod.within(lambda address=(INTERNET, OTHER_INTERNET)[number % 2]: connect(address))
        with pytest.raises(OSError, match="No route to host"):
            pod.within(lambda: connect(INTERNET))
        shaped.two.within(lambda: connect(INTERNET))
        pod.within(lambda: connect(shaped.far.address))


def everything(machine: Machine) -> list[str]:
    """All that shaping is made of, and all that others have in the same places, without counters and handles that are drawn."""
    tables = [line for table in ("mangle", "filter", "nat") for line in machine.run("iptables", "-t", table, "-S").splitlines()]
    tables += machine.run("ip", "-4", "rule", "show").splitlines()
    shown = [machine.run("tc", "-d", "class", "show", "dev", device, check=False) for device in ("gpufleet-up", "gpufleet-down")]
    classes = [re.sub(r" leaf \S+", "", line) for lines in shown for line in lines.splitlines()]
    links = [line.split(":")[1] for line in machine.run("ip", "-oneline", "link", "show").splitlines()]
    qdiscs = [line.split(" refcnt")[0] for line in machine.run("tc", "qdisc", "show").splitlines() if "pfifo" not in line]
    sets = sorted(line for line in machine.run("ipset", "save").splitlines() if "gpufleet-shape" in line and line.startswith("add"))
    rows = [machine.run("tc", "filter", "show", "block", block, check=False).splitlines() for block in ("7701", "7702")]
    filters = [line.strip() for lines in rows for line in lines if " match " in line or "bytecode" in line or "Redirect" in line]
    return [*tables, *sorted(links), *sorted(qdiscs), *sets, *classes, *filters]


STRANGERS = (
    ("tc", "qdisc", "del", "dev", "eth0", "clsact"),
    ("tc", "qdisc", "del", "dev", "gpufleet-up", "root"),
    ("tc", "filter", "del", "block", "7702"),
    ("tc", "filter", "add", "block", "7701", "protocol", "ip", "pref", "9", "u32", "match", "u32", "0", "0", "flowid", "1:1"),
    ("tc", "filter", "replace", "block", "7702", "protocol", "ip", "pref", "1", "handle", "1", "bpf", "bytecode", "1,6 0 0 0"),
    ("tc", "class", "change", "dev", "gpufleet-up", "classid", "1:10", "htb", "rate", "9mbit", "ceil", "9mbit"),
    ("ip", "link", "del", "gpufleet-down"),
    ("ipset", "flush", "gpufleet-shape"),
    ("iptables", "-t", "mangle", "-F", "FORWARD"),
    ("iptables", "-t", "nat", "-F"),
    ("iptables", "-t", "nat", "-F", "GPUFLEET-CONNECTIONS"),
    ("ip", "-4", "rule", "del", "priority", "102"),
)


def test_what_a_stranger_takes_away_is_put_back_and_a_second_pass_changes_nothing(shaped: Shaped) -> None:
    shaped.machine.node("apply")
    before = sorted(everything(shaped.machine))
    for words in STRANGERS:
        shaped.machine.run(*words)
        assert sorted(everything(shaped.machine)) != before, words
        assert shaped.machine.node("apply") != "", words
        assert sorted(everything(shaped.machine)) == before, words
        assert shaped.machine.node("apply") == "", words


def bare(machine: Machine) -> tuple[str, ...]:
    """Everything that shaping might leave."""
    links = [line.split(":")[1] for line in machine.run("ip", "-oneline", "link", "show").splitlines()]
    tables = (("iptables", "-t", table, "-S") for table in ("filter", "mangle", "nat"))
    commands = (("tc", "qdisc", "show"), ("ip", "rule", "show"), ("ipset", "list", "-name"), *tables)
    return (*links, *(machine.run(*words) for words in commands))


@pytest.mark.parametrize("backend", ["nft", "legacy"])
def test_it_is_off_unless_the_settings_say_otherwise_and_off_again_leaves_nothing(azure: Azure, backend: str, tmp_path: Any) -> None:
    for name in ("iptables", "iptables-save", "iptables-restore"):
        (tmp_path / name).symlink_to(f"/usr/sbin/{name.replace('iptables', f'iptables-{backend}')}")
    machine = azure.machine("m1", "10.66.0.4", ["10.66.0.5"], environment={"PATH": f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin"})
    machine.apply()
    pod = machine.add_pod("one")
    before = bare(machine)
    (unshaped,) = rates_of(azure, Flow(pod))
    assert unshaped > 2 * MACHINE
    machine.apply(shaping={**SHAPING, "ceiling_mbit": CEILING})
    (shaped,) = rates_of(azure, Flow(pod))
    assert shaped == within_5_percent(CEILING * PAYLOAD)
    machine.apply(shaping=None)
    assert bare(machine) == before


def test_a_pod_that_comes_later_is_shaped_within_seconds(azure: Azure) -> None:
    machine = azure.machine("m1", "10.66.0.4", ["10.66.0.5", "10.66.0.6"])
    machine.apply(shaping={**SHAPING, "ceiling_mbit": CEILING})
    machine.inside.start(*machine.node_command("run"))
    pod = machine.add_pod("late")
    deadline = time.monotonic() + 20
    while f"dev {pod.veth} parent ffff:fff1 egress_block" not in machine.run("tc", "qdisc", "show"):
        assert time.monotonic() < deadline, "its link was never shaped"
        time.sleep(0.2)
    (rate,) = rates_of(azure, Flow(pod, down=True))
    assert rate == within_5_percent(CEILING * PAYLOAD)


def test_a_link_that_another_program_shapes_is_told_and_keeps_no_pod_from_coming(azure: Azure) -> None:
    machine = azure.machine("m1", "10.66.0.4", ["10.66.0.5"])
    machine.run("tc", "qdisc", "add", "dev", "eth0", "clsact")
    machine.configure(shaping=SHAPING)
    with pytest.raises(CommandError, match="link eth0: it has a clsact qdisc of another program"):
        machine.node("apply")
    assert machine.add_pod("one").address == "10.66.0.5"
    machine.run("tc", "qdisc", "del", "dev", "eth0", "clsact")
    machine.node("apply")
    assert "dev eth0 parent ffff:fff1 egress_block" in machine.run("tc", "qdisc", "show")
