"""Members of etcd die, lose their majority or freeze under writes: nothing acknowledged is lost, and what need not stop goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from api_calls import Client, Watch
from faulty_plane import ETCD_UNIT, FaultyPlane, at_once, busy, until
from joining_cluster import pod
from writers import CONFIG_MAPS, ApiWriter, EtcdWriter

from rehearsal.local_cluster.cluster_checks import ready_names

pytestmark = pytest.mark.xdist_group("etcd faults")

EVENTS = "/api/v1/namespaces/default/events"
FOUND_ANEW = "Create an empty cluster if all disks are empty"
OUTAGE_SECONDS = 20.0
REFUSALS = ("504 Timeout: request did not complete within", "429 storage is (re)initializing", "RemoteDisconnected Remote end closed")
"""Errors of a consistent read. The second occurs after the server's own watch of etcd ended for lack of a leader."""
ANSWER_SECONDS = 10.0
"""Longest time without an acknowledged write of one client, on a machine with a core for every program: an election takes 2.5 to 5 s, and
a request that waits for a silent member is given up after 5."""


def _event(name: str) -> dict[str, object]:
    involved = {"kind": "Namespace", "name": "default", "namespace": "default"}
    return {"metadata": {"name": name, "namespace": "default"}, "involvedObject": involved, "reason": "Tested", "type": "Normal"}


def _ready_nodes(client: Client) -> set[str]:
    """Nodes that are ready, from the caches."""
    return ready_names(client.get("/api/v1/nodes?resourceVersion=0")["items"])


def _term(plane: FaultyPlane) -> int:
    """Elections that the main ring has seen, its raft term."""
    command = [*plane.etcdctl_on(plane.control.etcd), "endpoint", "status", "--write-out=json"]

    def asked() -> list[Any]:
        result = subprocess.run(command, capture_output=True, check=False).stdout
        found: list[Any] = json.loads(result) if result else []
        return found

    until(lambda: len(asked()) == len(plane.control.etcd), "every member tells its state")
    result = asked()
    return max(int(one["Status"]["raftTerm"]) for one in result)


def test_a_leader_that_is_killed_loses_nothing_and_comes_back_by_itself(plane: FaultyPlane) -> None:
    service = plane.leader().services[ETCD_UNIT]
    before = service.restarts
    with (
        ApiWriter(plane.kubeconfig, "one") as through_the_api,
        EtcdWriter(plane.etcdctl_on(plane.control.etcd), "/tests/one/") as straight,
    ):
        through_the_api.wait_for(20)
        straight.wait_for(3)
        service.kill()
        through_the_api.wait_for(40)
        straight.wait_for(3)
        until(lambda: service.restarts > before and service.state == "ready", "its unit has started it again")
        through_the_api.wait_for(20)
    gaps = {"API": through_the_api.longest_gap, "etcd": straight.longest_gap}
    print(f"one of three killed, at {busy():.1f} programs a core: longest gaps {gaps}; {len(through_the_api.failures)} failed writes")
    assert (through_the_api.lost(), straight.lost()) == ([], [])
    assert gaps["API"] < ANSWER_SECONDS * busy()


def test_without_a_majority_writes_say_why_and_caches_answer_until_etcd_ends_their_watches(plane: FaultyPlane) -> None:
    leader = plane.leader()
    gone = [leader, next(one for one in plane.control.etcd if one is not leader)]
    client, nodes = plane.client(), _ready_nodes(plane.client())
    watch = Watch(plane.kubeconfig, CONFIG_MAPS, version=client.get(f"{CONFIG_MAPS}?limit=1")["metadata"]["resourceVersion"])
    broke: list[str] = []

    def follow() -> None:
        try:
            for name in watch.events(300):
                if name == "last":
                    return
        except (OSError, AssertionError) as error:
            broke.append(f"{type(error).__name__}: {error}")

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    with (
        ApiWriter(plane.kubeconfig, "two") as through_the_api,
        EtcdWriter(plane.etcdctl_on(plane.control.etcd), "/tests/two/") as straight,
    ):
        through_the_api.wait_for(10)
        straight.wait_for(2)
        at_once(one.kill for one in gone)
        began = time.monotonic()
        try:
            newcomer = plane.client()
            assert newcomer.get(f"{CONFIG_MAPS}?resourceVersion=0")["items"]
            assert _ready_nodes(newcomer) == nodes
            plane.alerts.wait_for("EtcdNoLeader", "EtcdMemberDown", "EtcdQuorumAtRisk")
            _refused_in_words(plane)
            # Longer than the balancer needs to mark a server down, and than members wait before they end watches for want of a leader.
            time.sleep(max(0.0, began + OUTAGE_SECONDS - time.monotonic()))
            # A member without a leader for three elections' time ends its watches; a server whose cache lived by one fills it anew.
            later = newcomer.request("GET", f"{CONFIG_MAPS}?resourceVersion=0")
            assert later.status == 200 or later.message.startswith("storage is (re)initializing"), later
            assert plane.up() == {one.name for one in plane.control.api_servers}
            assert "[-]etcd failed" in newcomer.request("GET", "/readyz?verbose").text
        finally:
            at_once(one.start for one in gone)
        back = time.monotonic()
        through_the_api.wait_for(10)
        again = time.monotonic() - back
    print(f"two of three gone for {back - began:.0f} s, at {busy():.1f} programs a core: writes again {again:.1f} s after")
    assert (through_the_api.lost(), straight.lost()) == ([], [])
    plane.client().make(CONFIG_MAPS, {"metadata": {"name": "last"}})
    follower.join(60)
    print(f"the watch: {broke or 'one connection all the while'}")


