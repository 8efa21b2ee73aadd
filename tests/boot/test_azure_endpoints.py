"""Pods reach neither the metadata service nor the wire server, and still resolve names; the machine itself reaches all of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from boot_machines import machines

PROGRAM = Path(__file__).parents[2] / "components/boot/files/azure_endpoints.sh"
NODES = [name for name, boot in machines().items() if boot.role == "node"]
HOST, POD, AZURE = (f"gpufleet-{part}-{os.getpid()}" for part in ("host", "pod", "azure"))
SERVER = """
import select, socket
servers = []
for address, port in (("169.254.169.254", 80), ("168.63.129.16", 53), ("168.63.129.16", 80), ("168.63.129.16", 32526)):
    servers.append(socket.create_server((address, port)))
resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
resolver.bind(("168.63.129.16", 53))
print("ready", flush=True)
while True:
    for server in select.select([*servers, resolver], [], [])[0]:
        if server is resolver:
            server.sendto(*server.recvfrom(512))
        else:
            server.accept()[0].close()
"""


def run(*command: str, namespace: str | None = None, check: bool = True) -> str:
    """Output of a command, inside a network namespace where one is named."""
    inside = ("ip", "netns", "exec", namespace) if namespace else ()
    return subprocess.run((*inside, *command), capture_output=True, text=True, timeout=30, check=check).stdout


def connects(namespace: str, address: str, port: int) -> bool:
    """Return whether a TCP connection is accepted."""
    probe = f"import socket; socket.create_connection(({address!r}, {port}), timeout=1).close()"
    done = subprocess.run(("ip", "netns", "exec", namespace, "python3", "-c", probe), capture_output=True, timeout=30, check=False)
    return done.returncode == 0


def resolves(namespace: str) -> bool:
    """Return whether Azure's resolver answers a datagram."""
    probe = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(1); s.sendto(b'?', ('168.63.129.16', 53)); s.recv(9)"
    done = subprocess.run(("ip", "netns", "exec", namespace, "python3", "-c", probe), capture_output=True, timeout=30, check=False)
    return done.returncode == 0


def link(one: str, two: str, prefix: str) -> None:
    """A cable between two namespaces: address .1 is the first's, .2 the second's."""
    run(
        "ip",
        "-n",
        one,
        "link",
        "add",
        f"to-{two[-3:]}{prefix[-1]}",
        "type",
        "veth",
        "peer",
        "name",
        f"to-{one[-3:]}{prefix[-1]}",
        "netns",
        two,
    )
    for namespace, other, host in ((one, two, 1), (two, one, 2)):
        device = f"to-{other[-3:]}{prefix[-1]}"
        run("ip", "-n", namespace, "address", "add", f"{prefix}.{host}/24", "dev", device)
        run("ip", "-n", namespace, "link", "set", device, "up")


@pytest.fixture
def machine() -> Iterator[None]:
    """A pod behind a machine behind Azure's link, each a network namespace."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "iptables", "iptables-restore"))):
        pytest.skip("network namespaces need root, ip and iptables (Debian packages iproute2 and iptables)")
    if subprocess.run(("ip", "netns", "add", HOST), capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a network namespace")
    try:
        for namespace in (POD, AZURE):
            run("ip", "netns", "add", namespace)
        link(HOST, POD, "10.99.1")
        link(HOST, AZURE, "10.99.2")
        run("ip", "-n", POD, "route", "add", "default", "via", "10.99.1.1")
        run("ip", "-n", AZURE, "route", "add", "default", "via", "10.99.2.1")
        run("ip", "-n", AZURE, "link", "set", "lo", "up")
        for address in ("169.254.169.254", "168.63.129.16"):
            run("ip", "-n", AZURE, "address", "add", f"{address}/32", "dev", "lo")
            run("ip", "-n", HOST, "route", "add", address, "via", "10.99.2.2")
        run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward", namespace=HOST)
        with subprocess.Popen(("ip", "netns", "exec", AZURE, "python3", "-c", SERVER), stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield
            server.kill()
    finally:
        for namespace in (HOST, POD, AZURE):
            run("ip", "netns", "delete", namespace, check=False)


SERVICES = (("169.254.169.254", 80), ("168.63.129.16", 80), ("168.63.129.16", 32526))


@pytest.mark.usefixtures("machine")
def test_pods_reach_azures_services_before_the_rules_and_only_dns_after_them() -> None:
    assert all(connects(POD, *service) for service in SERVICES)
    run("sh", str(PROGRAM), namespace=HOST)
    assert not any(connects(POD, *service) for service in SERVICES)
    assert connects(POD, "168.63.129.16", 53)
    assert all(connects(HOST, *service) for service in SERVICES)


@pytest.mark.parametrize("strict", [0, 1])
@pytest.mark.usefixtures("machine")
def test_a_flush_of_iptables_opens_nothing_and_the_machine_and_dns_go_on(strict: int) -> None:
    for scope in ("all", "default"):
        run("sh", "-c", f"echo {strict} >/proc/sys/net/ipv4/conf/{scope}/rp_filter", namespace=HOST)
    run("sh", str(PROGRAM), namespace=HOST)
    for table in ("filter", "nat", "mangle", "raw"):
        run("iptables", "-w", "-t", table, "-F", namespace=HOST)
        run("iptables", "-w", "-t", table, "-X", namespace=HOST)
    assert not any(connects(POD, *service) for service in SERVICES)
    assert connects(POD, "168.63.129.16", 53)
    assert resolves(POD)
    assert all(connects(HOST, *service) for service in SERVICES)
    assert resolves(HOST)


@pytest.mark.usefixtures("machine")
def test_a_second_run_changes_nothing_and_leaves_others_rules_alone() -> None:
    run("iptables", "-w", "-A", "FORWARD", "-d", "192.0.2.1/32", "-j", "ACCEPT", namespace=HOST)
    run("sh", str(PROGRAM), namespace=HOST)
    first, routed = run("iptables", "-w", "-S", namespace=HOST).splitlines(), run("ip", "-4", "rule", "show", namespace=HOST)
    run("sh", str(PROGRAM), namespace=HOST)
    assert run("ip", "-4", "rule", "show", namespace=HOST) == routed
    assert run("iptables", "-w", "-S", namespace=HOST).splitlines() == first
    assert [line for line in first if "FORWARD" in line] == [
        "-P FORWARD ACCEPT",
        "-A FORWARD -j GPUFLEET-AZURE",
        "-A FORWARD -d 192.0.2.1/32 -j ACCEPT",
    ]
    assert len([line for line in first if line.startswith("-A GPUFLEET-AZURE ")]) == 2


@pytest.mark.parametrize("name", NODES)
def test_no_kubelet_starts_before_the_services_are_closed_to_pods(name: str) -> None:
    boot = machines()[name]
    kubelet = boot.file("/etc/systemd/system/kubelet.service").content.splitlines()
    rules = boot.file("/etc/systemd/system/gpufleet-azure-endpoints.service").content.splitlines()
    assert {"Requires=gpufleet-azure-endpoints.service", "After=gpufleet-azure-endpoints.service"} <= set(kubelet)
    assert {"Before=kubelet.service", "Type=oneshot", "ExecStart=/usr/local/sbin/gpufleet-azure-endpoints"} <= set(rules)
    assert "gpufleet-azure-endpoints.service" in boot.enable
