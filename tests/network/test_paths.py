"""Packets of pods reach everything that they should, under their own addresses, in one piece, and wrapped in nothing."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fabric import INTERNET, NAT_GATEWAY, Azure, Machine, Pod, fabric
from talking import PORT, call, send, tcp_server, udp_server

pytestmark = pytest.mark.xdist_group("paths")

LARGEST = 1472
"""Bytes of the largest datagram in a packet of 1,500: https://www.rfc-editor.org/rfc/rfc768 behind https://www.rfc-editor.org/rfc/rfc791."""

SERVICE = "10.255.0.10"

SERVICES = """*nat
:KUBE-SERVICES - [0:0]
:KUBE-SVC - [0:0]
:KUBE-SEP - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-POSTROUTING - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A POSTROUTING -j KUBE-POSTROUTING
-A KUBE-SERVICES -d {service}/32 -p tcp --dport 80 -j KUBE-SVC
-A KUBE-SVC -j KUBE-SEP
-A KUBE-SEP -s {pod}/32 -j KUBE-MARK-MASQ
-A KUBE-SEP -p tcp -j DNAT --to-destination {pod}:{port}
-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MASQUERADE
COMMIT
"""
"""Rules that kube-proxy writes for a service of one endpoint: https://kubernetes.io/docs/reference/networking/virtual-ips/."""


@dataclass
class Network:
    """Machines of 8 and of 31 addresses, two pods on the first and one on the second."""

    azure: Azure
    small: Machine
    large: Machine
    one: Pod
    two: Pod
    far: Pod


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with fabric() as azure:
        small = azure.machine("m1", "10.66.0.4", [f"10.66.0.{last}" for last in range(5, 12)])
        large = azure.machine("m2", "10.66.0.20", [f"10.66.0.{last}" for last in range(21, 51)])
        small.apply()
        large.apply()
        one, two = small.add_pods(["one", "two"])
        (far,) = large.add_pods(["far"])
        yield Network(azure, small, large, one, two, far)
        assert (azure.refused(small), azure.refused(large)) == (0, 0)


def test_every_pod_has_one_of_its_machines_own_secondary_addresses(network: Network) -> None:
    assert {network.one.address, network.two.address} < set(network.small.secondaries)
    assert network.far.address in network.large.secondaries
    assert network.one.address != network.two.address


@pytest.mark.parametrize("to", ["two", "far"])
def test_pods_reach_each_other_on_one_machine_and_across_under_their_own_addresses(network: Network, to: str) -> None:
    target: Pod = getattr(network, to)
    with tcp_server(target, target.address) as tcp, udp_server(target, target.address) as udp:
        assert call(network.one, target.address) == network.one.address
        assert send(network.one, target.address, 100) == network.one.address
    assert (tcp.seen, udp.seen) == ([network.one.address], [network.one.address])


@pytest.mark.parametrize("machine", ["small", "large"])
def test_pods_and_machines_reach_each_other_under_their_own_addresses(network: Network, machine: str) -> None:
    host: Machine = getattr(network, machine)
    with tcp_server(host, host.primary), tcp_server(network.one, network.one.address):
        assert call(network.one, host.primary) == network.one.address
        assert call(host, network.one.address) == host.primary


def test_a_service_leads_to_its_pod_from_pods_and_machines_with_the_callers_address_kept(network: Network) -> None:
    rules = SERVICES.format(service=SERVICE, pod=network.far.address, port=PORT)
    for machine in (network.small, network.large):
        machine.run("iptables-restore", "--noflush", given=rules)
    with tcp_server(network.far, network.far.address):
        assert call(network.one, SERVICE, 80) == network.one.address
        assert call(network.small, SERVICE, 80) == network.small.primary
        # Itself behind its own service: the answer would not come back through the service, so its machine's address stands for it.
        assert call(network.far, SERVICE, 80) == network.large.primary


def test_a_pod_reaches_the_internet_as_its_machine_which_is_all_that_azure_translates(network: Network) -> None:
    with tcp_server(network.azure.internet, INTERNET), network.small.inside.capture("eth0", f"host {INTERNET}") as wire:
        assert call(network.one, INTERNET) == NAT_GATEWAY
    sources = {found[1] for line in wire.lines if (found := re.search(rf" (\S+)\.\d+ > {INTERNET}\.", line))}
    assert sources == {network.small.primary}


