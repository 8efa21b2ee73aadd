"""Counts of requests and open watches between two moments, from the API server's audit log."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from bench.nodes.hollow import AGENTS

POLICY = yaml.safe_dump(
    {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [{"level": "Metadata"}]}
)
"""Policy that logs every request of every user; the shipped policy omits routine requests of nodes."""
BEGUN, DONE = "ResponseStarted", "ResponseComplete"


@dataclass(frozen=True, order=True)
class RequestKind:
    """One kind of request: component, verb, resource, and by which name or in which namespace a watch selects."""

    component: str
    verb: str
    resource: str
    selected: str = ""


@dataclass
class Counted:
    """Requests that ended between two moments, and watches that were open at the second."""

    requests: Counter[RequestKind] = field(default_factory=Counter)
    watches: Counter[RequestKind] = field(default_factory=Counter)


def count(events: Iterable[Mapping[str, Any]], first: datetime.datetime, last: datetime.datetime) -> Counted:
    """Count events of the log."""
    counted, begun = Counted(), {}
    for event in events:
        at = datetime.datetime.fromisoformat(event["stageTimestamp"])
        if at > last:
            continue
        what = _what(event)
        if event["verb"] == "watch":
            # The end of a watch is not another request.
            if event["stage"] == BEGUN:
                begun[event["auditID"]] = what
                counted.requests[what] += at >= first
            else:
                begun.pop(event["auditID"], None)
        elif event["stage"] == DONE:
            counted.requests[what] += at >= first
    counted.watches.update(begun.values())
    return counted


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a log, without a last line that is still incomplete."""
    for line in path.read_text().splitlines(keepends=True):
        if line.endswith("}\n"):
            yield json.loads(line)


def _what(event: Mapping[str, Any]) -> RequestKind:
    reference = event.get("objectRef") or {}
    resource = "/".join(filter(None, (reference.get("resource"), reference.get("subresource")))) or urlsplit(event["requestURI"]).path
    return RequestKind(_component(event), event["verb"], resource, _selected(event, reference) if event["verb"] == "watch" else "")


def _component(event: Mapping[str, Any]) -> str:
    """Return the client of a request: a component of nodes, or the first word of the user agent."""
    agent = str(event.get("userAgent", "")).partition("/")[0].partition(" ")[0]
    return AGENTS.get(agent, agent)


def _selected(event: Mapping[str, Any], reference: Mapping[str, Any]) -> str:
    """Return the selectors of a watch, without the names of nodes and objects."""
    query = parse_qs(urlsplit(event["requestURI"]).query)
    fields = [text.partition("=")[0] for text in query.get("fieldSelector", ())]
    labels = ["labels"] if query.get("labelSelector") else []
    return ", ".join([*fields, *labels, *(["one namespace"] if reference.get("namespace") else [])])
