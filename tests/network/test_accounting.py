"""Every byte between a machine and the internet is counted, by rules that stand as published and lose no count when they are mended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from counted import BACKENDS, internet, lengths, machine_of, of_pod, on_the_wire, rules
from datagrams import Talk
from fabric import INTERNET, Azure, Machine
from talking import call, tcp_server

from cni.node.accounting import ALWAYS, HOOKS, chain

pytestmark = pytest.mark.xdist_group("accounting")
in_one_backend = pytest.mark.parametrize("machine", ["nft"], indirect=True)
PUBLISHED = """\
-A INPUT ! -s 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-in"
-A FORWARD ! -s 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-in"
-A FORWARD ! -d 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-out"
-A OUTPUT ! -d 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-out"
"""
"""As https://openai.com/index/scaling-kubernetes-to-7500-nodes/ has them, in the words of iptables' own listing."""


@pytest.fixture(params=BACKENDS)
def machine(azure: Azure, request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return machine_of(azure, request.param, tmp_path)


@pytest.fixture
def talks() -> Iterator[list[Talk]]:
    made: list[Talk] = []
    yield made
    for talk in made:
        talk.close()


def listed(machine: Machine) -> list[str]:
    return machine.run("iptables", "-t", "mangle", "-S").splitlines()


def test_the_four_rules_stand_as_published_and_a_second_time_changes_nothing(machine: Machine) -> None:
    before = listed(machine)
    assert [line for line in before if "iptables-exporter openai" in line] == PUBLISHED.splitlines()
    machine.node("apply")
    assert listed(machine) == before
    assert not rules(machine).missing


def test_every_byte_of_a_pod_is_counted_as_a_capture_saw_it(azure: Azure, machine: Machine, talks: list[Talk]) -> None:
    pod, other = machine.add_pod("a"), machine.add_pod("b")
    talks += [Talk.between(one.inside, azure.internet) for one in (pod, other)]
    with machine.inside.capture(pod.veth, f"udp and host {INTERNET}") as capture:
        for size in (0, 1, 700, 1472):
            talks[0].send(25, size)
            talks[0].answer(10, size)
        talks[1].send(10, 333)
    assert sum(lengths(capture)) == talks[0].sent + talks[0].answered
    assert of_pod(machine, pod) == {"out": talks[0].sent, "in": talks[0].answered}
    assert of_pod(machine, other) == {"out": talks[1].sent, "in": 0}
    assert internet(machine, "forward") == {"out": talks[0].sent + talks[1].sent, "in": talks[0].answered}


@pytest.mark.parametrize("offloads", ["off", "on"])
def test_a_download_by_tcp_is_exact_without_offloads_and_a_few_percent_low_with_them(azure: Azure, machine: Machine, offloads: str) -> None:
    pod = machine.add_pod("a")
    if offloads == "off":
        azure.internet.run("ip", "link", "set", "eth0", "gso_max_segs", "1")
    azure.internet.start("iperf3", "-s", "-1", "-B", INTERNET)
    with machine.inside.capture(pod.veth, f"tcp and host {INTERNET}") as capture:
        azure.internet.run("sh", "-c", "until ss -Hltn sport = 5201 | grep -q .; do sleep 0.05; done")
        pod.run("iperf3", "-c", INTERNET, "-R", "-n", "2M", "-b", "60M")
    seen, counted = lengths(capture), of_pod(machine, pod)
    assert counted["in"] + counted["out"] == sum(seen)
    low = 1 - sum(seen) / on_the_wire(seen)
    print(f"counted {low:.2%} low with offloads {offloads}")
    assert low == 0 if offloads == "off" else 0.005 < low < 0.05


def test_what_stays_inside_is_no_internet_traffic(azure: Azure, machine: Machine) -> None:
    far = azure.machine("m2", "10.0.0.40", ["10.0.0.41"])
    far.apply()
    pod, near, other = machine.add_pod("a"), machine.add_pod("b"), far.add_pod("c")
    for place in (near, other):
        with tcp_server(place, place.address) as server:
            call(pod, server.address)
    with tcp_server(machine, machine.primary) as server:
        call(pod, server.address)
    assert internet(machine, "forward") == {"out": 0, "in": 0}
    assert of_pod(machine, pod) == {"out": 0, "in": 0}


def test_what_the_published_rules_count_of_loopback_and_of_azures_own_services_is_counted_again_to_be_subtracted(
    machine: Machine, talks: list[Talk]
) -> None:
    before = subtracted(machine)
    talks.append(Talk.between(machine.inside, machine.inside, "127.0.0.1"))
    talks[0].send(10, 100)
    machine.run("curl", "-sS", "-H", "Metadata: true", "http://169.254.169.254/metadata/instance?api-version=2021-02-01")
    after, counted = subtracted(machine), internet(machine, "output")
    gained = {name: octets - before.get(name, 0) for name, octets in after.items()}
    assert gained["loopback"] == talks[0].sent
    assert gained["link-local"] > 0
    assert counted["out"] == sum(after.values())


def subtracted(machine: Machine) -> dict[str, int]:
    """Bytes that the machine has sent to each range that is none of the internet's."""
    found = {
        name.partition("range=")[2]: octets
        for (where, name), (_, octets) in rules(machine).counts.items()
        if where == "gpufleet-output-out"
    }
    return {name: octets for name, octets in found.items() if octets}


def test_mending_what_a_stranger_broke_under_traffic_loses_no_count_of_the_rest(azure: Azure, machine: Machine, talks: list[Talk]) -> None:
    pod = machine.add_pod("a")
    talks.append(Talk.between(pod.inside, azure.internet))
    ended = threading.Event()

    def go_on() -> None:
        while not ended.is_set():
            talks[0].send(20, 500)
            talks[0].answer(20, 200)

    sender = threading.Thread(target=go_on)
    sender.start()
    try:
        for victim in ("-F GPUFLEET-INPUT-IN", "-D FORWARD 2", "-F OUTPUT", "-F GPUFLEET-OUTPUT-OUT", "-F INPUT"):
            machine.run("iptables", "-t", "mangle", *victim.split())
            machine.node("apply")
            assert not rules(machine).missing
    finally:
        ended.set()
        sender.join()
    # Of the jump for what comes in, which was the second rule of FORWARD, only the pod's own count depends.
    assert internet(machine, "forward") == {"out": talks[0].sent, "in": talks[0].answered}
    assert of_pod(machine, pod)["out"] == talks[0].sent
    assert talks[0].sent > 100_000


@in_one_backend
def test_two_programs_at_once_leave_every_rule_once(machine: Machine) -> None:
    machine.run("iptables", "-t", "mangle", "-F")
    command = " ".join(machine.node_command("apply"))
    machine.run("sh", "-c", f"{command} & {command} & {command} & wait")
    lines = [line for line in listed(machine) if line.startswith("-A")]
    assert len(lines) == len(set(lines))
    assert not rules(machine).missing


def test_a_rule_that_stands_twice_is_taken_away_once(machine: Machine) -> None:
    machine.run("sh", "-c", "iptables-save -t mangle | iptables-restore -n")
    machine.node("apply")
    lines = [line for line in listed(machine) if line.startswith("-A")]
    assert len(lines) == len(set(lines))
    assert set(ALWAYS) <= set(lines)


@in_one_backend
def test_an_address_that_comes_or_goes_leaves_the_counts_of_the_others(azure: Azure, machine: Machine, talks: list[Talk]) -> None:
    pod = machine.add_pod("a")
    talks.append(Talk.between(pod.inside, azure.internet))
    talks[0].send(10, 100)
    document = machine.imds_document["network"]["interface"][0]["ipv4"]["ipAddress"]
    gone = document.pop()
    machine.node("apply")
    assert gone["privateIpAddress"] not in machine.run("ipset", "save")
    document.append(gone)
    machine.node("apply")
    talks[0].send(10, 100)
    assert of_pod(machine, pod) == {"out": talks[0].sent, "in": 0}
    assert machine.run("ipset", "save").count(f" {gone['privateIpAddress']} ") == 2


@in_one_backend
def test_a_peered_range_is_no_internet_traffic(machine: Machine) -> None:
    machine.apply(not_masqueraded=["10.0.0.0/8", "172.20.0.0/16", "198.51.100.0/24"])
    names = {name for _, name in rules(machine).counts}
    assert "gpufleet traffic=not-internet-out range=peered-198.51.100.0/24" in names
    assert not [name for name in names if "peered-172" in name or "peered-10." in name]
    machine.apply()
    assert not [name for _, name in rules(machine).counts if "peered" in name]


def test_nothing_of_ours_is_left_when_it_is_removed_and_all_of_a_strangers_is(machine: Machine) -> None:
    machine.run("iptables", "-t", "mangle", "-A", "FORWARD", "-s", "10.9.9.9", "-j", "ACCEPT")
    machine.node("remove")
    left = listed(machine)
    assert [line for line in left if line.startswith("-A")] == ["-A FORWARD -s 10.9.9.9/32 -j ACCEPT"]
    assert not [line for line in left if line.startswith("-N") and line[3:] in {chain(*hook) for hook in HOOKS}]
    assert "gpufleet-" not in machine.run("ipset", "list", "-name")
