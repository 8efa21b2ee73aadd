"""The outage of December 2024 replayed: agents on every node flood the API, and those who must be answered are."""

from __future__ import annotations

import json

import pytest
from faulty_plane import FaultyPlane, busy
from flooding import ACCOUNT, CONNECTIONS, NAMESPACE, USER, Flood, flood, prepare

from components.manifests.flow_control import AGENTS, CONCERN, seats
from components.manifests.owned import PART_OF
from rehearsal.local_cluster.machine import Machine

pytestmark = pytest.mark.xdist_group("overload")

FLOOD_SECONDS = 25.0
P99_SECONDS = 1.0
SCHEMA = "gpufleet-node-agents"
KINDS = "flowschemas,prioritylevelconfigurations"
FLEETS = f"{PART_OF}={CONCERN}"


def _contained(plane: FaultyPlane, seen: Flood) -> None:
    """Check that agents use only their own seats and are rejected beyond them, as the shipped objects promise."""
    own = seats(AGENTS, plane.control.cluster.api_servers)
    assert 0 < seen.seats.get(SCHEMA, 0) <= own
    assert seen.agents.get("429", 0) > 0


def _answered(seen: Flood) -> None:
    for who in ("break-glass", "operator", "heartbeat"):
        calls = seen.asked(who)
        assert calls.failures == [], who
        assert calls.quantile(0.99) < P99_SECONDS * busy(), who


def _book(plane: FaultyPlane, server: Machine) -> dict[str, str]:
    return {
        "KUBECONFIG": str(plane.control.direct_kubeconfig(server)),
        "AUDIT": str(server.path("/var/log/kubernetes/audit.log")),
        "NAMESPACE": NAMESPACE,
        "ACCOUNT": ACCOUNT,
    }


def test_people_and_nodes_are_answered_while_agents_of_every_node_flood_the_api(plane: FaultyPlane) -> None:
    prepare(plane)
    nodes, server = plane.ready_nodes(), plane.control.api_servers[0]
    runbook = plane.runbook("api-overload", server, **_book(plane, server))
    with flood(plane, FLOOD_SECONDS) as seen:
        plane.alerts.wait_for("PriorityLevelFull", seconds=2 * FLOOD_SECONDS)
        assert AGENTS.name in runbook.run("Which level is full")
    print(f"{CONNECTIONS} agents against the shipped objects, at {busy():.1f} programs a core: {seen.told()}")
    _contained(plane, seen)
    _answered(seen)
    assert plane.ready_nodes() == nodes
    assert USER in runbook.run("Find the busiest users")
    try:
        assert ACCOUNT in runbook.run("Stop it")
        with flood(plane, FLOOD_SECONDS / 2) as stopped:
            plane.alerts.wait_for("ApiServerRejectsFlow", "ApiServerThrottles")
    finally:
        runbook.run("Lift the stop")
    print(f"agents whose account is stopped were answered {stopped.agents}; most requests {stopped.requests}")
    # Requests, not seats: on a level that rejects, one list can count for 10 seats (no maximum is recorded for it), but still runs alone.
    # https://github.com/kubernetes/kubernetes/blob/v1.36.3/staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go#L883
    assert stopped.requests["stop"] <= 1
    assert stopped.agents["429"] > stopped.agents.get("200", 0)
    assert runbook.left == []


def test_without_the_shipped_objects_the_same_flood_takes_the_servers_for_itself(plane: FaultyPlane) -> None:
    prepare(plane)
    stored = json.loads(plane.kubectl("get", KINDS, "-l", FLEETS, "-o", "json"))
    assert stored["items"]
    plane.kubectl("delete", KINDS, "-l", FLEETS)
    try:
        with flood(plane, FLOOD_SECONDS) as seen:
            pass
        print(f"{CONNECTIONS} agents without them, at {busy():.1f} programs a core: {seen.told()}")
        with pytest.raises(AssertionError):
            _contained(plane, seen)
        own = seats(AGENTS, plane.control.cluster.api_servers)
        assert seen.seats["service-accounts"] > 2 * own
    finally:
        for item in stored["items"]:
            item["metadata"] = {key: item["metadata"][key] for key in ("name", "labels", "annotations") if key in item["metadata"]}
        plane.kubectl("apply", "--server-side", "--field-manager=gpufleet", "--force-conflicts", "-f", "-", document=stored)


def test_newcomers_that_storm_can_be_held_back_and_let_go(plane: FaultyPlane) -> None:
    server = plane.control.api_servers[0]
    runbook = plane.runbook("join-storm", server, KUBECONFIG=str(plane.control.direct_kubeconfig(server)))
    assert str(len(plane.ready_nodes())) in runbook.run("Measure the progress").split()

    def level() -> str:
        schema = plane.get("flowschema", "gpufleet-joining-nodes")
        return str(schema["spec"]["priorityLevelConfiguration"]["name"])

    before = level()
    runbook.run("Slow down joining nodes")
    assert level() == AGENTS.name
    runbook.run("Restore the normal priority")
    assert level() == before
    assert runbook.left == []
