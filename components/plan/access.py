"""Names of users, groups, labels and service accounts that boot files and Kubernetes objects share."""

from __future__ import annotations

ENTRA_PREFIX = "entra:"
"""Prefix of users and groups from Entra ID tokens, so that none can have the name of a cluster user (system:…):
https://kubernetes.io/docs/reference/access-authn-authz/authentication/#using-authentication-configuration"""
BOOTSTRAP_GROUP = "system:bootstrappers:gpufleet:nodes"
"""Extra group of the bootstrap tokens with which a new node requests its first client certificate."""
BOOTSTRAP_TOKEN = "bootstrap-token"  # noqa: S105 - a name
"""Secret of the nodes' vault: the current bootstrap token. `pulumi up` creates the secret without a token, and the approver writes it."""
BOOTSTRAP_TOKEN_IDS = ("gpuf0a", "gpuf0b", "gpuf0c")
"""Public ids of the bootstrap tokens, of which the approver replaces one after the other."""
IDENTITY_NAMESPACE = "gpufleet-node-identity"
"""Namespace of the records of first client certificates."""
REIMAGED_AT = "gpufleet.io/reimaged-at"
"""Annotation of a Node: time of the last reimage of its machine in RFC 3339. Nodes cannot set it."""
CSR_APPROVER_USER = "system:gpufleet:csr-approver"
"""User in the client certificate of the approver of kubelets' certificates."""
KUBELET_CLIENT_USER = "kube-apiserver-kubelet-client"
"""User in the client certificate with which the API servers call kubelets."""
TEAM_LABEL = "gpufleet.io/team"
"""Label of a team's namespace, and key of the taint on nodes allocated to the team; the value is the team's name."""
PREFLIGHT_KEY = "gpufleet.io/preflight"
"""Label and taint of a node whose hardware has not been tested since it joined; the test removes both."""
PREFLIGHT_ACCOUNT = "preflight"
"""Service account of the pods that test nodes, in the namespace of gpufleet."""
ROTATION_ACCOUNT = "rotation"
"""Service account for draining and replacing nodes, in the namespace of gpufleet; no pod runs as it."""


def entra_group(group: str) -> str:
    """Return the Kubernetes group of an Entra ID group, given its object id."""
    return f"{ENTRA_PREFIX}{group}"
