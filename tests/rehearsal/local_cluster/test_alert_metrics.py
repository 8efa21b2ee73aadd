"""Every metric that an alert asks for is one that the running programs of the pinned versions have, with the labels that it selects by."""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from plane_tls import context, get, identity
from running_plane import RunningPlane
from waiting import until

from components.manifests.control_plane_alerts import alerts
from components.plan.model import API_SERVER_PORT
from rehearsal.local_cluster.machine import Machine

GIVEN_BY_PROMETHEUS = {"up"}
SET_BY_SCRAPING = {"region", "cluster", "job", "instance"}
METRICS_PORT = 2381
SELECTOR = re.compile(r"([a-z_:]+)\{([^}]*)\}")
LABEL = re.compile(r'(\w+)(?:=~|!=|!~|=)"')
TIGHT = "alert-metrics"


def _exposed(text: str) -> dict[str, set[str]]:
    """Label names of every metric of a scrape, by the metric's name."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^([a-z_:]+)(?:\{(.*)\})? ", text, re.MULTILINE):
        found.setdefault(name, set()).update(LABEL.findall(labels))
    return found


def _metrics(running: RunningPlane) -> dict[str, set[str]]:
    """Return the metrics of all programs of the control plane."""
    plane = running.control
    found: dict[str, set[str]] = {}
    for machine in plane.api_servers:
        admin = context(None, identity(machine, "admin"))
        for port in (API_SERVER_PORT, 10257, 10259):
            found |= {name: found.get(name, set()) | labels for name, labels in _scraped(machine, port, admin).items()}
    for machine in (plane.etcd[0], plane.events[0]):
        found |= _scraped(machine, METRICS_PORT, None)
    return found


def _scraped(machine: Machine, port: int, trust: ssl.SSLContext | None) -> Mapping[str, set[str]]:
    try:
        answer = get(machine.port(port), "/metrics", trust)
    except ConnectionRefusedError:
        # Controller managers and schedulers start after their API server is ready.
        return {}
    assert answer.status == 200, (machine.name, port)
    return _exposed(answer.text)


@pytest.fixture
def busy(running_plane: RunningPlane) -> Iterator[RunningPlane]:
    """A control plane in which something was refused and a node is judged: counters without an occasion are not exposed."""
    shares = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0}
    level = {"type": "Limited", "limited": {**shares, "limitResponse": {"type": "Reject"}}}
    resources = {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "clusterScope": True}
    subjects = [{"kind": "User", "user": {"name": "system:kube-scheduler"}}]
    flow = {"matchingPrecedence": 100, "priorityLevelConfiguration": {"name": TIGHT}}
    for kind, spec in (
        ("PriorityLevelConfiguration", level),
        ("FlowSchema", {**flow, "rules": [{"subjects": subjects, "resourceRules": [resources]}]}),
    ):
        document = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind, "metadata": {"name": TIGHT}, "spec": spec}
        running_plane.kubectl("create", "-f", "-", document=document)
    running_plane.kubectl("create", "-f", "-", document={"apiVersion": "v1", "kind": "Node", "metadata": {"name": TIGHT}})
    server = running_plane.control.api_servers[0]
    scheduler = context(running_plane.control.authority, identity(server, "scheduler"))

    def ask(_: int) -> int:
        with suppress(OSError):
            return get(server.port(API_SERVER_PORT), "/api/v1/configmaps", scheduler).status
        return 0

    with ThreadPoolExecutor(16) as pool:
        until(lambda: 429 in pool.map(ask, range(64)), "a request is turned away", 120)
    yield running_plane
    running_plane.kubectl("delete", "flowschema,prioritylevelconfiguration", TIGHT)
    running_plane.kubectl("delete", "node", TIGHT)


def test_every_alert_asks_for_metrics_that_the_programs_have(busy: RunningPlane) -> None:
    expected = [
        (alert.name, metric, set(LABEL.findall(selector)) - SET_BY_SCRAPING)
        for alert in alerts("dev", busy.cluster)
        for metric, selector in SELECTOR.findall(alert.expression)
        if metric not in GIVEN_BY_PROMETHEUS
    ]
    assert len(expected) > 20
    deadline, missing = time.monotonic() + 60, [("", "", set[str]())]
    while missing and time.monotonic() < deadline:
        exposed = _metrics(busy)
        missing = [row for row in expected if row[1] not in exposed or not row[2] <= exposed[row[1]]]
    assert missing == []
