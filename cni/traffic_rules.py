"""Which rates are kept of a cluster's traffic with the internet, and when somebody is told of it: Prometheus rules, by the plan's numbers.

The published rules of iptables count as internet whatever is not 10.0.0.0/8; what is none is counted beside them and subtracted here. What
scrapes the exporters sets the labels cluster, node and job; docs/traffic.md has its configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from components import alerting
from components.plan.model import ClusterPlan

JOB = "gpufleet-traffic"
RUNBOOK = "docs/runbooks/egress-high.md"
EVERY_SECONDS = 60
"""Between two evaluations: a day's bytes are the sum of a rate's values, each of which stands for so long."""
NAT_GATEWAY_BITS = 50e9
"""Bits a second through one NAT gateway, both ways together: https://learn.microsoft.com/azure/nat-gateway/nat-gateway-resource#performance"""
NAT_SHARE = 0.8
"""Share at which there is still time: beyond 1 the gateway drops packets of everybody behind it."""
NOBODYS_SHARE = 0.05
"""Share of the pods' bytes that no pod is known for; addresses of pods shorter than a few seconds make some."""
GIB = 2**30
HOOKS = {
    ("out", "pods"): ("forward", "gpufleet-forward-out"),
    ("in", "pods"): ("forward", "gpufleet-forward-in"),
    ("out", "machine"): ("output", "gpufleet-output-out"),
    ("in", "machine"): ("input", "gpufleet-input-in"),
}
"""Chains of the published rule and of what is subtracted from it, by direction and by whose traffic it is."""


@dataclass(frozen=True)
class Record:
    """One recording rule: expression is kept under name, with labels."""

    name: str
    expression: str
    labels: tuple[tuple[str, str], ...] = ()


class Alert(alerting.Alert):
    """An alert of a cluster's traffic."""

    document = RUNBOOK


def gateways(cluster: ClusterPlan) -> dict[str, str]:
    """Names of the machines behind each NAT gateway, as a regular expression: their scale sets' prefixes, and Azure's six characters."""
    prefixes: dict[str, list[str]] = {}
    for pool in cluster.pools:
        for scale_set in pool.scale_sets:
            if gateway := cluster.network.subnet(scale_set.subnet_role).nat_gateway:
                prefixes.setdefault(gateway, []).append(scale_set.computer_name_prefix)
    return {gateway: f"(?:{'|'.join(names)})[0-9a-z]{{6}}" for gateway, names in prefixes.items()}


def records(cluster: ClusterPlan) -> tuple[Record, ...]:
    """Every rate that is kept; each uses only those before it."""
    return (*_of_nodes(cluster.name), *_of_pods(cluster), *_of_gateways(cluster))


def alerts(cluster: ClusterPlan) -> tuple[Alert, ...]:
    """Every alert of a cluster's traffic."""
    own = _own(cluster.name)
    sent = f'sum_over_time(team:pod_internet_bytes:rate5m{{cluster="{cluster.name}",direction="out"}}[1d])'
    pods = f'namespace:pod_internet_bytes:rate5m{{cluster="{cluster.name}"'
    in_place = f"min by (cluster, node) (gpufleet_traffic_accounting_in_place{{{own}}})"
    return (
        Alert(
            "TeamEgressOverBudget",
            f"sum by (cluster, team) ({sent}) * {EVERY_SECONDS} > on (cluster, team) team:egress_budget_bytes{_only(cluster.name)}",
            10,
            "ticket",
            "Team {{ $labels.team }} sent {{ $value | humanize1024 }}B to the internet in 24 hours, more than its budget",
            "Find the pod in three steps, then ask the team whether it is meant; data that is fetched again and again belongs in a cache",
        ),
        Alert(
            "NatGatewayFull",
            f"nat_gateway:internet:share{_only(cluster.name)} > {NAT_SHARE}",
            10,
            "page",
            "NAT gateway {{ $labels.gateway }} carries {{ $value | humanizePercentage }} of what it can; beyond, it drops everybody's",
            "Find the pods in three steps, and have the largest stopped; internet.shaping of the region file holds all to a share",
        ),
        Alert(
            "AccountingMissing",
            f"{in_place} == 0 or min by (cluster, node) (up{{{own}}}) == 0",
            15,
            "ticket",
            "Internet traffic of {{ $labels.node }} is not counted, or not told",
            "Look at gpufleet-node on the machine, which puts rules back within seconds, and at the exporter's pod",
        ),
        Alert(
            "CountersRanBackwards",
            f"sum by (cluster, node) (increase(gpufleet_traffic_resets_total{{{own}}}[15m])) > 0",
            0,
            "ticket",
            "Counters of {{ $labels.node }} were set to 0 while they counted: what passed just before is lost",
            "Something on the machine flushes iptables or ipsets that are not its own: find it and stop it",
        ),
        Alert(
            "TrafficOfNobody",
            f'sum by (cluster) ({pods},namespace=""}}) / sum by (cluster) ({pods}}}) > {NOBODYS_SHARE}',
            30,
            "ticket",
            "{{ $value | humanizePercentage }} of the pods' internet traffic is of no known pod",
            "See which nodes' exporters get no answer from their kubelet: gpufleet_traffic_kubelet_answered_timestamp_seconds is old there",
        ),
    )


