"""Prometheus alerting rules for the control plane of a cluster, with numbers from its plan.

The rules are files for the region's Prometheus, not objects of the cluster, since a control plane that is down could not serve them. The
scraper sets the labels region and cluster (the names in the region file) and job (one of JOBS). etcd, controller manager and scheduler
listen on loopback only, so an agent on each control-plane machine must scrape and forward their metrics.
"""

from __future__ import annotations

from typing import Any

from components import alerting
from components.alerting import BY_CLUSTER, Source
from components.plan.model import ClusterPlan, EtcdPlan

JOBS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "events")
"""Values of the label job; etcd and events are the two etcd clusters."""
THROTTLED_PER_SECOND = 1.0
"""Rejected requests per second above a short burst: 1,000 joining nodes cause none (measured on two cores), and a client waits for the
seconds in Retry-After. https://openai.com/index/scaling-kubernetes-to-7500-nodes/ alerts on this rate without giving a number."""
FAILED_SHARE = 0.01
"""Share of requests that end in a server error: an orderly restart of one of two servers causes none."""
FAILED_PER_SECOND = 0.1
"""Rate below which a share is not significant: one failure in a quiet minute."""
MUTATING_P99_SECONDS = 1.0
"""https://github.com/kubernetes/community/blob/master/sig-scalability/slos/api_call_latency.md"""
SEATS_SHARE = 0.9
"""Share of a priority level's seats in use, including borrowed ones, above which further requests wait."""
FSYNC_P99_SECONDS = 0.010
COMMIT_P99_SECONDS = 0.025
"""Both from https://etcd.io/docs/v3.6/faq/#what-does-the-etcd-warning-failed-to-send-out-heartbeat-on-time-mean"""
QUOTA_SHARE = 0.8
"""Share of the quota that leaves time to act: at 100 %, etcd rejects writes."""
CERTIFICATE_SECONDS = 604_800
"""Seven days, a bucket of the histogram. gpufleet renews its certificates with 121 days left, kubelets with nine or more."""
NOT_READY_BEYOND_BUDGET = 0.05
"""Share of nodes that may be unavailable in addition to the rotation budget."""
UNAPPROVED = 20
"""Undecided requests of half an hour: more than an error of one machine, fewer than the join of one scale set."""


class Alert(alerting.Alert):
    """An alert of a cluster's control plane."""

    page = "control-plane-alerts"

    @property
    def heading(self) -> str:
        """Heading in the runbook, the same for both etcd clusters."""
        return super().heading.removeprefix("events")


def _rate(metric: str, matchers: str, minutes: int = 5) -> str:
    return f"rate({metric}{{{matchers}}}[{minutes}m])"


def _requests(source: Source) -> tuple[Alert, ...]:
    """Return the alerts for errors and latency of requests."""
    # An eviction that a disruption budget does not allow also gets 429, and drains send thousands of them.
    served = f'{source.matchers},subresource!="eviction"'
    throttled, failed, every = (_rate("apiserver_request_total", served + code) for code in (',code="429"', ',code=~"5.."', ""))
    failures = f"sum by ({BY_CLUSTER}) ({failed})"
    rejected = _rate("apiserver_flowcontrol_rejected_requests_total", source.matchers)
    writes = f'{source.matchers},verb=~"POST|PUT|PATCH|APPLY|DELETE",subresource!~"eviction|exec|attach|portforward|proxy"'
    slow = f"sum by ({BY_CLUSTER}, verb, le) ({_rate('apiserver_request_duration_seconds_bucket', writes)})"
    # Each server has its own seats: one may have none left while another is idle.
    by_server, limited = f"sum by ({BY_CLUSTER}, instance, priority_level)", f'{source.matchers},priority_level!="exempt"'
    executing = f"{by_server} (apiserver_flowcontrol_current_executing_seats{{{limited}}})"
    seats = f"{by_server} (apiserver_flowcontrol_current_limit_seats{{{limited}}})"
    return (
        Alert(
            "ApiServerThrottles",
            f"sum by ({BY_CLUSTER}, verb) ({throttled}) > {THROTTLED_PER_SECOND}",
            10,
            "page",
            "{{ $labels.verb }} requests are refused with 429, {{ $value | humanize }} a second",
            "Find who sends them: ask one API server for its requests by flow schema and by user agent, then slow that client down",
        ),
        Alert(
            "ApiServerRejectsFlow",
            f"sum by ({BY_CLUSTER}, flow_schema, priority_level, reason) ({rejected}) > {THROTTLED_PER_SECOND}",
            10,
            "ticket",
            "Flow schema {{ $labels.flow_schema }} is refused ({{ $labels.reason }}) at level {{ $labels.priority_level }}",
            "Look at which users the flow schema holds; the others are served, so there is time to find the one that storms",
        ),
        Alert(
            "ApiServerFails",
            f"{failures} / sum by ({BY_CLUSTER}) ({every}) > {FAILED_SHARE} and {failures} > {FAILED_PER_SECOND}",
            5,
            "page",
            "{{ $value | humanizePercentage }} of all requests end in a server's error",
            "Ask every API server for /readyz?verbose; where etcd fails, go on with its alerts",
        ),
        Alert(
            "MutatingRequestsSlow",
            f"histogram_quantile(0.99, {slow}) > {MUTATING_P99_SECONDS}",
            10,
            "page",
            "One in a hundred {{ $labels.verb }} requests takes longer than {{ $value | humanizeDuration }}",
            "Compare with etcd's fsync and with seats in use; stop joins and rotations until it is over",
        ),
        Alert(
            "PriorityLevelFull",
            f"{executing} / {seats} > {SEATS_SHARE}",
            10,
            "ticket",
            "{{ $labels.instance }}: priority level {{ $labels.priority_level }} has {{ $value | humanizePercentage }} of its seats in use",
            "Find the flow that fills it; break-glass is exempt and is answered all the while",
        ),
    )


