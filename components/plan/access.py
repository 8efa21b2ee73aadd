"""Who acts on a cluster: the user, group and label names that the API server, the machines and the Kubernetes objects share."""

from __future__ import annotations

ENTRA_PREFIX = "entra:"
"""Prefix of every user and group that a token of Entra ID names, so that none can pass for one of the cluster's own (system:…):
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#using-authentication-configuration"""
BOOTSTRAP_GROUP = "system:bootstrappers:gpufleet:nodes"
"""Extra group of the bootstrap token with which a new node asks for its first client certificate."""
CSR_APPROVER_USER = "system:gpufleet:csr-approver"
"""User of the client certificate with which the approver of kubelets' serving certificates works."""
KUBELET_CLIENT_USER = "kube-apiserver-kubelet-client"
"""User of the client certificate with which the API servers call kubelets."""
TEAM_LABEL = "gpufleet.io/team"
"""Label of a team's namespace and key of the taint on nodes that are the team's; the value is the team's name."""
PREFLIGHT_KEY = "gpufleet.io/preflight"
"""Label and taint of a node whose hardware has not been tested since it joined; the test itself takes both away."""
PREFLIGHT_ACCOUNT = "preflight"
"""Service account, in our own namespace, of the pods that test nodes."""
ROTATION_ACCOUNT = "rotation"
"""Service account, in our own namespace, as which nodes are drained and replaced; no pod runs as it."""


def entra_group(group: str) -> str:
    """Group as the API server knows it, from its object id in Entra ID."""
    return f"{ENTRA_PREFIX}{group}"
