"""Whose requests the API servers answer first, and how many of whose at once, when there are more than they can answer.

An API server works on max-requests-inflight + max-mutating-requests-inflight requests at a time, its seats, and divides them among
priority levels by their shares: https://kubernetes.io/docs/concepts/cluster-administration/flow-control/. Kubernetes' own levels stay as
they are, so that kubelets, controllers and elections are served as everywhere; ours take 55 shares beside their 245. The break-glass
administrator needs no level: the group system:masters is exempt.

The outage that this is for: a telemetry agent on every node of thousands asked more than the API servers could answer, and the people who
would have removed it were not answered either. https://status.openai.com/incidents/ctrsv3lwd797
A server cannot see that an account is a DaemonSet's; so every account of our own namespace counts as a node agent, but for the named ones,
and all that runs in a team's namespace is one flow, which harms no other team's.
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
"""What a level's shares come to, so that whoever looks at it need not do the sum."""
QUEUES, HAND = 64, 8
"""A flow is dealt 8 of 64 queues: four that flood fill all of a fifth's in one case of two thousand.
https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#prioritylevelconfiguration"""
QUEUE_LENGTH = 50
"""Requests that wait in a queue, as by default; what comes then is answered 429 at once, which costs the server least."""


@dataclass(frozen=True)
class Level:
    """A priority level: its shares of the seats, percent of them that others may use while they are free, and percent of its own
    seats that it may use of others' (None: all that are free)."""

    name: str
    shares: int
    lendable: int
    borrowing: int | None


OPERATORS = Level("gpufleet-operators", shares=5, lendable=0, borrowing=None)
"""10 seats of the smallest server: some people with a terminal each. Never lent, so that they are free when all else is full."""
FLEET = Level("gpufleet-fleet", shares=10, lendable=50, borrowing=None)
"""20 seats of the smallest server: the rotation keeps 8 to 32 nodes in work, the approver answers what a join storm asks."""
AGENTS = Level("gpufleet-node-agents", shares=10, lendable=50, borrowing=0)
"""20 seats of the smallest server and 134 of the largest, of which there are several. They borrow none: 7,500 callers would use whatever
there is, and take the seats that others want only after their requests have ended."""
PEOPLE = Level("gpufleet-people", shares=10, lendable=50, borrowing=100)
"""20 seats of the smallest server: people, and what they script; at most twice that."""
WORKLOADS = Level("gpufleet-team-workloads", shares=20, lendable=50, borrowing=100)
"""40 seats of the smallest server: teams' own controllers and agents, the most numerous callers after kubelets; at most twice that."""
LEVELS = (OPERATORS, FLEET, AGENTS, PEOPLE, WORKLOADS)
ELECTION_LEVEL, SYSTEM_LEVEL = "leader-election", "system"
"""Built-in levels: of leases, and of kubelets' requests other than heartbeats."""


def total_seats(servers: ApiServersPlan) -> int:
    """Requests that one API server works on at a time."""
    return servers.max_requests_inflight + servers.max_mutating_requests_inflight


def seats(level: Level, servers: ApiServersPlan) -> int:
    """Seats of a level in one API server, before any are lent or borrowed."""
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
    """A service account, or with the name * every one of a namespace."""
    return {"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}}


_LEASES: Object = {"verbs": ["get", "create", "update", "patch"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
_RESOURCES: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
_OTHER_PATHS: Object = {"verbs": ["*"], "nonResourceURLs": ["*"]}


def _schema(name: str, precedence: int, level: str, subjects: list[Object], *, by_user: bool = True, leases: str | None = None) -> Object:
    """Everything that subjects ask, or only leases in a namespace, goes to a level; each user is a flow, or all of them are one."""
    rules: Object = {"subjects": subjects}
    if leases:
        rules["resourceRules"] = [_LEASES | {"namespaces": [leases]}]
    else:
        rules |= {"resourceRules": [_RESOURCES], "nonResourceRules": [_OTHER_PATHS]}
    flows = {"distinguisherMethod": {"type": "ByUser"}} if by_user else {}
    spec = {"matchingPrecedence": precedence, "priorityLevelConfiguration": {"name": level}, **flows, "rules": [rules]}
    return owned(VERSION, "FlowSchema", name, CONCERN) | {"spec": spec}


def _schemas(region: RegionPlan, cluster: ClusterPlan) -> list[Object]:
    """The first schema that matches decides, by precedence: ours stand between Kubernetes' own, 100 to 500 for what keeps nodes alive,
    800 and 900 for the control plane and kube-system, 9000 and up for everybody else."""
    teams = cluster.spec.tenancy.teams
    approver, rotation = _user(CSR_APPROVER_USER), _account(FLEET_NAMESPACE, ROTATION_ACCOUNT)
    return [
        # A lost election costs minutes, and a rotation that does not hold its lease must stop.
        _schema("gpufleet-approver-election", 250, ELECTION_LEVEL, [approver], leases=SYSTEM_NAMESPACE),
        _schema("gpufleet-rotation-election", 250, ELECTION_LEVEL, [rotation], leases=FLEET_NAMESPACE),
        # Before the teams': whoever is in both groups acts as an operator.
        _schema("gpufleet-operators", 300, OPERATORS.name, [_group(entra_group(region.spec.access.operators_group))]),
        # Beside joined nodes and not among strangers; new nodes share one user and so one flow, which leaves room for the others.
        _schema("gpufleet-joining-nodes", 500, SYSTEM_LEVEL, [_group(BOOTSTRAP_GROUP)]),
        _schema("gpufleet-fleet", 600, FLEET.name, [approver, rotation]),
        # Otherwise among kube-system's controllers, whose seats 7,500 of them would take when they all list again.
        _schema("gpufleet-kube-proxy", 700, AGENTS.name, [_account(SYSTEM_NAMESPACE, KUBE_PROXY)]),
        _schema("gpufleet-node-agents", 1_000, AGENTS.name, [_account(FLEET_NAMESPACE, "*")]),
        # One flow for all that a team runs: a second account gains it nothing.
        *(_schema(f"gpufleet-team-{team.name}", 1_100, WORKLOADS.name, [_account(team.name, "*")], by_user=False) for team in teams),
        _schema("gpufleet-people", 1_200, PEOPLE.name, [_group(entra_group(team.group)) for team in teams]),
    ]


def flow_control_objects(region: RegionPlan, cluster: ClusterPlan) -> list[Object]:
    """All objects of this concern."""
    return [*(_level(level, cluster.api_servers) for level in LEVELS), *_schemas(region, cluster)]
