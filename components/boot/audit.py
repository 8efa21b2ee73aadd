"""What the API server writes down of each request: who did what, never a secret's content, and nothing of nodes' heartbeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import yaml

Rule = Mapping[str, object]

CONFIDENTIAL = (
    {"group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"]},
    {"group": "authentication.k8s.io", "resources": ["tokenreviews"]},
)
"""Resources whose bodies may hold credentials."""


def rules() -> Sequence[Rule]:
    """Rules in order; the first that matches decides. https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/"""
    status = [
        {"group": "", "resources": ["nodes/status", "pods/status", "events"]},
        {"group": "events.k8s.io", "resources": ["events"]},
    ]
    return (
        # First, so that whoever reads a secret leaves a trace: a node and a controller whose key was stolen too.
        {"level": "Metadata", "resources": CONFIDENTIAL},
        # Nodes' leases and status are most of a large cluster's writes, and nobody's decision.
        {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
        {"level": "None", "userGroups": ["system:nodes"], "resources": status},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version", "/metrics"]},
        # The control plane's own loops read without end.
        {
            "level": "None",
            "users": ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"],
            "verbs": ["get", "list", "watch"],
        },
        {"level": "None", "userGroups": ["system:nodes"], "verbs": ["get", "list", "watch"]},
        {"level": "Metadata", "verbs": ["get", "list", "watch"]},
        # What a person or a controller changed: the request says what was asked for, the answer would double the log.
        {"level": "Request", "userGroups": ["system:authenticated"], "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "Metadata"},
    )


@cache
def policy() -> str:
    """Audit policy, YAML; the first stage is left out, for it says nothing that the last does not."""
    document = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "omitManagedFields": True}
    plain = [{key: _plain(value) for key, value in rule.items()} for rule in rules()]
    return yaml.safe_dump(document | {"rules": plain}, sort_keys=False, width=200)


def _plain(value: object) -> object:
    """Tuples as lists: YAML has no tuples."""
    return list(value) if isinstance(value, tuple) else value
