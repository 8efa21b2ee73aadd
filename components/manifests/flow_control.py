"""Priority levels and flow schemas of the API servers.

An API server processes max-requests-inflight + max-mutating-requests-inflight requests at the same time (its seats), and divides them among
priority levels by shares: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/. Built-in levels are unchanged and have
245 shares; the levels of gpufleet add 55. The break-glass administrator needs no level, since the group system:masters is exempt.

The levels prevent this outage: a telemetry agent on thousands of nodes overloaded the API servers, and operators could not remove it,
because their requests failed too. https://status.openai.com/incidents/ctrsv3lwd797
A server cannot detect that an account belongs to a DaemonSet. Therefore all accounts of gpufleet's namespace, except the named ones, are
node agents. All accounts of a team's namespace are one flow, which does not affect other teams.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from components.manifests.kube_proxy import NAME as KUBE_PROXY
from components.manifests.owned import FLEET_NAMESPACE, SYSTEM_NAMESPACE, Object, owned
from components.plan.access import BOOTSTRAP_GROUP, CSR_APPROVER_USER, ROTATION_ACCOUNT, entra_group
from components.plan.model import ApiServersPlan, ClusterPlan, RegionPlan

CONCERN = "flow-control"
API_GROUP = "flowcontrol.apiserver.k8s.io"
VERSION = f"{API_GROUP}/v1"
BUILT_IN_SHARES = 245
"""Shares of Kubernetes' own levels together: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#defaults"""
SEATS_ANNOTATION = "gpufleet.io/seats"
"""Annotation with the number of seats of a level, for readers of the object."""
QUEUES, HAND = 64, 8
"""Each flow gets 8 of 64 queues: the chance that four flooding flows fill all queues of a fifth is 1 in 2,000.
https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#prioritylevelconfiguration"""
QUEUE_LENGTH = 50
"""Requests that wait in a queue, the default; further requests get 429 immediately, which is cheapest for the server."""


@dataclass(frozen=True)
class Level:
    """A priority level: shares of the seats, percent of its seats that it lends while they are free, and percent of its own seats that it
    may borrow (None: all free seats)."""

    name: str
    shares: int
    lendable: int
    borrowing: int | None


OPERATORS = Level("gpufleet-operators", shares=5, lendable=0, borrowing=None)
"""10 seats of the smallest server, for several operators. Never lent, so that they are free when other levels are full."""
FLEET = Level("gpufleet-fleet", shares=10, lendable=50, borrowing=None)
"""20 seats of the smallest server: rotation works on 8 to 32 nodes, and the approver processes requests of many joining nodes."""
AGENTS = Level("gpufleet-node-agents", shares=10, lendable=50, borrowing=0)
"""20 seats of the smallest server and 134 of each of the largest. They borrow none: 7,500 clients would use all free seats, and release
them only after their requests have ended."""
PEOPLE = Level("gpufleet-people", shares=10, lendable=50, borrowing=100)
"""20 seats of the smallest server, for people and their scripts; at most twice that."""
WORKLOADS = Level("gpufleet-team-workloads", shares=20, lendable=50, borrowing=100)
"""40 seats of the smallest server, for controllers and agents of teams, the largest group of clients after kubelets; at most twice that."""
LEVELS = (OPERATORS, FLEET, AGENTS, PEOPLE, WORKLOADS)
ELECTION_LEVEL, SYSTEM_LEVEL = "leader-election", "system"
"""Built-in levels: of leases, and of kubelets' requests other than heartbeats."""


def total_seats(servers: ApiServersPlan) -> int:
    """Return the requests that one API server processes at the same time."""
    return servers.max_requests_inflight + servers.max_mutating_requests_inflight


def seats(level: Level, servers: ApiServersPlan) -> int:
    """Return the seats of a level in one API server, before lending and borrowing."""
    shares = BUILT_IN_SHARES + sum(row.shares for row in LEVELS)
    return math.ceil(total_seats(servers) * level.shares / shares)


