"""Counts of nodes' requests and watches from an audit log."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

from bench.nodes import audit
from bench.nodes.audit import RequestKind

BEGAN = datetime.datetime(2026, 11, 21, 12, 0, tzinfo=datetime.UTC)
ENDED = BEGAN + datetime.timedelta(minutes=5)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-0"
PODS = "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-0&watch=true"


def event(second: float, verb: str, resource: str, uri: str, stage: str = "ResponseComplete", number: str = "1") -> dict[str, Any]:
    """An event of the log at a second after the begin."""
    moment = BEGAN + datetime.timedelta(seconds=second)
    return {
        "auditID": number,
        "stage": stage,
        "stageTimestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "verb": verb,
        "requestURI": uri,
        "userAgent": "hollow-kubelet",
        "objectRef": {"resource": resource},
    }


def test_only_requests_between_the_two_moments_are_counted() -> None:
    events = [event(second, "update", "leases", LEASE) for second in (-1, 0, 20, 299, 301)]
    assert audit.count(events, BEGAN, ENDED).requests == {RequestKind("kubelet", "update", "leases"): 3}


def test_a_watch_counts_once_as_a_request_and_as_open_until_it_ends() -> None:
    events = [
        event(-60, "watch", "pods", PODS, "ResponseStarted", "before"),
        event(10, "watch", "pods", PODS, "ResponseStarted", "ended"),
        event(90, "watch", "pods", PODS, "ResponseComplete", "ended"),
        event(91, "watch", "pods", PODS, "ResponseStarted", "again"),
        event(310, "watch", "pods", PODS, "ResponseComplete", "before"),
    ]
    counted = audit.count(events, BEGAN, ENDED)
    selected = RequestKind("kubelet", "watch", "pods", "spec.nodeName")
    assert (counted.requests, counted.watches) == ({selected: 2}, {selected: 2})


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    whole = json.dumps(event(1, "update", "leases", LEASE))
    log.write_text(f"{whole}\n{whole[:50]}")
    assert len(list(audit.read(log))) == 1
