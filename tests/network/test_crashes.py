"""Recovery from crashes of the node program and of the plugins."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import snapshots
from fabric import Azure, CniError, Machine
from snapshots import everything, refusal

pytestmark = pytest.mark.xdist_group("node-crashes")

LONG_AGO = time.time() - 3600

CRASH = """
import os, pathlib, signal, subprocess, sys

at, moment, seen = int(sys.argv.pop(1)), sys.argv.pop(1), 0


def dying(work, changes):
    def done(*given, **named):
        global seen
        if not changes(*given, **named):
            return work(*given, **named)
        seen += 1
        if seen == at and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = work(*given, **named)
        if seen == at and moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return done


subprocess.run = dying(subprocess.run, lambda *_, input="", **named: bool(input))
pathlib.Path.replace = dying(pathlib.Path.replace, lambda *_: True)

from cni.node.cli import main

status = main(sys.argv[1:])
print(seen)
sys.exit(status)
"""
"""The node program, killed before or after its Nth change: a batch for a program of the system, or a file put in its place."""


def forget(machine: Machine) -> None:
    """Has every reservation be of long ago."""
    for path in (machine.state / "cni" / "gpufleet").glob("*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def live(folder: Path, *sandboxes: str) -> None:
    """Write the list of live sandboxes that containerd reports."""
    (folder / "live").write_text("".join(f"{one}\n" for one in sandboxes))


def held(machine: Machine) -> list[str]:
    return sorted(path.name for path in (machine.state / "cni" / "gpufleet").glob("10.*"))


def connected(address: str) -> socket.socket:
    return socket.create_connection((address, 7), 5)


def crash(machine: Machine, at: int, moment: str) -> tuple[int, str]:
    words = list(machine.node_command("apply"))
    words[words.index("-m") : words.index("-m") + 2] = ["-c", CRASH, str(at), moment]
    process = machine.inside.start(*words)
    said, errors = process.communicate(timeout=60)
    assert errors == ""
    return process.returncode, said


def test_a_pass_that_is_killed_at_any_step_is_finished_by_the_next(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    nothing = everything(machine)
    ended, said = crash(machine, 0, "before")
    whole, steps = everything(machine), int(said.splitlines()[-1])
    assert (ended, steps >= 7) == (0, True)
    for at in range(1, steps + 1):
        for moment in ("before", "after"):
            machine.node("remove")
            assert everything(machine) == nothing
            assert crash(machine, at, moment)[0] == -signal.SIGKILL
            machine.node("apply")
            assert everything(machine) == whole, f"killed {moment} change {at}"
    assert machine.node("apply") == ""


def test_thirty_pods_at_once_get_an_address_each_and_one_more_is_refused(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path, 30)
    machine.node("apply")
    sandboxes = [machine.sandbox(f"p{number}") for number in range(30)]
    with ThreadPoolExecutor(30) as pool:
        pods = list(pool.map(machine.join, sandboxes))
    assert {pod.address for pod in pods} == set(machine.secondaries)
    with pods[0].within(lambda: socket.create_server((pods[0].address, 7), backlog=30)):
        for pod in pods[1:]:
            pod.within(lambda: connected(pods[0].address)).close()
    with pytest.raises(CniError, match="no IP addresses available in range set"):
        machine.add_pod("one-more")
    machine.delete_pod(pods[7])
    assert machine.add_pod("another").address == pods[7].address


def test_an_address_leaked_by_a_killed_add_is_freed_and_serves_the_next_pod(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path, 8)
    machine.node("apply")
    pods = machine.add_pods(f"p{number}" for number in range(7))
    # Its namespace stays: a runtime that crashed with its plugin forgets it, and the route of its link with it.
    leaked = machine.join(machine.sandbox("leaked"))
    forget(machine)
    live(tmp_path, *(pod.sandbox.id for pod in pods))
    with pytest.raises(CniError, match="no IP addresses available"):
        machine.add_pod("before")
    assert machine.node("reconcile") == f"address {leaked.address} freed: sandbox leaked is gone\n"
    following = machine.add_pod("after")
    assert following.address == leaked.address
    with following.within(lambda: socket.create_server((following.address, 7))), pods[0].within(lambda: connected(following.address)):
        pass


def test_addresses_of_adds_that_are_young_or_whose_runtime_cannot_be_asked_are_spared(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path)
    machine.node("apply")
    pod = machine.add_pod("young")
    assert machine.node("reconcile") == ""
    forget(machine)
    (tmp_path / "live").unlink()
    assert "ctr --namespace k8s.io" in refusal(machine, "reconcile")
    assert held(machine) == [pod.address]


def killed_add(machine: Machine, name: str, after: float) -> bool:
    """Starts an ADD of ptp and kills it with its children after `after` seconds; whether it had ended by then."""
    sandbox = machine.sandbox(name)
    plugin = machine.conflist["plugins"][0]
    given = json.dumps({**plugin, "cniVersion": machine.conflist["cniVersion"], "name": machine.conflist["name"]})
    environment = os.environ | machine.inside.environment | sandbox.environment("ADD", machine.plugins)

    def start() -> subprocess.Popen[bytes]:
        words = [str(machine.plugins["ptp"])]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(words, env=environment, start_new_session=True, **pipes)  # type: ignore[call-overload,no-any-return]

    with machine.within(start) as process:
        assert process.stdin is not None
        process.stdin.write(given.encode())
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(after)
        ended = process.returncode == 0
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    machine.discard(sandbox)
    return ended


def test_an_add_killed_at_any_moment_costs_no_address(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path, 8)
    machine.node("apply")
    leaked, moment, ended = set(), 0.0, False
    # How long an ADD takes depends on the machine: the moments grow until one ADD ends before it is killed.
    while not ended:
        ended = killed_add(machine, f"killed-{moment:.4f}", moment)
        leaked |= set(held(machine))
        forget(machine)
        machine.node("reconcile")
        assert held(machine) == []
        moment = 1.25 * moment + 0.001
    assert leaked, "an ADD that ended holds an address"
    assert {pod.address for pod in machine.add_pods(f"p{number}" for number in range(8))} == set(machine.secondaries)


def test_an_add_that_ends_between_two_plugins_costs_no_address(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path, 8)
    machine.node("apply")
    sandbox = machine.sandbox("half")
    conflist = machine.conflist
    first = {**conflist, "plugins": conflist["plugins"][:1]}
    machine.runtime.add(sandbox, first)
    # The kubelet tries again with the same sandbox only behind a DEL.
    with pytest.raises(CniError, match="duplicate allocation is not allowed"):
        machine.runtime.add(sandbox, first)
    machine.discard(sandbox)
    forget(machine)
    machine.node("reconcile")
    assert held(machine) == []


def test_an_empty_reservation_is_freed(azure: Azure, tmp_path: Path) -> None:
    machine = snapshots.machine(azure, tmp_path, 1)
    machine.node("apply")
    machine.delete_pod(machine.add_pod("first"))
    (machine.state / "cni" / "gpufleet" / "10.0.0.5").touch()
    with pytest.raises(CniError, match="no IP addresses available"):
        machine.add_pod("second")
    assert machine.node("reconcile") == "address 10.0.0.5 freed: its reservation was empty\n"
    assert machine.add_pod("third").address == "10.0.0.5"
