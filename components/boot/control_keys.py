"""Which keys an API server's machine holds, and what is composed of them."""

from __future__ import annotations

from components.boot.secrets import Secrets
from components.plan.model import ClusterPlan

KUBERNETES = "/etc/kubernetes"
DIRECTORY = f"{KUBERNETES}/pki"
ENCRYPTION = f"{KUBERNETES}/encryption.yaml"
ETCD_AUTHORITIES = f"{KUBERNETES}/pki/etcd-authorities.pem"

UNREAD = frozenset({"events-client-cert", "events-client-key"})
"""Secrets of the vault that are for people who look into the events ring, and on no machine."""
ONLY_COMPOSED = ("etcd-ca-cert", "events-ca-cert", "encryption-key")
_COMPOSE = {
    # kube-apiserver takes one file of authorities and one client certificate for both rings.
    ETCD_AUTHORITIES: ("{{etcd-ca-cert}}", "{{events-ca-cert}}"),
    ENCRYPTION: (
        "apiVersion: apiserver.config.k8s.io/v1",
        "kind: EncryptionConfiguration",
        "resources:",
        "- resources: [secrets]",
        "  providers:",
        "  - secretbox:",
        "      keys:",
        "      - name: key1",
        '        secret: "{{encryption-key}}"',
        # What was written before there was a key can still be read.
        "  - identity: {}",
    ),
}


def secrets_of(cluster: ClusterPlan) -> Secrets:
    """Secrets of an API server's machine: all of the control plane's vault that programs read."""
    keep = tuple(name for name in cluster.vault("control").secrets if name not in UNREAD and name not in ONLY_COMPOSED)
    return Secrets(vault="control", directory=DIRECTORY, keep=keep, compose=_COMPOSE, only_composed=ONLY_COMPOSED)


def path(name: str) -> str:
    """Where a kept key or certificate lies."""
    return f"{DIRECTORY}/{name}.pem"