def rules(cluster: ClusterPlan) -> dict[str, Any]:
    """Records and alerts as Prometheus reads them: https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/"""
    kept = [{"record": one.name, "expr": one.expression} | ({"labels": dict(one.labels)} if one.labels else {}) for one in records(cluster)]
    told = [one.rule(cluster.name) for one in alerts(cluster)]
    return {"groups": [{"name": f"gpufleet-traffic-{cluster.name}", "interval": f"{EVERY_SECONDS}s", "rules": [*kept, *told]}]}


def rules_file(cluster: ClusterPlan) -> str:
    """The rules as a file, YAML."""
    return alerting.file_of(rules(cluster))


def _own(cluster: str) -> str:
    return f'cluster="{cluster}",job="{JOB}"'


def _only(cluster: str) -> str:
    return f'{{cluster="{cluster}"}}'


def _of_nodes(cluster: str) -> Iterator[Record]:
    """What crosses each machine's border: the published rule, less what is none of the internet's."""
    for (direction, whose), (chain, subtracted) in HOOKS.items():
        counted = _rate(f'{_own(cluster)},chain="{chain}",rule="openai traffic=internet-{direction}"')
        less = _rate(f'{_own(cluster)},chain="{subtracted}"')
        yield Record("node:internet_bytes:rate5m", f"{counted} - ({less} or 0 * {counted})", (("direction", direction), ("of", whose)))


def _rate(matchers: str) -> str:
    return f"sum by (cluster, node) (rate(iptables_bytes_total{{{matchers}}}[5m]))"


def _of_pods(cluster: ClusterPlan) -> Iterator[Record]:
    name = "namespace:pod_internet_bytes:rate5m"
    rate = f"rate(pod_internet_bytes_total{{{_own(cluster.name)}}}[5m])"
    yield Record(name, f"sum by (cluster, namespace, team, direction) ({rate})")
    yield Record("team:pod_internet_bytes:rate5m", f"sum by (cluster, team, direction) ({name}{_only(cluster.name)})")
    for team in cluster.spec.tenancy.teams:
        labels = (("cluster", cluster.name), ("team", team.name))
        yield Record("team:egress_budget_bytes", f"vector({team.egress_gib_per_day * GIB})", labels)


def _of_gateways(cluster: ClusterPlan) -> Iterator[Record]:
    """What pods and machines send and receive takes up of the gateway in front of them."""
    for gateway, nodes in gateways(cluster).items():
        passing = f'node:internet_bytes:rate5m{{cluster="{cluster.name}",node=~"{nodes}"}}'
        yield Record("nat_gateway:internet:share", f"sum by (cluster) ({passing}) * 8 / {NAT_GATEWAY_BITS:g}", (("gateway", gateway),))
