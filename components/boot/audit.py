"""Audit policy of the API server: actions with their users, without contents of secrets and without heartbeats of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import yaml

Rule = Mapping[str, object]

CONFIDENTIAL = (
    {"group": "", "resources": ["secrets", "configmaps", "serviceaccounts/token"]},
    {"group": "authentication.k8s.io", "resources": ["tokenreviews"]},
)
"""Resources whose bodies may contain credentials."""


def rules() -> Sequence[Rule]:
    """Return the rules in order; the first match applies. https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/"""
    status = [
        {"group": "", "resources": ["nodes/status", "pods/status", "events"]},
        {"group": "events.k8s.io", "resources": ["events"]},
    ]
    return (
        # First, so that every read of a secret is logged, also by a node or controller whose key was stolen.
        {"level": "Metadata", "resources": CONFIDENTIAL},
        # Leases and status of nodes are most of the writes in a large cluster, and are not actions of a person.
        {"level": "None", "resources": [{"group": "coordination.k8s.io", "resources": ["leases"]}]},
        {"level": "None", "userGroups": ["system:nodes"], "resources": status},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version", "/metrics"]},
        # The control loops of the control plane read continuously.
        {
            "level": "None",
            "users": ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"],
            "verbs": ["get", "list", "watch"],
        },
        {"level": "None", "userGroups": ["system:nodes"], "verbs": ["get", "list", "watch"]},
        {"level": "Metadata", "verbs": ["get", "list", "watch"]},
        # Changes by a person or a controller: the request shows the change; the response would double the log.
        {"level": "Request", "userGroups": ["system:authenticated"], "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "Metadata"},
    )


@cache
def policy() -> str:
    """Return the audit policy as YAML, without the first stage, which has no information that the last lacks."""
    document = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "omitManagedFields": True}
    plain = [{key: _plain(value) for key, value in rule.items()} for rule in rules()]
    return yaml.safe_dump(document | {"rules": plain}, sort_keys=False, width=200)


def _plain(value: object) -> object:
    """Return a tuple as a list, since YAML has no tuples."""
    return list(value) if isinstance(value, tuple) else value
