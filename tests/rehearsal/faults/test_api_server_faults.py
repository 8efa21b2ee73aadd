"""API servers die, stop in order, or are lost with everything else: clients retry briefly, watches miss nothing, break-glass works."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from api_calls import Watch
from callers import Callers
from faulty_plane import FaultyPlane, at_once, busy, until
from writers import CONFIG_MAPS, ApiWriter

from components.boot.api_server import ADMIN_KUBECONFIG, API_SERVER_UNIT

pytestmark = pytest.mark.xdist_group("API server faults")

CALLERS = 8
GAP_SECONDS = 15.0
"""Longest time without an answer of one caller, on a machine with a core for every program: two probes, 5 s apart, mark a dead server down,
and a caller may have to wait for one request's 5 s besides."""


class Follower(threading.Thread):
    """Follows the ConfigMaps by a watch that it opens again from where it was."""

    def __init__(self, kubeconfig: Path, version: str) -> None:
        super().__init__(daemon=True)
        self.watch, self.opened, self.over = Watch(kubeconfig, CONFIG_MAPS, version=version), 0, threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            self.opened += 1
            with suppress(OSError):
                for _ in self.watch.events(5):
                    pass
            self.over.wait(0.2)


def _under_calls(plane: FaultyPlane, name: str, deed: Callable[[], None]) -> tuple[Callers, ApiWriter, Follower]:
    """Do something to the servers while clients read, write and watch; what became of these."""
    version = plane.client().get(f"{CONFIG_MAPS}?limit=1")["metadata"]["resourceVersion"]
    follower = Follower(plane.kubeconfig, version)
    follower.start()
    with ApiWriter(plane.kubeconfig, name) as writer, Callers(plane.kubeconfig, CALLERS) as callers:
        writer.wait_for(10)
        callers.wait_for(5 * CALLERS)
        deed()
        writer.wait_for(10)
        callers.wait_for(5 * CALLERS)
    expected = {f"{name}-{number:06d}" for number in writer.acknowledged}
    until(lambda: expected <= set(follower.watch.names), "the watch has told of every object")
    follower.over.set()
    follower.join()
    summary = f"{len(callers.failures)} of {callers.answered} reads and {len(writer.failures)} of {len(writer.acknowledged)} writes failed"
    gaps = f"longest gaps {max(callers.gaps):.1f} s and {writer.longest_gap:.1f} s; watch opened {follower.opened} times"
    print(f"{name}, at {busy():.1f} programs a core: {summary}; {gaps}; {callers.failures[:2]} {writer.failures[:2]}")
    names = [one for one in follower.watch.names if one.startswith(f"{name}-")]
    assert len(names) == len(set(names))
    assert writer.lost() == []
    return callers, writer, follower


def test_clients_of_an_api_server_that_is_killed_retry_briefly_and_miss_nothing(plane: FaultyPlane) -> None:
    gone, other = plane.control.api_servers

    def kill() -> None:
        gone.kill()
        until(lambda: plane.up() == {other.name}, "the balancer has found out")
        plane.alerts.wait_for("ApiServerMissing")
        gone.start()
        until(lambda: plane.up() == {gone.name, other.name}, "both are let in")

    callers, writer, _ = _under_calls(plane, "killed", kill)
    assert max(callers.gaps) < GAP_SECONDS * busy()
    assert writer.longest_gap < GAP_SECONDS * busy()
    assert len(callers.failures) < callers.answered * 0.05 * busy()


def test_clients_of_an_api_server_that_stops_in_order_notice_nothing_that_one_retry_does_not_mend(plane: FaultyPlane) -> None:
    stops, other = plane.control.api_servers

    def stop() -> None:
        runbook = plane.runbook("api-server-lost", stops, KUBECONFIG=str(other.path(ADMIN_KUBECONFIG)))
        began = time.monotonic()
        runbook.run("Remove a failing server")
        print(f"stopped in {time.monotonic() - began:.1f} s")
        assert plane.up() == {other.name}
        assert "readyz check passed" in runbook.run("Query the remaining servers")
        assert "apiserver-" in runbook.run("Check the servers' leases")
        runbook.run("On the missing server's machine", fails=True)
        runbook.run("Add the server again")
        assert runbook.left == []
        until(lambda: plane.up() == {stops.name, other.name}, "both are let in")

    callers, writer, _ = _under_calls(plane, "stopped", stop)
    assert callers.failures == []
    assert writer.longest_gap < GAP_SECONDS * busy()
    # A writer tries nothing twice: it may meet the moment in which its connection is closed.
    assert len(writer.failures) <= 2 * busy()


