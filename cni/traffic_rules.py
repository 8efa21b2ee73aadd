"""Prometheus rules for a cluster's internet traffic: recorded rates and alerts.

The published iptables rules count everything outside of 10.0.0.0/8 as internet. Other rules count the part that is not internet, and the
expressions here subtract it.
The scrape configuration sets the labels region, cluster, node and job: docs/traffic.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from components import alerting
from components.alerting import BY_CLUSTER, Source
from components.plan.model import ClusterPlan

JOB = "gpufleet-traffic"
EVERY_SECONDS = 60
"""Seconds between two evaluations: a day's bytes are the sum of a rate's values times this."""
NAT_GATEWAY_BITS = 50e9
"""Bits a second through one NAT gateway, both ways together: https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource#performance"""
NAT_SHARE = 0.8
"""Share of the gateway's capacity that raises the alert; above 1 the gateway drops packets of all its clients."""
NOBODYS_SHARE = 0.05
"""Highest share of the pods' bytes without a known pod; pods that run for a few seconds cause some."""
GIB = 2**30
HOOKS = {
    ("out", "pods"): ("forward", "gpufleet-forward-out"),
    ("in", "pods"): ("forward", "gpufleet-forward-in"),
    ("out", "machine"): ("output", "gpufleet-output-out"),
    ("in", "machine"): ("input", "gpufleet-input-in"),
}
"""Chains of the published rule and of the rules subtracted from it, by direction and by source of the traffic."""


@dataclass(frozen=True)
class Record:
    """One recording rule: its name, expression and labels."""

    name: str
    expression: str
    labels: tuple[tuple[str, str], ...] = ()


class Alert(alerting.Alert):
    """An alert of a cluster's traffic."""

    page = "egress-high"


def gateways(cluster: ClusterPlan) -> dict[str, str]:
    """Return a regular expression of the machine names behind each NAT gateway: prefixes of scale sets, and Azure's six characters."""
    prefixes: dict[str, list[str]] = {}
    for pool in cluster.pools:
        for scale_set in pool.scale_sets:
            if gateway := cluster.network.subnet(scale_set.subnet_role).nat_gateway:
                prefixes.setdefault(gateway, []).append(scale_set.computer_name_prefix)
    return {gateway: f"(?:{'|'.join(names)})[0-9a-z]{{6}}" for gateway, names in prefixes.items()}


def records(region: str, cluster: ClusterPlan) -> tuple[Record, ...]:
    """Return all recording rules; each uses only those before it."""
    source = Source(region, cluster.name)
    return (*_of_nodes(source), *_of_pods(source, cluster), *_of_gateways(source, cluster))


def alerts(region: str, cluster: ClusterPlan) -> tuple[Alert, ...]:
    """Return all alerts of a cluster's traffic."""
    source = Source(region, cluster.name)
    own = _own(source)
    sent = f'sum_over_time(team:pod_internet_bytes:rate5m{{{source.matchers},direction="out"}}[1d])'
    pods = f"namespace:pod_internet_bytes:rate5m{{{source.matchers}"
    in_place = f"min by ({BY_CLUSTER}, node) (gpufleet_traffic_accounting_in_place{{{own}}})"
    return (
        Alert(
            "TeamEgressOverBudget",
            f"sum by ({BY_CLUSTER}, team) ({sent}) * {EVERY_SECONDS} > on ({BY_CLUSTER}, team) team:egress_budget_bytes{_only(source)}",
            10,
            "ticket",
            "Team {{ $labels.team }} sent {{ $value | humanize1024 }}B to the internet in 24 hours, more than its budget",
            "Find the pod in three steps, then ask the team whether it is meant; data that is fetched again and again belongs in a cache",
        ),
        Alert(
            "NatGatewayFull",
            f"nat_gateway:internet:share{_only(source)} > {NAT_SHARE}",
            10,
            "page",
            "NAT gateway {{ $labels.gateway }} carries {{ $value | humanizePercentage }} of what it can; beyond, it drops everybody's",
            "Find the pods in three steps, and have the largest stopped; internet.shaping of the region file holds all to a share",
        ),
        Alert(
            "AccountingMissing",
            f"{in_place} == 0 or min by ({BY_CLUSTER}, node) (up{{{own}}}) == 0",
            15,
            "ticket",
            "Internet traffic of {{ $labels.node }} is not counted, or not told",
            "Look at gpufleet-node on the machine, which puts rules back within seconds, and at the exporter's pod",
        ),
        Alert(
            "CountersRanBackwards",
            f"sum by ({BY_CLUSTER}, node) (increase(gpufleet_traffic_resets_total{{{own}}}[15m])) > 0",
            0,
            "ticket",
            "Counters of {{ $labels.node }} were set to 0 while they counted: what passed just before is lost",
            "Something on the machine flushes iptables or ipsets that are not its own: find it and stop it",
        ),
        Alert(
            "TrafficOfNobody",
            f'sum by ({BY_CLUSTER}) ({pods},namespace=""}}) / sum by ({BY_CLUSTER}) ({pods}}}) > {NOBODYS_SHARE}',
            30,
            "ticket",
            "{{ $value | humanizePercentage }} of the pods' internet traffic is of no known pod",
            "See which nodes' exporters get no answer from their kubelet: gpufleet_traffic_kubelet_answered_timestamp_seconds is old there",
        ),
    )


