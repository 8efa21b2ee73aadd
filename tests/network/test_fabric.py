"""The fabric is as strict as Azure, and leaves nothing behind, however what used it ended."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from fabric import IMDS, INTERNET, Answer, Azure, Machine, fabric
from talking import call, tcp_server

pytestmark = pytest.mark.xdist_group("fabric")

HERE = Path(__file__).parent
URL = "/metadata/instance/network?api-version=2021-02-01"
KILLED = """
import os, sys
sys.path[:0] = [{here!r}, {root!r}]
from fabric import fabric
with fabric() as azure:
    machine = azure.machine("m1", "10.66.0.4", ["10.66.0.5"])
    machine.inside.start("sleep", "600")
    with machine.inside.capture("eth0"):
        print("up", flush=True)
        sys.stdin.read()
"""


def ask(machine: Machine, url: str = URL, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
    """Status and body with which the metadata service answers a machine; HTTPException or OSError where it does not to the end."""

    def work() -> tuple[int, bytes]:
        with contextlib.closing(http.client.HTTPConnection(IMDS, timeout=3)) as link:
            link.request("GET", url, headers={"Metadata": "true"} if headers is None else headers)
            answer = link.getresponse()
            return answer.status, answer.read()

    return machine.within(work)


def test_each_machine_is_told_of_its_own_card_and_wrong_questions_are_refused(azure: Azure) -> None:
    one, two = azure.machine("m1", "10.66.0.4", ["10.66.0.5"]), azure.machine("m2", "10.66.0.8")
    for machine in (one, two):
        (card,) = json.loads(ask(machine)[1])["interface"]
        shown = [row["privateIpAddress"] for row in card["ipv4"]["ipAddress"]]
        assert shown == [machine.primary, *machine.secondaries]
        assert card["macAddress"] == machine.mac.replace(":", "").upper()
    subnet = ask(one, URL.replace("network", "network/interface/0/ipv4/subnet"))
    assert json.loads(subnet[1]) == [{"address": "10.66.0.0", "prefix": "24"}]
    assert ask(one, URL, {})[0] == 400
    assert ask(one, URL, {"Metadata": "true", "X-Forwarded-For": "10.66.0.5"})[0] == 400
    assert ask(one, URL.partition("?")[0])[0] == 400
    assert ask(one, URL.replace("network", "nothing"))[0] == 404


def test_the_metadata_service_fails_as_it_is_told_to_and_for_one_machine_alone(azure: Azure) -> None:
    one, two = azure.machine("m1", "10.66.0.4"), azure.machine("m2", "10.66.0.8")
    one.imds.first = [Answer(status=500), Answer(reset=True), Answer(body=b"{"), Answer(declared=100_000)]
    assert ask(one)[0] == 500
    assert ask(two)[0] == 200
    with pytest.raises(ConnectionResetError):
        ask(one)
    assert ask(one) == (200, b"{")
    with pytest.raises(http.client.IncompleteRead):
        ask(one)
    assert json.loads(ask(one)[1]) == one.imds_document["network"]
    assert len(one.imds.requests) == 5


def test_only_addresses_of_a_card_leave_it_and_the_nat_gateway_takes_primary_ones_until_told_otherwise(azure: Azure) -> None:
    machine = azure.machine("m1", "10.66.0.4", ["10.66.0.5"])
    with tcp_server(azure.internet, INTERNET) as server:
        for source, reaches in (("10.66.0.4", True), ("10.66.0.5", False), ("10.66.0.6", False)):
            machine.run("ip", "address", "replace", f"{source}/32", "dev", "lo")
            machine.run("ip", "route", "replace", INTERNET, "via", "10.66.0.1", "src", source)
            if reaches:
                call(machine, INTERNET)
            else:
                with pytest.raises(TimeoutError):
                    call(machine, INTERNET)
        assert azure.refused(machine) > 0
        azure.let_secondaries_leave(True)
        machine.run("ip", "route", "replace", INTERNET, "via", "10.66.0.1", "src", "10.66.0.5")
        call(machine, INTERNET)
    assert set(server.seen) == {"203.0.113.7"}


def fail() -> None:
    """Fail in the middle of a test."""
    with fabric() as azure:
        azure.machine("m1", "10.66.0.4")
        assert left(os.getpid())
        raise ZeroDivisionError


def left(process: int) -> list[str]:
    """Namespaces, folders and captures of a process."""
    folders = (Path("/run/netns"), Path(tempfile.gettempdir()))
    return [path.name for folder in folders for path in folder.glob(f"gf-{process}-*")]


def test_nothing_is_left_behind_an_exception_and_the_next_removes_what_a_killed_process_left() -> None:
    with pytest.raises(ZeroDivisionError):
        fail()
    assert left(os.getpid()) == []
    program = KILLED.format(here=str(HERE), root=str(HERE.parents[1]))
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "up\n"
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    assert len(left(killed.pid)) == 5
    with fabric():
        assert left(killed.pid) == []