def _refused_in_words(plane: FaultyPlane) -> None:
    """A write says why it failed; a consistent read is over when its time is, by an answer, or by a connection that is closed just then."""
    written, began = plane.client().request("POST", CONFIG_MAPS, {"metadata": {"name": "never"}}), time.monotonic()
    try:
        read = plane.client().request("GET", f"{CONFIG_MAPS}?timeout=3s")
    except ConnectionError as error:
        result = str(error)
    else:
        result = f"{read.status} {read.message}"
    took = time.monotonic() - began
    print(f"a write: {written.status} {written.message!r}; a consistent read of at most 3 s: {result!r} after {took:.1f} s")
    assert written.status in (500, 504)
    assert written.message.startswith(("etcdserver: request timed out", "Timeout: request did not complete within"))
    assert result.startswith(REFUSALS)
    assert took < ANSWER_SECONDS * busy()


def test_a_dead_events_ring_costs_events_alone(plane: FaultyPlane) -> None:
    client, servers = plane.client(), {one.name for one in plane.control.api_servers}
    nodes, members = _ready_nodes(client), plane.control.events
    client.make(EVENTS, _event("before"))
    at_once(partial(one.services[ETCD_UNIT].stop, signal.SIGKILL) for one in members)
    began = time.monotonic()
    try:
        plane.alerts.wait_for("EventsEtcdMemberDown", "EventsEtcdQuorumAtRisk")
        plane.make(pod("meanwhile"))
        until(lambda: client.get("/api/v1/namespaces/default/pods/meanwhile")["status"]["phase"] == "Running", "a new pod runs")
        assert not _made(plane, "lost")
        runbook = plane.runbook("events-etcd-lost", members[0], KUBECONFIG=str(plane.kubeconfig))
        seen = runbook.run("See that only events are lost")
        assert seen.startswith("ok")
        assert "[-]etcd-override-0 failed" in seen
        # Each server has been probed twice since the ring died.
        time.sleep(max(0.0, began + 12 - time.monotonic()))
        assert plane.up() == servers
        assert _ready_nodes(plane.client()) == nodes
        for one in members:
            runbook.environment = plane.runbook("events-etcd-lost", one).environment
            runbook.run("Start its members")
    finally:
        for one in members:
            one.services[ETCD_UNIT].start()
    plane.wait_whole()
    assert runbook.run("Is it back").split() == ["active"]
    assert runbook.left == [FOUND_ANEW]
    until(lambda: _made(plane, "after"), "events are taken again")
    names = {item["metadata"]["name"] for item in plane.client().get(EVENTS)["items"]} & {"before", "lost", "after"}
    assert names == {"before", "after"}
    plane.kubectl("delete", "pod", "meanwhile", "--wait=false")


def test_an_events_ring_that_lost_its_disks_waits_until_it_is_founded_anew(plane: FaultyPlane) -> None:
    plane.client().make(EVENTS, _event("old"))
    members = plane.control.events
    logs = {one.name: one.services[ETCD_UNIT].program.log for one in members}
    said = {name: log.stat().st_size for name, log in logs.items()}
    at_once(one.wipe_nvme for one in members)
    for name, log in logs.items():
        until(lambda log=log, name=name: b"its disk is empty; it waits" in log.read_bytes()[said[name] :], f"{name} says that it waits")
    for one in members:
        marker = str(one.path("/var/lib/gpufleet/etcd-member"))
        runbook = plane.runbook("events-etcd-lost", one, KUBECONFIG=str(plane.kubeconfig), MARKER=marker)
        assert runbook.run("See that only events are lost").startswith("ok")
        runbook.run("Start its members")
        runbook.run(FOUND_ANEW)
    plane.wait_whole()
    assert runbook.run("Is it back").split() == ["active"]
    assert runbook.left == []
    until(lambda: _made(plane, "anew"), "events are taken again")
    names = {item["metadata"]["name"] for item in plane.client().get(EVENTS)["items"]}
    assert "anew" in names
    assert "old" not in names


def _made(plane: FaultyPlane, name: str) -> bool:
    with suppress(OSError):
        return plane.client(5).request("POST", EVENTS, _event(name)).status in (201, 409)
    return False


def test_a_frozen_leader_causes_one_election_and_the_api_goes_on(plane: FaultyPlane) -> None:
    frozen, term = plane.leader(), _term(plane)
    service = frozen.services[ETCD_UNIT]
    with ApiWriter(plane.kubeconfig, "frozen") as writer:
        writer.wait_for(20)
        service.kill(signal.SIGSTOP)
        try:
            plane.alerts.wait_for("EtcdMemberDown")
            writer.wait_for(3)
            runbook = plane.runbook("etcd-member-frozen", frozen, METRICS=f"http://127.0.0.1:{frozen.port(2381)}/metrics")
            assert runbook.run("Is it running").split() == ["active"]
            runbook.run("Does it answer", fails=True)
            runbook.run("Restart the member")
            assert runbook.left == []
        finally:
            service.kill(signal.SIGCONT)
        until(lambda: service.state == "ready", "the member is back")
        writer.wait_for(20)
    elections = _term(plane) - term
    result = f"gap {writer.longest_gap:.1f} s, {elections} elections, failed writes {writer.failures}"
    print(f"leader frozen, at {busy():.1f} programs a core: {result}")
    assert writer.lost() == []
    assert writer.longest_gap < ANSWER_SECONDS * busy()
    assert 1 <= elections <= 1 + busy()
