"""gpufleet-join, which writes the kubelet's environment, run against a metadata service on loopback."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from azure_on_loopback import Azure, azure_on_loopback

from components.boot import kubelet, node

PROGRAM = Path(__file__).parents[2] / "components/boot/files/join.py"
SUBSCRIPTION = "a3c5e1f0-1b2d-4e6f-8a90-b1c2d3e4f501"
IP = """#!/bin/sh
case "$*" in
  *show*) cat "{shown}" ;;
  *) echo "$*" >>"{calls}" ;;
esac
"""
Run = Callable[..., tuple[int, str]]


def instance(name: str = "frontier-h100-000_7") -> dict[str, Any]:
    """Return the metadata of a machine with two pod addresses."""
    addresses = [{"privateIpAddress": address} for address in ("127.0.0.1", "10.8.0.21", "10.8.0.22")]
    return {
        "compute": {
            "vmId": "2f1c8a52-6f9a-4bb9-9a6d-3c9a2c2f6a10",
            "name": name,
            "vmScaleSetName": "frontier-h100-000",
            "resourceGroupName": "GF-southcentralus-frontier",
            "subscriptionId": SUBSCRIPTION,
        },
        "network": {"interface": [{"ipv4": {"ipAddress": addresses}}]},
    }


@pytest.fixture
def azure(tmp_path: Path) -> Iterator[Azure]:
    """Metadata service of one machine."""
    with azure_on_loopback(tmp_path) as services:
        services.instance = instance()
        yield services


@pytest.fixture
def run(azure: Azure, tmp_path: Path) -> Run:
    """Status and message of the program, with a stand-in for ip that shows one interface with all of the machine's addresses."""
    entries = [{"local": local, "prefixlen": 19, "scope": "global"} for local in ("10.8.0.21", "10.8.0.22", "10.8.0.99")]
    shown = [{"ifname": "eth0", "addr_info": entries}, {"ifname": "veth1", "addr_info": entries[:1]}]
    (tmp_path / "shown.json").write_text(json.dumps(shown))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ip").write_text(IP.format(shown=tmp_path / "shown.json", calls=tmp_path / "calls"))
    (tools / "ip").chmod(0o755)

    def call(spread: float = 0, deadline: float = 10) -> tuple[int, str]:
        environment = {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "GPUFLEET_IMDS": azure.imds,
            "GPUFLEET_NODE_ENV": str(tmp_path / "run/node.env"),
            "GPUFLEET_KUBELET_CERTIFICATE": str(tmp_path / "kubelet-client-current.pem"),
            "GPUFLEET_JOIN_TRIES": str(tmp_path / "run/tries"),
            "GPUFLEET_DEADLINE_SECONDS": str(deadline),
            "http_proxy": "http://127.0.0.1:9",
        }
        command = (sys.executable, str(PROGRAM), f"--spread-seconds={spread}")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    return call


def test_the_kubelet_learns_its_address_and_its_id_in_azure(run: Run, tmp_path: Path) -> None:
    assert run()[0] == 0
    group = f"azure:///subscriptions/{SUBSCRIPTION}/resourceGroups/gf-southcentralus-frontier"
    machine = "providers/Microsoft.Compute/virtualMachineScaleSets/frontier-h100-000/virtualMachines/7"
    assert (tmp_path / "run/node.env").read_text() == f"GPUFLEET_NODE_IP=127.0.0.1\nGPUFLEET_PROVIDER_ID={group}/{machine}\n"


def test_pods_addresses_are_taken_off_the_machines_own_interface_and_no_other_address_is(run: Run, tmp_path: Path) -> None:
    assert run()[0] == 0
    assert (tmp_path / "calls").read_text().splitlines() == [
        "address delete 10.8.0.21/19 dev eth0",
        "address delete 10.8.0.22/19 dev eth0",
    ]


def test_once_joined_a_restart_of_the_kubelet_asks_nobody_and_waits_for_nothing(run: Run, azure: Azure, tmp_path: Path) -> None:
    assert run()[0] == 0
    (tmp_path / "kubelet-client-current.pem").write_text("joined")
    azure.requests.clear()
    assert run(spread=3600) == (0, "")
    assert azure.requests == []


def test_a_machine_outside_a_scale_set_does_not_join(run: Run, azure: Azure, tmp_path: Path) -> None:
    azure.instance = instance(name="jump-host")
    status, message = run()
    assert (status, message) == (1, "gpufleet-join: cannot join: machine 'jump-host' is no instance of scale set 'frontier-h100-000'\n")
    assert not (tmp_path / "run/node.env").exists()


def test_an_address_that_azure_does_not_know_is_refused(run: Run, azure: Azure) -> None:
    azure.instance["network"]["interface"][0]["ipv4"]["ipAddress"].pop(0)
    status, message = run()
    assert (status, "address 127.0.0.1 is none of the machine's: 10.8.0.21, 10.8.0.22" in message) == (1, True)


def test_a_metadata_service_that_does_not_answer_is_given_up_at_the_deadline(run: Run, azure: Azure) -> None:
    azure.failures = {"/metadata/instance": [500] * 100}
    status, message = run(deadline=1.5)
    assert status == 1
    assert [line.partition(": HTTP")[0] for line in message.splitlines()] == [
        "gpufleet-join: no answer from the metadata service",
        "gpufleet-join: cannot join: no answer from the metadata service",
    ]


@pytest.fixture
def program() -> ModuleType:
    """The program as a module."""
    specification = importlib.util.spec_from_file_location("join_program", PROGRAM)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_first_joins_of_a_pool_spread_evenly_and_each_machine_waits_the_same_each_time(program: ModuleType) -> None:
    waits = [program.wait_seconds(75.0, 0, f"machine-{number}") for number in range(7_500)]
    assert waits == [program.wait_seconds(75.0, 0, f"machine-{number}") for number in range(7_500)]
    per_second = [sum(second <= wait < second + 1 for wait in waits) for second in range(75)]
    assert sum(per_second) == 7_500
    assert max(per_second) < 150


def test_after_a_failure_a_machine_waits_longer_each_time_up_to_five_minutes_and_not_in_step_with_others(program: ModuleType) -> None:
    longest = [max(program.wait_seconds(75.0, tries, f"machine-{number}") for number in range(500)) for tries in range(1, 12)]
    assert all(
        0.9 * bound < wait <= bound for wait, bound in zip(longest, (10, 20, 40, 80, 160, 300, 300, 300, 300, 300, 300), strict=True)
    )
    assert len({program.wait_seconds(75.0, 3, f"machine-{number}") for number in range(500)}) == 500


def test_the_program_and_the_units_mean_the_same_files(program: ModuleType) -> None:
    assert str(program.ENVIRONMENT) == node.ENVIRONMENT
    assert str(program.JOINED) == kubelet.CLIENT_CERTIFICATE
