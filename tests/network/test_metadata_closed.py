"""Pods never reach the metadata service or the wire server, by whatever way, and still resolve names; the machine itself reaches all."""

from __future__ import annotations

import re
import socket
import struct
from pathlib import Path

import pytest
from fabric import IMDS, WIRE_SERVER, Azure, Machine, Pod
from talking import reaches

pytestmark = pytest.mark.xdist_group("metadata_closed")

PROGRAM = Path(__file__).parents[2] / "components/boot/files/azure_endpoints.sh"
CLOSED = ((IMDS, 80), (WIRE_SERVER, 80), (WIRE_SERVER, 32526))
SERVICE = "10.255.0.99"
QUERY = struct.pack("!HHHHHH", 1, 0x0100, 1, 0, 0, 0) + b"\x07example\x03com\x00" + struct.pack("!HH", 1, 1)
BACKENDS = ("nft", "legacy")


@pytest.fixture(params=BACKENDS)
def machine(request: pytest.FixtureRequest, azure: Azure, tmp_path: Path) -> Machine:
    """A machine whose network is in place, in either backend of iptables, with nothing closed yet."""
    for name in ("iptables", "iptables-save", "iptables-restore"):
        (tmp_path / name).symlink_to(f"/usr/sbin/{name.replace('iptables', f'iptables-{request.param}')}")
    made = azure.machine("m1", "10.66.0.4", ["10.66.0.5", "10.66.0.6"], environment={"PATH": f"{tmp_path}:/usr/sbin:/usr/bin:/sbin:/bin"})
    made.apply()
    return made


def resolves(place: Machine | Pod, kind: socket.SocketKind) -> bool:
    """Return whether Azure's resolver answers a query, by UDP or TCP."""

    def ask() -> bool:
        with socket.socket(socket.AF_INET, kind) as asking:
            asking.settimeout(2)
            asking.connect((WIRE_SERVER, 53))
            asking.sendall(QUERY if kind is socket.SOCK_DGRAM else struct.pack("!H", len(QUERY)) + QUERY)
            return b"\x07example\x03com" in asking.recv(512)

    return place.within(ask)


def test_pods_reach_none_of_them_once_closed_and_the_machine_all(machine: Machine) -> None:
    pod = machine.add_pod("one")
    assert all(reaches(pod, *service) for service in CLOSED)
    machine.run("sh", str(PROGRAM))
    assert not any(reaches(pod, *service) for service in CLOSED)
    assert all(reaches(machine, *service) for service in CLOSED)
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        assert resolves(pod, kind)
        assert resolves(machine, kind)
    machine.node("apply")
    assert not any(reaches(pod, *service) for service in CLOSED)


def test_a_service_whose_endpoint_is_one_of_them_opens_nothing(machine: Machine) -> None:
    pod = machine.add_pod("one")
    for number, (address, port) in enumerate(CLOSED):
        words = ("-p", "tcp", "-d", SERVICE, "--dport", str(1000 + number), "-j", "DNAT", "--to-destination", f"{address}:{port}")
        for chain in ("PREROUTING", "OUTPUT"):
            machine.run("iptables", "-t", "nat", "-A", chain, *words)
    ports = range(1000, 1000 + len(CLOSED))
    assert all(reaches(pod, SERVICE, port) for port in ports)
    machine.run("sh", str(PROGRAM))
    assert not any(reaches(pod, SERVICE, port) for port in ports)
    assert all(reaches(machine, SERVICE, port) for port in ports)


def test_no_flush_of_iptables_opens_them(machine: Machine) -> None:
    pod = machine.add_pod("one")
    machine.run("sh", str(PROGRAM))
    for flush in (("-F",), ("-X",), ("-t", "mangle", "-F"), ("-t", "raw", "-F")):
        machine.run("iptables", *flush)
    assert not any(reaches(pod, *service) for service in CLOSED)
    assert all(reaches(machine, *service) for service in CLOSED)
    assert resolves(pod, socket.SOCK_DGRAM)
    # What keeps them closed now is the rules of routing: without those they are open.
    for _ in CLOSED:
        machine.run("ip", "rule", "del", "priority", "101")
    assert all(reaches(pod, *service) for service in CLOSED)


def forge(pod: Pod, source: str) -> None:
    """Send the first packet of a connection to the metadata service, under any address."""
    tcp = struct.pack("!HHIIBBHHH", 40_000, 80, 1, 0, 5 << 4, 2, 1024, 0, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0, 64, socket.IPPROTO_TCP, 0, *map(socket.inet_aton, (source, IMDS)))

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
            raw.sendto(ip + tcp, (IMDS, 0))

    pod.within(send)


def test_neither_does_a_pod_get_there_under_the_address_of_its_machine_or_another_pod(machine: Machine) -> None:
    pod, expression = machine.add_pod("one"), f"dst host {IMDS}"
    with machine.inside.capture("eth0", expression) as open_:
        forge(pod, pod.address)
    assert len(open_.lines) == 1
    machine.run("sh", str(PROGRAM))
    machine.run("iptables", "-F")
    (other,) = set(machine.secondaries) - {pod.address}
    with machine.inside.capture("eth0", expression) as closed:
        for source in (pod.address, machine.primary, other, "127.0.0.1"):
            forge(pod, source)
    assert closed.lines == []


def test_run_again_it_has_every_rule_once(machine: Machine) -> None:
    for _ in range(2):
        machine.run("sh", str(PROGRAM))
    rules = [re.sub(r"^\d+:\s+", "", line) for line in machine.run("ip", "-4", "rule", "show").splitlines()]
    assert len(rules) == len(set(rules)) == 3 + 2 * len(CLOSED)
