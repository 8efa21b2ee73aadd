"""Permissions of kwok and of the accounts that act for nodes in a local cluster, and kwok's priority, which equals that of nodes.

Only the rehearsal applies these objects: no cluster of a region has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
KWOK, ACTOR = "gpufleet-rehearsal-kwok", "gpufleet-rehearsal-acts-for-nodes"
"""Service accounts: kwok's, and who registers nodes in their names, where few connections stand for thousands of machines. Neither is in
system:masters, which priority and fairness let pass whatever the load."""
SPACE, LEASES = "kube-system", "kube-node-lease"
KWOK_USER, ACTOR_USER = (f"system:serviceaccount:{SPACE}:{name}" for name in (KWOK, ACTOR))
RBAC_GROUP = "rbac.authorization.k8s.io"
RBAC = f"{RBAC_GROUP}/v1"
_Row = tuple[str, tuple[str, ...], tuple[str, ...]]
_KEEP: tuple[_Row, ...] = (
    ("", ("nodes",), ("get", "list", "watch")),
    ("", ("nodes/status", "pods/status"), ("patch",)),
    ("", ("pods",), ("get", "list", "watch", "patch", "delete")),
    ("", ("events",), ("create", "patch")),
)
_LEASE: _Row = ("coordination.k8s.io", ("leases",), ("get", "list", "watch", "create", "update", "patch"))


def rights() -> tuple[Json, ...]:
    """Return all objects, accounts first."""
    return (*_accounts(), *_kwok_rights(), *_kwok_flows(), *_actor_rights())


def _accounts() -> tuple[Json, ...]:
    """Return the service accounts; pods do not get their tokens."""
    return tuple(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": SPACE},
            "automountServiceAccountToken": False,
        }
        for name in (KWOK, ACTOR)
    )


def _kwok_rights() -> tuple[Json, ...]:
    """Return the rights for kwok's stages: read nodes and pods, report their status, renew leases, end pods, and record events."""
    return (
        {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": KWOK}, "rules": [_rule(row) for row in _KEEP]},
        {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": KWOK}, **_bound("ClusterRole", KWOK)},
        {"apiVersion": RBAC, "kind": "Role", "metadata": {"name": KWOK, "namespace": LEASES}, "rules": [_rule(_LEASE)]},
        {"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": KWOK, "namespace": LEASES}, **_bound("Role", KWOK)},
    )


def _kwok_flows() -> tuple[Json, ...]:
    """Return flow schemas for kwok on the levels of nodes, just before the nodes' own; kwok is one flow there, and so is each node.

    https://kubernetes.io/docs/concepts/cluster-administration/flow-control/#suggested-configuration-objects
    """
    everything = [_resource_rule("*", ("*",), spaced=True), _resource_rule("*", ("*",), spaced=False)]
    heartbeats = [
        _resource_rule("", ("nodes", "nodes/status"), spaced=False),
        _resource_rule("coordination.k8s.io", ("leases",), spaced=True),
    ]
    return _flow(f"{KWOK}-heartbeats", "node-high", 390, heartbeats), _flow(KWOK, "system", 490, everything)


def _actor_rights() -> tuple[Json, ...]:
    """Return the permission to act for nodes only, and only to register them.

    https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/#constrained-impersonation
    """
    acting = ("impersonate:arbitrary-node",)
    creating, reporting = ("impersonate-on:arbitrary-node:create",), ("impersonate-on:arbitrary-node:patch",)
    rows = (("authentication.k8s.io", ("nodes",), acting), ("", ("nodes",), creating), ("", ("nodes/status",), reporting))
    rules = [_rule(row) for row in rows]
    return (
        {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": ACTOR}, "rules": rules},
        {"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": ACTOR}, **_bound("ClusterRole", ACTOR)},
    )


def _rule(row: _Row) -> Json:
    group, resources, verbs = row
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _bound(kind: str, role: str) -> Json:
    """Return the binding of a role to the service account of its name."""
    subject = {"kind": "ServiceAccount", "name": role, "namespace": SPACE}
    return {"roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": role}, "subjects": [subject]}


def _resource_rule(group: str, resources: Sequence[str], *, spaced: bool) -> Json:
    """Return the rule for requests for resources of an API group, in all namespaces or outside them."""
    where: Json = {"namespaces": ["*"]} if spaced else {"clusterScope": True}
    return {"verbs": ["*"], "apiGroups": [group], "resources": list(resources), **where}


def _flow(name: str, level: str, precedence: int, rules: Sequence[Json]) -> Json:
    """Return a flow schema of kwok's account for a built-in level."""
    subject = {"kind": "ServiceAccount", "serviceAccount": {"name": KWOK, "namespace": SPACE}}
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": name},
        "spec": {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "distinguisherMethod": {"type": "ByUser"},
            "rules": [{"subjects": [subject], "resourceRules": list(rules)}],
        },
    }
