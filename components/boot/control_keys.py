"""Keys of an API server's machine, and files composed of them."""

from __future__ import annotations

from components.boot.secrets import Secrets
from components.plan.model import ClusterPlan

KUBERNETES = "/etc/kubernetes"
DIRECTORY = f"{KUBERNETES}/pki"
ENCRYPTION = f"{KUBERNETES}/encryption.yaml"
ETCD_AUTHORITIES = f"{KUBERNETES}/pki/etcd-authorities.pem"

UNREAD = frozenset({"events-client-cert", "events-client-key"})
"""Secrets of the vault for people who inspect the events etcd; they are on no machine."""
ONLY_COMPOSED = ("etcd-ca-cert", "events-ca-cert", "encryption-key")
_COMPOSE = {
    # kube-apiserver accepts one file of authorities and one client certificate for both etcd clusters.
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
        # Objects that were written before the key existed can still be read.
        "  - identity: {}",
    ),
}


def secrets_of(cluster: ClusterPlan) -> Secrets:
    """Return the secrets of an API server's machine: all secrets of the control plane's vault that programs read."""
    stored = tuple(name for name in cluster.vault("control").secrets if name not in UNREAD and name not in ONLY_COMPOSED)
    return Secrets(vault="control", directory=DIRECTORY, stored=stored, compose=_COMPOSE, only_composed=ONLY_COMPOSED)


def path(name: str) -> str:
    """Return the path of a stored key or certificate."""
    return f"{DIRECTORY}/{name}.pem"
