"""Cases for alerts of the dev region's control plane: metric series, and the alerts that must fire at a minute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CLUSTER = 'region="dev",cluster="dev"'
HOUR = 60
Series = Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """Series beside those of a healthy cluster, or instead of them, one value a minute; fires is all that fires at the minute."""

    name: str
    series: Series
    minute: int
    fires: frozenset[str] = frozenset()


def always(value: float) -> str:
    return f"{value:g}+0x{HOUR}"


def rising(per_second: float) -> str:
    return f"0+{per_second * 60:g}x{HOUR}"


def up(job: str, instance: int) -> str:
    return f'up{{{CLUSTER},job="{job}",instance="{job}-{instance}"}}'


def requests(verb: str, code: int, subresource: str = "", resource: str = "pods") -> str:
    labels = f'verb="{verb}",code="{code}",resource="{resource}",subresource="{subresource}"'
    return f'apiserver_request_total{{{CLUSTER},job="kube-apiserver",{labels}}}'


def leads(program: str) -> str:
    return f'leader_election_master_status{{{CLUSTER},job="{program}",name="{program}"}}'


def member(metric: str, ring: str, extra: str = "") -> str:
    return f'{metric}{{{CLUSTER},job="{ring}",instance="{ring}-0"{extra}}}'


def executing(instance: str) -> str:
    level = 'priority_level="workload-low",flow_schema="service-accounts"'
    return f'apiserver_flowcontrol_current_executing_seats{{{CLUSTER},instance="{instance}",{level}}}'


def slow(metric: str, share: float) -> dict[str, str]:
    """A histogram with ten observations a second, of which a share is in the second of its two buckets, the one that is too slow."""
    labels, fine, bad = HISTOGRAMS[metric]
    head = f"{metric}_bucket{{{CLUSTER},{labels},le="
    return {f'{head}"{fine:g}"}}': rising(10 * (1 - share)), f'{head}"{bad:g}"}}': rising(10), f'{head}"+Inf"}}': rising(10)}


def gone(from_minute: int, minutes: int) -> str:
    """1, then 0 for some minutes, then 1 again."""
    return f"1+0x{from_minute - 1} 0+0x{minutes - 1} 1+0x{HOUR - from_minute - minutes}"


REQUESTS, FSYNC, COMMIT = (
    "apiserver_request_duration_seconds",
    "etcd_disk_wal_fsync_duration_seconds",
    "etcd_disk_backend_commit_duration_seconds",
)
ETCD_0 = 'job="etcd",instance="etcd-0"'
HISTOGRAMS = {
    REQUESTS: ('job="kube-apiserver",verb="POST",subresource=""', 0.5, 8),
    FSYNC: (ETCD_0, 0.004, 0.128),
    COMMIT: (ETCD_0, 0.008, 0.256),
}
"""Labels, and upper bounds in seconds of a bucket that is fast enough and of one that is not."""
CSR = "certificatesigningrequests"
HEALTHY: Series = {
    **{up("kube-apiserver", one): always(1) for one in range(2)},
    **{up(ring, one): always(1) for ring in ("etcd", "events") for one in range(3)},
    **{leads(program): always(1) for program in ("kube-controller-manager", "kube-scheduler")},
    **{member("etcd_server_has_leader", ring): always(1) for ring in ("etcd", "events")},
    **{member("etcd_mvcc_db_total_size_in_bytes", ring): always(1e9) for ring in ("etcd", "events")},
    **{member("etcd_server_quota_backend_bytes", ring): always(2e9) for ring in ("etcd", "events")},
    **slow(REQUESTS, 0.001),
    **slow(FSYNC, 0.001),
    **slow(COMMIT, 0.001),
    requests("GET", 200): rising(100),
    requests("POST", 201): rising(10),
    executing("a"): always(20),
    **{
        f'apiserver_flowcontrol_current_limit_seats{{{CLUSTER},instance="{one}",priority_level="workload-low"}}': always(100)
        for one in "ab"
    },
    f'apiserver_flowcontrol_current_executing_seats{{{CLUSTER},priority_level="exempt",flow_schema="exempt"}}': always(5),
    f'apiserver_flowcontrol_current_limit_seats{{{CLUSTER},priority_level="exempt"}}': always(0),
    f'node_collector_zone_size{{{CLUSTER},zone="1"}}': always(100),
    f'node_collector_unhealthy_nodes_in_zone{{{CLUSTER},zone="1"}}': always(2),
    f'apiserver_client_certificate_expiration_seconds_bucket{{{CLUSTER},le="604800"}}': always(0),
}
"""An hour of a cluster with two API servers and two rings of three in which nothing is wrong."""


def case(name: str, series: Series, minute: int, *fires: str) -> Case:
    return Case(name, series, minute, frozenset(fires))


_BUSY, _IDLE = executing("a"), executing("b")
_REJECTED = 'flow_schema="service-accounts",priority_level="workload-low",reason="queue-full"'
_UNHEALTHY = 'node_collector_unhealthy_nodes_in_zone{region="dev",cluster="dev",zone="1"}'
_ENDING = 'apiserver_client_certificate_expiration_seconds_bucket{region="dev",cluster="dev",le="604800"}'
CASES = (
    case("nothing is wrong", {}, 50),
    case("a storm of three minutes is refused", {requests("LIST", 429): f"0+6000x3 18000+0x{HOUR - 4}"}, 8),
    case("the same storm, an hour after", {requests("LIST", 429): f"0+6000x3 18000+0x{HOUR - 4}"}, 58),
    case("requests are refused for twenty minutes", {requests("LIST", 429): rising(5)}, 20, "ApiServerThrottles"),
    case("drains that budgets hold up", {requests("POST", 429, "eviction"): rising(50)}, 40),
    case(
        "one flow is refused for twenty minutes",
        {f"apiserver_flowcontrol_rejected_requests_total{{{CLUSTER},{_REJECTED}}}": rising(3)},
        20,
        "ApiServerRejectsFlow",
    ),
    case("three of a hundred requests fail", {requests("GET", 500): rising(3.3)}, 12, "ApiServerFails"),
    case("an API server restarts and fails requests for two minutes", {requests("GET", 503): f"0+300x2 600+0x{HOUR - 3}"}, 6),
    case(
        "all of a quiet cluster's few requests fail",
        {requests("GET", 200): always(0), requests("POST", 201): always(0), requests("GET", 500): rising(0.02)},
        30,
    ),
    case("writes take seconds", slow(REQUESTS, 0.05), 20, "MutatingRequestsSlow"),
    case("one write in a thousand takes seconds", slow(REQUESTS, 0.001), 20),
    case("a level's seats are all taken at one server of two", {_BUSY: always(95), _IDLE: always(0)}, 15, "PriorityLevelFull"),
    case("a level's seats are taken for five minutes", {_BUSY: f"20+0x9 100+0x4 20+0x{HOUR - 15}"}, 15),
    case("an API server is repaired in ten minutes", {up("kube-apiserver", 1): gone(10, 10)}, 19),
    case("an API server stays away", {up("kube-apiserver", 1): gone(10, 30)}, 30, "ApiServerMissing"),
    case("no API server answers", {up("kube-apiserver", one): gone(10, 30) for one in range(2)}, 30, "ApiServerDown"),
    case("one scrape of all API servers fails", {up("kube-apiserver", one): gone(10, 1) for one in range(2)}, 10),
    case("a scheduler takes over in two minutes", {leads("kube-scheduler"): gone(10, 2)}, 12),
    case("no scheduler leads", {leads("kube-scheduler"): gone(10, 20)}, 17, "SchedulerLeaderless"),
    case("no controller manager leads", {leads("kube-controller-manager"): gone(10, 20)}, 17, "ControllerManagerLeaderless"),
    case("a member restarts", {up("etcd", 1): gone(10, 2)}, 12),
    case("one of three members is down", {up("etcd", 1): gone(10, 40)}, 30, "EtcdMemberDown", "EtcdQuorumAtRisk"),
    case("one member of the events ring is down", {up("events", 1): gone(10, 40)}, 30, "EventsEtcdMemberDown", "EventsEtcdQuorumAtRisk"),
    case("no member can be scraped", {up("etcd", one): gone(10, 40) for one in range(3)}, 30, "EtcdMemberDown", "EtcdQuorumAtRisk"),
    case("an election within one scrape", {member("etcd_server_has_leader", "etcd"): gone(10, 1)}, 10),
    case("no member knows a leader", {member("etcd_server_has_leader", "etcd"): gone(10, 10)}, 13, "EtcdNoLeader"),
    case("a disk is slow", slow(FSYNC, 0.1), 20, "EtcdFsyncSlow"),
    case(
        "a disk stalls within one scrape",
        slow(FSYNC, 0.001) | {f'{FSYNC}_bucket{{{CLUSTER},{ETCD_0},le="0.004"}}': f"0+600x19 11800+600x{HOUR - 20}"},
        24,
    ),
    case("commits are slow", slow(COMMIT, 0.1), 20, "EtcdCommitSlow"),
    case("a database fills", {member("etcd_mvcc_db_total_size_in_bytes", "etcd"): always(1.7e9)}, 10, "EtcdDatabaseFills"),
    case("a database is at four fifths", {member("etcd_mvcc_db_total_size_in_bytes", "etcd"): always(1.6e9)}, 30),
    case("rotation has its whole budget away", {_UNHEALTHY: always(20)}, 30),
    case("more nodes are away than rotation may take", {_UNHEALTHY: always(26)}, 15, "NodesNotReady"),
    case("a scale set joins", {requests("POST", 201, "", CSR): rising(0.1), requests("PUT", 200, "approval", CSR): rising(0.1)}, 59),
    case("nobody decides on requests", {requests("POST", 201, "", CSR): rising(0.1)}, 50, "CertificateRequestsUndecided"),
    case("somebody's certificate ends", {_ENDING: rising(0.01)}, 40, "ClientCertificateEnds"),
    case("so it does to Prometheus 3", {_ENDING.replace('"604800"', '"604800.0"'): rising(0.01)}, 40, "ClientCertificateEnds"),
)