def rules(region: str, cluster: ClusterPlan, runbook_pattern: str) -> dict[str, Any]:
    """Return records and alerts in Prometheus' format: https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/"""
    recording = [
        {"record": one.name, "expr": one.expression} | ({"labels": dict(one.labels)} if one.labels else {})
        for one in records(region, cluster)
    ]
    written = [one.rule(Source(region, cluster.name), runbook_pattern) for one in alerts(region, cluster)]
    name = f"gpufleet-traffic-{region}-{cluster.name}"
    return {"groups": [{"name": name, "interval": f"{EVERY_SECONDS}s", "rules": [*recording, *written]}]}


def rules_file(region: str, cluster: ClusterPlan, runbook_pattern: str) -> str:
    """Return the rules as YAML."""
    return alerting.file_of(rules(region, cluster, runbook_pattern))


def _own(source: Source) -> str:
    return f'{source.matchers},job="{JOB}"'


def _only(source: Source) -> str:
    return f"{{{source.matchers}}}"


def _of_nodes(source: Source) -> Iterator[Record]:
    """Yield the internet traffic of each machine: the published rule less the rules that count other networks."""
    for (direction, whose), (chain, subtracted) in HOOKS.items():
        counted = _rate(f'{_own(source)},chain="{chain}",rule="openai traffic=internet-{direction}"')
        less = _rate(f'{_own(source)},chain="{subtracted}"')
        yield Record("node:internet_bytes:rate5m", f"{counted} - ({less} or 0 * {counted})", (("direction", direction), ("of", whose)))


def _rate(matchers: str) -> str:
    return f"sum by ({BY_CLUSTER}, node) (rate(iptables_bytes_total{{{matchers}}}[5m]))"


def _of_pods(source: Source, cluster: ClusterPlan) -> Iterator[Record]:
    name = "namespace:pod_internet_bytes:rate5m"
    rate = f"rate(pod_internet_bytes_total{{{_own(source)}}}[5m])"
    yield Record(name, f"sum by ({BY_CLUSTER}, namespace, team, direction) ({rate})")
    yield Record("team:pod_internet_bytes:rate5m", f"sum by ({BY_CLUSTER}, team, direction) ({name}{_only(source)})")
    for team in cluster.spec.tenancy.teams:
        labels = (*source.labels.items(), ("team", team.name))
        yield Record("team:egress_budget_bytes", f"vector({team.egress_gib_per_day * GIB})", labels)


def _of_gateways(source: Source, cluster: ClusterPlan) -> Iterator[Record]:
    """Yield the share of each gateway's capacity that its pods and machines use."""
    for gateway, nodes in gateways(cluster).items():
        passing = f'node:internet_bytes:rate5m{{{source.matchers},node=~"{nodes}"}}'
        yield Record("nat_gateway:internet:share", f"sum by ({BY_CLUSTER}) ({passing}) * 8 / {NAT_GATEWAY_BITS:g}", (("gateway", gateway),))