def test_a_control_plane_that_lost_all_power_comes_back_by_itself_with_all_it_had(plane: FaultyPlane) -> None:
    nodes = {one["metadata"]["name"] for one in plane.client().get("/api/v1/nodes")["items"]}
    with ApiWriter(plane.kubeconfig, "dark") as writer:
        writer.wait_for(20)
        at_once(one.kill for one in plane.control.machines)
        plane.alerts.wait_for("ApiServerDown")
        began = time.monotonic()
        at_once(one.start for one in plane.control.machines)
        plane.control.wait_ready(240)
        back = time.monotonic() - began
        writer.wait_for(10)
    print(f"all power lost, at {busy():.1f} programs a core: ready {back:.1f} s after it came back")
    assert writer.lost() == []
    whole = plane.wait_whole()
    print(f"everything runs {whole:.1f} s later")
    until(lambda: plane.ready_nodes() == nodes, "every node is ready")
    server, member = plane.control.api_servers[0], plane.control.etcd[0]
    runbook = plane.runbook("control-plane-dark", member, KUBECONFIG=str(server.path(ADMIN_KUBECONFIG)))
    assert set(runbook.run("On each etcd machine").split()) == {"active"}
    runbook.environment = plane.runbook("control-plane-dark", server).environment
    assert set(runbook.run("On each machine of an API server").split()) == {"active"}
    assert "readyz check passed" in runbook.run("Is everything back")
    assert runbook.left == []


def test_break_glass_needs_no_controller_no_pod_and_no_more_than_a_majority(plane: FaultyPlane) -> None:
    left, dead = plane.control.api_servers
    services = [left.services[name] for name in left.enabled if name not in (API_SERVER_UNIT, "gpufleet-secrets.service")]
    assert len(services) == 3
    at_once([dead.kill, plane.control.etcd[0].kill, *(service.stop for service in services)])
    plane.control.balancer.stop()
    try:
        kubeconfig = plane.control.direct_kubeconfig(left)
        node = min(plane.machines(), key=lambda one: one.name).name
        runbook = plane.runbook("break-glass", left, KUBECONFIG=str(kubeconfig), NODE=node)
        assert "gpufleet-break-glass" in runbook.run("Who am I")
        assert "readyz" in runbook.run("What is wrong")
        assert "cordoned" in runbook.run("Cordon and uncordon a node")
        assert "created" in runbook.run("Stop a flooding account")
        assert "deleted" in runbook.run("Lift the stop")
        assert _outside(plane, kubeconfig) == []
        runbook.exports = runbook.exports.replace(str(kubeconfig), str(left.path(ADMIN_KUBECONFIG)))
        assert "gpufleet-break-glass" in runbook.run("Who am I")
        assert runbook.left == []
    finally:
        plane.control.balancer.start()
        for service in services:
            service.start()
        at_once([dead.start, plane.control.etcd[0].start])


def _outside(plane: FaultyPlane, kubeconfig: Path) -> list[str]:
    """List the external servers that an API server calls for a pod: webhooks and aggregated servers."""
    command = [str(plane.binaries.program("kubectl")), f"--kubeconfig={kubeconfig}", "get", "-o", "json"]
    kinds = "apiservices,validatingwebhookconfigurations,mutatingwebhookconfigurations"
    items = json.loads(subprocess.run([*command, kinds], capture_output=True, check=True).stdout)["items"]
    return [one["metadata"]["name"] for one in items if one["kind"] != "APIService" or one["spec"].get("service")]