def test_the_machine_itself_reaches_the_internet(network: Network) -> None:
    with tcp_server(network.azure.internet, INTERNET):
        assert call(network.small, INTERNET) == NAT_GATEWAY


def test_a_packet_of_1500_bytes_passes_whole_to_pods_and_the_internet_and_a_larger_one_not(network: Network) -> None:
    for server, address in ((network.two, network.two.address), (network.far, network.far.address), (network.azure.internet, INTERNET)):
        with udp_server(server, address):
            assert send(network.one, address, LARGEST, whole=True)
            with pytest.raises(OSError, match="too long") as refused:
                send(network.one, address, LARGEST + 1, whole=True)
            assert refused.value.errno == errno.EMSGSIZE


def test_nothing_on_the_wire_is_wrapped_and_every_packet_has_the_pods_own_addresses(network: Network) -> None:
    one, far = network.one.address, network.far.address
    with tcp_server(network.far, far), udp_server(network.far, far), network.small.inside.capture("eth0", "ip") as wire:
        call(network.one, far)
        send(network.one, far, LARGEST)
    shown = [
        re.search(r"^(\S+) > (\S+), ethertype IPv4 .*? proto (\S+) .*?length \d+\) (\S+)\.(\d+) > (\S+)\.(\d+): ", line)
        for line in wire.lines
    ]
    assert len(shown) >= 8
    assert None not in shown, wire.lines
    packets = [found.groups() for found in shown if found]
    assert {tuple(sorted(packet[:2])) for packet in packets} == {tuple(sorted((network.small.mac, "12:34:56:78:9a:bc")))}
    assert {packet[2] for packet in packets} == {"TCP", "UDP"}
    assert {frozenset((packet[3], packet[5])) for packet in packets} == {frozenset((one, far))}
    assert all(str(PORT) in (packet[4], packet[6]) for packet in packets)


def test_an_address_that_no_pod_holds_is_refused_at_once_and_not_sent_round(network: Network) -> None:
    (free, *_) = set(network.small.secondaries) - {network.one.address, network.two.address}
    with network.small.inside.capture("eth0", f"dst host {free}") as wire, pytest.raises(OSError, match="No route to host"):
        call(network.far, free)
    assert len(wire.lines) == 1


def test_where_the_nat_gateway_takes_pods_own_addresses_they_leave_under_them(azure: Azure) -> None:
    machine = azure.machine("m1", "10.66.0.4", ["10.66.0.5", "10.66.0.6"])
    machine.apply(snat=False)
    pod = machine.add_pod("one")
    with tcp_server(azure.internet, INTERNET):
        with pytest.raises(OSError, match="timed out"):
            call(pod, INTERNET)
        azure.let_secondaries_leave(True)
        with machine.inside.capture("eth0", f"dst host {INTERNET}") as wire:
            assert call(pod, INTERNET) == NAT_GATEWAY
    assert all(f" {pod.address}." in line for line in wire.lines)
    assert azure.refused(machine) == 0


def test_what_is_sent_under_an_address_of_no_ones_is_dropped_by_the_machine_and_by_azure(azure: Azure) -> None:
    machine, other = azure.machine("m1", "10.66.0.4", ["10.66.0.5"]), azure.machine("m2", "10.66.0.20", ["10.66.0.21"])
    machine.apply()
    pod = machine.add_pod("one")
    for place, refused in ((pod, 0), (machine, 1)):
        place.run("ip", "address", "add", "10.66.0.99/32", "dev", "lo")
        place.run("ip", "route", "replace", other.primary, "via", gateway(place), "src", "10.66.0.99")
        with udp_server(other, other.primary) as server, pytest.raises(TimeoutError):
            send(place, other.primary, 100)
        assert (server.seen, azure.refused(machine)) == ([], refused)


def gateway(place: Machine | Pod) -> str:
    """The router that a machine or pod has."""
    return place.run("ip", "route", "show", "default").split()[2]
