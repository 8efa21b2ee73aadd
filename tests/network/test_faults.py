"""The node program with a metadata service that is down, late, wrong or partial, and after a reboot."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import snapshots
from fabric import Answer, Azure, Machine
from snapshots import everything, files, refusal, routes, status

pytestmark = pytest.mark.xdist_group("node-faults")


def rows(machine: Machine) -> list[dict[str, str]]:
    """The addresses as the metadata service tells them, to be changed in place."""
    found: list[dict[str, str]] = machine.imds_document["network"]["interface"][0]["ipv4"]["ipAddress"]
    return found


def network(machine: Machine, count: int) -> Answer:
    """An answer with fewer secondary addresses than there are."""
    document = copy.deepcopy(machine.imds_document["network"])
    del document["interface"][0]["ipv4"]["ipAddress"][count + 1 :]
    return Answer(body=json.dumps(document).encode())


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(status=503), "HTTP 503; HTTP 200"),
        (Answer(reset=True), "no answer (Connection reset by peer)"),
        (Answer(body=b'{"interface": []}'), "one card is that of one link"),
        (Answer(declared=5_000), "cut off"),
    ],
)
def test_without_a_sound_answer_nothing_is_put_in_place(azure: Azure, tmp_path: Path, answer: Answer, why: str) -> None:
    machine = snapshots.machine(azure, tmp_path)
    before = everything(machine)
    machine.imds.always = answer
    assert why in refusal(machine, "apply", "--patience", "1")
    assert everything(machine) == before
    assert "nothing since this machine booted" in refusal(machine, "status")


def test_a_metadata_service_that_is_late_and_wrong_at_first_is_asked_until_it_is_right(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.imds.first += [Answer(delay=5.5), Answer(body=b'{"interface": [{}]}'), Answer(status=429)]
    machine.node("apply")
    assert len(machine.imds.requests) == 4
    assert status(machine)["warnings"] == []


def test_half_an_answer_is_not_taken_when_the_whole_one_follows(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.imds.first += [network(machine, 1), network(machine, 5)]
    machine.node("apply")
    assert (machine.state / "network.env").read_text() == "GPUFLEET_MAX_PODS=11\n"
    assert status(machine)["warnings"] == []


def test_a_card_that_stays_short_is_taken_with_a_warning_and_fewer_pods(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.configure(planned_pods=30)
    machine.node("apply")
    assert (machine.state / "network.env").read_text() == "GPUFLEET_MAX_PODS=11\n"
    assert "eth0 has 8 addresses for pods; planned are 30" in machine.node("status")


def test_with_the_metadata_service_down_what_it_said_before_in_this_boot_goes_on(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.node("apply")
    before = everything(machine)
    machine.imds.always = Answer(status=500)
    machine.run("iptables", "-t", "nat", "-F")
    assert "continuing with its earlier answer" in machine.node("apply", "--patience", "1")
    assert everything(machine) == before


def said_until(process: subprocess.Popen[str], line: str) -> None:
    """Reads what a process says up to a line; fails where it ends before."""
    assert process.stdout is not None
    said = [""]
    while not said[-1].startswith(line):
        said.append(process.stdout.readline())
        assert said[-1], f"it ended before it said {line}: {said}"


def test_run_is_ready_only_once_the_card_is_known_and_at_once_when_it_is_started_again(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.imds.always = Answer(status=503)
    first = machine.inside.start(*machine.node_command("run"))
    said_until(first, "problem: http://169.254.169.254: HTTP 503")
    assert "HTTP 503" in refusal(machine, "status")
    assert files(machine).keys() == {"network-status.json"}
    machine.imds.always = Answer()
    said_until(first, "ready")
    said_until(first, "card: resolved")
    before = everything(machine)
    first.kill()
    first.wait()
    machine.run("iptables", "-t", "nat", "-F")
    machine.imds.always = Answer(status=503)
    second = machine.inside.start(*machine.node_command("run"))
    said_until(second, "ready")
    said_until(second, "problem: http://169.254.169.254: HTTP 503")
    assert snapshots.rules(machine) == before["rules"]


def test_an_address_that_left_the_card_leaves_the_machine(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.node("apply")
    gone = rows(machine).pop()["privateIpAddress"]
    machine.configure(planned_pods=7)
    machine.node("apply")
    assert f"unreachable {gone} proto 76 metric 4096" not in routes(machine)
    assert gone not in (machine.cni / "10-gpufleet.conflist").read_text()
    assert (machine.state / "network.env").read_text() == "GPUFLEET_MAX_PODS=10\n"
    assert not [line for line in snapshots.sets(machine) if line.split()[2] == gone]


def test_after_a_reboot_every_address_is_free_and_all_is_in_place_again(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path, 8)
    machine.node("apply")
    before = everything(machine)
    for pod in machine.add_pods(f"p{number}" for number in range(8)):
        machine.discard(pod.sandbox)
    for table in ("filter", "nat", "mangle"):
        machine.run("iptables", "-t", table, "-F")
        machine.run("iptables", "-t", table, "-X")
    machine.run("ipset", "destroy")
    machine.run("ip", "route", "flush", "type", "unreachable")
    shutil.rmtree(machine.state)
    assert sorted(files(machine)) == ["10-gpufleet.conflist"]
    machine.node("apply")
    assert everything(machine) == before
    assert {pod.address for pod in machine.add_pods(f"q{number}" for number in range(8))} == set(machine.secondaries)


def test_the_program_needs_nothing_but_the_standard_library(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    words = list(machine.node_command("apply"))
    words[words.index(sys.executable)] = sys._base_executable  # type: ignore[attr-defined]
    words.insert(words.index("-m"), "-S")
    machine.run(*words)
    assert status(machine)["ready"] is True