def _level(level: Level, servers: ApiServersPlan) -> Object:
    item = owned(VERSION, "PriorityLevelConfiguration", level.name, CONCERN)
    item["metadata"]["annotations"] = {SEATS_ANNOTATION: f"{seats(level, servers)} of {total_seats(servers)} per API server"}
    limited: Object = {
        "nominalConcurrencyShares": level.shares,
        "lendablePercent": level.lendable,
        "limitResponse": {"type": "Queue", "queuing": {"queues": QUEUES, "handSize": HAND, "queueLengthLimit": QUEUE_LENGTH}},
    }
    borrowing = {} if level.borrowing is None else {"borrowingLimitPercent": level.borrowing}
    return item | {"spec": {"type": "Limited", "limited": limited | borrowing}}


def _user(name: str) -> Object:
    return {"kind": "User", "user": {"name": name}}


def _group(name: str) -> Object:
    return {"kind": "Group", "group": {"name": name}}


def _account(namespace: str, name: str) -> Object:
    """Return the subject of a service account; the name * means all accounts of a namespace."""
    return {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}


_LEASES: Object = {"verbs": ["get", "create", "update", "patch"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
_RESOURCES: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
_OTHER_PATHS: Object = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def _schema(name: str, precedence: int, level: str, subjects: list[Object], *, by_user: bool = True, leases: str | None = None) -> Object:
    """Return a schema that assigns requests, or only leases in a namespace, to a level; by_user makes each user a flow."""
    rules: Object = {"subjects": subjects}
    if leases:
        rules["resourceRules"] = [_LEASES | {"namespaces": [leases]}]
    else:
        rules |= {"resourceRules": [_RESOURCES], "nonResourceRules": [_OTHER_PATHS]}
    flows = {"distinguisherMethod": {"type": "ByUser"}} if by_user else {}
    spec = {"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level}, **flows, "rules": [rules]}
    return owned(VERSION, "FlowSchema", name, CONCERN) | {"spec": spec}


def _schemas(region: RegionPlan, cluster: ClusterPlan) -> list[Object]:
    """Return the schemas; the first match by precedence applies. They are between the built-in ones: 100 to 500 for essential requests of
    nodes, 800 and 900 for the control plane and kube-system, 9000 and above for all others."""
    teams = cluster.spec.tenancy.teams
    approver, rotation = _user(CSR_APPROVER_USER), _account(FLEET_NAMESPACE, ROTATION_ACCOUNT)
    return [
        # A lost election delays minutes, and a rotation without its lease must stop.
        _schema("gpufleet-approver-election", 250, ELECTION_LEVEL, [approver], leases=SYSTEM_NAMESPACE),
        _schema("gpufleet-rotation-election", 250, ELECTION_LEVEL, [rotation], leases=FLEET_NAMESPACE),
        # Before the teams' schemas: a member of both groups counts as an operator.
        _schema("gpufleet-operators", 300, OPERATORS.name, [_group(entra_group(region.spec.access.operators_group))]),
        # In the level of joined nodes; new nodes share one user and therefore one flow, which leaves capacity for the others.
        _schema("gpufleet-joining-nodes", 500, SYSTEM_LEVEL, [_group(BOOTSTRAP_GROUP)]),
        _schema("gpufleet-fleet", 600, FLEET.name, [approver, rotation]),
        # Otherwise 7,500 of them would use the seats of kube-system's controllers when they all list again.
        _schema("gpufleet-kube-proxy", 700, AGENTS.name, [_account(SYSTEM_NAMESPACE, KUBE_PROXY)]),
        _schema("gpufleet-node-agents", 1_000, AGENTS.name, [_account(FLEET_NAMESPACE, "*")]),
        # One flow for all accounts of a team: a second account has no advantage.
        *(_schema(f"gpufleet-team-{team.name}", 1_100, WORKLOADS.name, [_account(team.name, "*")], by_user=False) for team in teams),
        _schema("gpufleet-people", 1_200, PEOPLE.name, [_group(entra_group(team.group)) for team in teams]),
    ]


def flow_control_objects(region: RegionPlan, cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern."""
    return [*(_level(level, cluster.api_servers) for level in LEVELS), *_schemas(region, cluster)]