def _programs(source: Source, cluster: ClusterPlan) -> tuple[Alert, ...]:
    """Return the alerts for programs of the control plane that are down."""
    up = f'up{{{source.matchers},job="kube-apiserver"}}'
    leaders = (
        ("ControllerManager", "kube-controller-manager", "nodes are not judged"),
        ("Scheduler", "kube-scheduler", "no pod is placed"),
    )
    return (
        Alert(
            "ApiServerMissing",
            f"count({up} == 1) < {cluster.api_servers.count}",
            15,
            "ticket",
            f"{{{{ $value }}}} of {cluster.api_servers.count} API servers answer",
            "The scale set repairs itself within a quarter of an hour; now it has not: look at the instance that is unhealthy",
        ),
        Alert(
            "ApiServerDown",
            f"absent({up} == 1)",
            1,
            "page",
            "No API server answers",
            "Use the break-glass identity on one API server's machine; pods go on running meanwhile",
        ),
        *(
            Alert(
                f"{name}Leaderless",
                f'absent(leader_election_master_status{{{source.matchers},name="{program}"}} == 1)',
                5,
                "page",
                f"No {program} leads: {without}",
                "Look at who holds the lease, and at that machine's service",
            )
            for name, program, without in leaders
        ),
    )


def _etcd(source: Source, etcd: EtcdPlan) -> tuple[Alert, ...]:
    """Return the alerts for one etcd cluster: members, disk, space."""
    which = f'{source.matchers},job="{etcd.role}"'
    name = "EventsEtcd" if etcd.role == "events" else "Etcd"
    members, quorum = len(etcd.members), len(etcd.members) // 2 + 1
    # A member without metrics counts as down, and a count over no series is not 0.
    up = f"(count(up{{{which}}} == 1) or vector(0))"

    def p99(metric: str) -> str:
        return f"histogram_quantile(0.99, sum by ({BY_CLUSTER}, instance, le) ({_rate(metric, which)}))"

    return (
        Alert(
            f"{name}NoLeader",
            f"max by ({BY_CLUSTER}) (etcd_server_has_leader{{{which}}}) == 0",
            1,
            "page",
            f"No member of the {etcd.role} ring knows a leader: nothing is written",
            "Count the members that run; a quorum comes back with them, and nothing else may be tried before",
        ),
        Alert(
            f"{name}MemberDown",
            f"{up} < {members}",
            10,
            "ticket",
            f"{{{{ $value }}}} of {members} members of the {etcd.role} ring are up",
            "Look at the member's machine; where its disk is empty, replace the member by the playbook",
        ),
        Alert(
            f"{name}QuorumAtRisk",
            f"{up} <= {quorum}",
            3,
            "page",
            f"{{{{ $value }}}} of {members} members of the {etcd.role} ring are up; below {quorum} nothing is written",
            "Touch no other member; bring the missing one back first",
        ),
        Alert(
            f"{name}FsyncSlow",
            f"{p99('etcd_disk_wal_fsync_duration_seconds_bucket')} > {FSYNC_P99_SECONDS}",
            10,
            "ticket",
            "{{ $labels.instance }} writes its log in {{ $value | humanizeDuration }}, and every write waits for it",
            "Local NVMe takes a fraction of that: look for what else writes, then for a failing device, and replace the member",
        ),
        Alert(
            f"{name}CommitSlow",
            f"{p99('etcd_disk_backend_commit_duration_seconds_bucket')} > {COMMIT_P99_SECONDS}",
            10,
            "ticket",
            "{{ $labels.instance }} commits in {{ $value | humanizeDuration }}",
            "As for a slow log; a defragmentation or a snapshot that runs explains a single one",
        ),
        Alert(
            f"{name}DatabaseFills",
            f"etcd_mvcc_db_total_size_in_bytes{{{which}}} / etcd_server_quota_backend_bytes{{{which}}} > {QUOTA_SHARE}",
            5,
            "page",
            "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its quota; at 100 % it takes no more writes",
            "Compare with the size in use: where that is small, defragment member by member; else find what stores so much",
        ),
    )


