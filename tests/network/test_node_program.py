"""The node program on a machine of the fabric: what it puts in place, keeps there, and takes away."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import snapshots
from fabric import INTERNET, NAT_GATEWAY, Azure, CommandError, Machine, Namespace, Pod
from snapshots import BACKENDS, everything, files, routes, rules, sets

pytestmark = pytest.mark.xdist_group("node-program")


def until(true: Callable[[], bool], seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.1)


def answered(pod: Pod, server: Namespace, address: str) -> str:
    """Connects from a pod to a server in a namespace: the address under which the server sees it."""
    listening = server.within(lambda: socket.create_server((address, 7)))
    with listening, pod.within(lambda: socket.create_connection((address, 7), 5)):
        here, seen = listening.accept()
        here.close()
    return str(seen[0])


def bound(address: str) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address, 0))
    return made


@contextlib.contextmanager
def running(machine: Machine) -> Iterator[subprocess.Popen[str]]:
    """gpufleet-node run, from the moment that it tells the service manager that it is ready."""
    path = machine.folder / "notify"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify_socket:
        notify_socket.bind(str(path))
        notify_socket.settimeout(20)
        machine.inside.environment["NOTIFY_SOCKET"] = str(path)
        process = machine.inside.start(*machine.node_command("run"))
        heard: list[str] = []
        try:
            while "READY=1" not in heard:
                heard = notify_socket.recv(4096).decode().splitlines()
            assert heard == ["READY=1", "WATCHDOG=1", "STATUS=everything in place"]
            notify_socket.close()
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            assert process.wait(5) == -signal.SIGTERM
            del machine.inside.environment["NOTIFY_SOCKET"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_apply_puts_everything_in_place_and_a_second_time_changes_nothing(azure: Azure, tmp_path: Path, backend: str) -> None:
    machine = snapshots.machine(azure, tmp_path, backend=backend)
    machine.run("iptables", "-P", "FORWARD", "DROP")
    said = machine.node("apply")
    assert "policy of FORWARD is ACCEPT" in said
    assert "-P FORWARD ACCEPT" in machine.run("iptables", "-S", "FORWARD")
    assert machine.run("cat", "/proc/sys/net/ipv4/ip_forward") == "1\n"
    assert [line for line in routes(machine) if line.startswith("unreachable")] == sorted(
        f"unreachable {address} proto 76 metric 4096" for address in machine.secondaries
    )
    assert "nat: -A GPUFLEET-SNAT -j SNAT --to-source 10.0.0.4 --random-fully" in rules(machine)
    assert (machine.state / "network.env").read_text() == "GPUFLEET_MAX_PODS=11\n"
    before = everything(machine)
    assert machine.node("apply") == ""
    assert everything(machine) == before
    shown = machine.node("status")
    assert "8 for pods, 0 of them reserved" in shown
    assert "11 at most" in shown


@pytest.mark.parametrize("backend", BACKENDS)
def test_remove_leaves_the_machine_as_it_was(azure: Azure, tmp_path: Path, backend: str) -> None:
    machine = snapshots.machine(azure, tmp_path, backend=backend)
    machine.configure(
        shaping={
            "machine_mbit": 100,
            "floor_mbit": 5,
            "ceiling_mbit": 100,
            "weights": {},
            "default_weight": 1,
            "connections_per_pod": 4000,
        }
    )
    before, devices = everything(machine), machine.run("tc", "qdisc", "show")
    machine.node("apply")
    assert machine.run("tc", "qdisc", "show") != devices
    machine.node("remove")
    assert everything(machine) == before
    assert machine.run("tc", "qdisc", "show") == devices
    assert "nothing was put in place" in machine.node("remove")


def test_pods_have_the_machines_addresses_and_reach_each_other_and_the_internet(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.node("apply")
    one, two = machine.add_pods(["one", "two"])
    assert {one.address, two.address} <= set(machine.secondaries)
    assert answered(one, two.inside, two.address) == one.address
    assert answered(one, azure.internet, INTERNET) == NAT_GATEWAY
    free = next(address for address in machine.secondaries if address not in (one.address, two.address))
    with pytest.raises(OSError, match="No route to host"):
        one.within(lambda: socket.create_connection((free, 7), 2))
    assert "2 of them reserved" in machine.node("status")


def test_a_pod_that_sends_under_anothers_address_is_not_counted_for_that_one(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    # What systemd sets for each new link of Ubuntu, and what Ubuntu sets for all.
    machine.run("sh", "-c", "for one in all default; do echo 2 >/proc/sys/net/ipv4/conf/$one/rp_filter; done")
    machine.node("apply")
    liar, other = machine.add_pods(["liar", "other"])
    machine.run("sh", "-c", f"echo 2 >/proc/sys/net/ipv4/conf/{liar.veth}/rp_filter")
    machine.node("apply")
    liar.run("ip", "address", "add", f"{other.address}/32", "dev", "lo")
    for source in (liar.address, other.address):
        with liar.within(lambda source=source: bound(source)) as sending:  # type: ignore[misc]
            sending.sendto(b"x" * 100, (INTERNET, 9))
    until(lambda: f"add gpufleet-out {liar.address} packets 1 bytes 128" in machine.run("ipset", "save", "gpufleet-out"))
    assert f"add gpufleet-out {other.address} packets 0 bytes 0" in machine.run("ipset", "save", "gpufleet-out")


def test_addresses_that_cloud_init_put_on_the_machines_link_are_taken_off_it(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    for address in machine.secondaries[:3]:
        machine.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
    assert "link eth0: 3 addresses of pods taken off it" in machine.node("apply")
    shown = json.loads(machine.run("ip", "-json", "-4", "address", "show", "dev", "eth0"))
    assert [one["local"] for one in shown[0]["addr_info"]] == ["10.0.0.4"]


def test_a_link_with_a_smaller_mtu_gives_pods_its_own_and_a_warning(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.run("ip", "link", "set", "eth0", "mtu", "1400")
    machine.node("apply")
    assert machine.conflist["plugins"][0]["mtu"] == 1400
    assert "warning     link eth0 has an MTU of 1400 bytes; planned are 1500" in machine.node("status")


def test_under_microsofts_plugin_there_is_no_conflist_but_all_else(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.node("apply")
    machine.configure(mode="azure-vnet")
    said = machine.node("apply")
    assert "10-gpufleet.conflist: removed" in said
    assert sorted(files(machine)) == ["network-status.json", "network.env"]
    assert "nat: -A GPUFLEET-SNAT -j SNAT --to-source 10.0.0.4 --random-fully" in rules(machine)
    assert [line for line in rules(machine) if "internet-in" in line]
    assert len([line for line in sets(machine) if line.startswith("add gpufleet-out")]) == 8
    assert machine.node("apply") == ""


@pytest.mark.parametrize("backend", BACKENDS)
def test_run_mends_what_a_stranger_flushes_within_seconds(azure: Azure, tmp_path: Path, backend: str) -> None:
    machine = snapshots.machine(azure, tmp_path, backend=backend)
    with running(machine):
        before = everything(machine)
        for table in ("filter", "nat", "mangle"):
            machine.run("iptables", "-t", table, "-F")
        machine.run("ip", "route", "flush", "type", "unreachable")
        machine.run("ipset", "flush")
        (machine.cni / "10-gpufleet.conflist").unlink()
        assert everything(machine) != before
        until(lambda: everything(machine) == before)
    assert everything(machine) == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_jump_or_a_rule_too_many_is_taken_out_again(azure: Azure, tmp_path: Path, backend: str) -> None:
    machine = snapshots.machine(azure, tmp_path, backend=backend)
    machine.node("apply")
    before = everything(machine)
    for words in ("-A POSTROUTING -o eth0 -j GPUFLEET-SNAT", "-I GPUFLEET-SNAT 1 -j ACCEPT", "-A POSTROUTING -o lo -j GPUFLEET-SNAT"):
        machine.run("iptables", "-t", "nat", *words.split())
    machine.node("apply")
    assert everything(machine) == before


def test_run_takes_up_changes_of_the_settings_and_of_the_card_without_a_restart(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.imds_document["network"]["interface"][0]["ipv4"]["ipAddress"][-1:] = []
    machine.configure(planned_pods=7)
    with running(machine) as process:
        assert len(machine.conflist["plugins"][0]["ipam"]["ranges"][0]) == 7
        machine.imds_document["network"]["interface"][0]["ipv4"]["ipAddress"].append({"privateIpAddress": "10.0.0.12"})
        machine.configure(planned_pods=8, not_masqueraded=["10.0.0.0/8", "172.20.0.0/16"])
        until(lambda: "nat: -A GPUFLEET-SNAT -d 172.20.0.0/16 -j RETURN" in rules(machine))
        until(lambda: len(machine.conflist["plugins"][0]["ipam"]["ranges"][0]) == 8, 45)
        assert (machine.state / "network.env").read_text() == "GPUFLEET_MAX_PODS=11\n"
        assert "unreachable 10.0.0.12 proto 76 metric 4096" in routes(machine)
        machine.settings.write_text("{")
        until(lambda: "no JSON" in str(snapshots.status(machine)["problems"]))
        assert process.poll() is None


def test_a_second_run_and_a_removal_are_refused_while_run_runs(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    with running(machine):
        for verb in ("run", "remove"):
            with pytest.raises(CommandError, match="another process holds this lock") as refused:
                machine.node(verb)
            assert len(refused.value.said.strip().splitlines()) == 1
        assert machine.node("apply") == ""


def test_concurrent_applies_end_well_and_leave_each_thing_once(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    processes = [machine.inside.start(*machine.node_command("apply")) for _ in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert len(rules(machine)) == len(set(rules(machine)))
    assert machine.node("apply") == ""