def _nodes(source: Source, cluster: ClusterPlan) -> tuple[Alert, ...]:
    """Return the alerts for nodes and for certificates of clients."""
    budget = cluster.spec.rotation.budget.percent / 100
    away = f"sum by ({BY_CLUSTER}) (node_collector_unhealthy_nodes_in_zone{{{source.matchers}}})"
    all_nodes = f"sum by ({BY_CLUSTER}) (node_collector_zone_size{{{source.matchers}}})"
    csr = f'{source.matchers},resource="certificatesigningrequests"'
    requested = f'sum by ({BY_CLUSTER}) (increase(apiserver_request_total{{{csr},subresource="",verb="POST",code="201"}}[30m]))'
    decided = (
        f'(sum by ({BY_CLUSTER}) (increase(apiserver_request_total{{{csr},subresource="approval",code="200"}}[30m])) or 0 * {requested})'
    )
    # Prometheus 3 writes integer bounds with a decimal: https://prometheus.io/docs/prometheus/latest/migration/
    ending = f'apiserver_client_certificate_expiration_seconds_bucket{{{source.matchers},le=~"{CERTIFICATE_SECONDS}([.]0)?"}}'
    return (
        Alert(
            "NodesNotReady",
            f"{away} / {all_nodes} > {budget + NOT_READY_BEYOND_BUDGET:g}",
            10,
            "page",
            f"{{{{ $value | humanizePercentage }}}} of the nodes are not ready; rotation takes {budget:.0%} at most",
            "Stop rotation; see whether they share a scale set, a zone or an image",
        ),
        Alert(
            "CertificateRequestsUndecided",
            f"{requested} - {decided} > {UNAPPROVED}",
            30,
            "ticket",
            "{{ $value | humanize }} certificate requests of the last half hour were not decided on: new nodes do not join",
            "Look at gpufleet-csr-approver on the API servers' machines, and at what it says of one request",
        ),
        Alert(
            "ClientCertificateEnds",
            f"sum by ({BY_CLUSTER}) (increase({ending}[15m])) > 0",
            15,
            "ticket",
            "Somebody calls with a certificate that ends within seven days",
            "Run `gpufleet certificates` for the region: where all of ours have longer, it is a kubelet that does not renew",
        ),
    )


def alerts(region: str, cluster: ClusterPlan) -> tuple[Alert, ...]:
    """Return all alerts for the control plane of a region's cluster.

    No rule covers the age of etcd snapshots and the expiry of serving certificates, since no program has such metrics: the snapshot unit
    fails visibly, and `gpufleet certificates --within` runs on a schedule.
    """
    source = Source(region, cluster.name)
    of_etcd = (alert for etcd in (cluster.etcd, cluster.events_etcd) for alert in _etcd(source, etcd))
    return (*_requests(source), *_programs(source, cluster), *of_etcd, *_nodes(source, cluster))


def rules(region: str, cluster: ClusterPlan, runbook_pattern: str) -> dict[str, Any]:
    """Return the alerts in the format of Prometheus: https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/"""
    source = Source(region, cluster.name)
    written = [one.rule(source, runbook_pattern) for one in alerts(region, cluster)]
    return {"groups": [{"name": f"gpufleet-control-plane-{region}-{cluster.name}", "rules": written}]}


def rules_file(region: str, cluster: ClusterPlan, runbook_pattern: str) -> str:
    """Return the rules as a YAML file."""
    return alerting.file_of(rules(region, cluster, runbook_pattern))
