"""Which keys an API server's machine holds, and what is composed of them."""

from __future__ import annotations

from components.boot.secrets import Secrets

KUBERNETES = "/etc/kubernetes"
ENCRYPTION = f"{KUBERNETES}/encryption.yaml"
ETCD_AUTHORITIES = f"{KUBERNETES}/pki/etcd-authorities.pem"

SECRETS = Secrets(
    vault="control",
    directory=f"{KUBERNETES}/pki",
    keep=(
        "cluster-ca-cert",
        "cluster-ca-key",
        "front-proxy-ca-cert",
        "front-proxy-client-cert",
        "front-proxy-client-key",
        "etcd-client-cert",
        "etcd-client-key",
        "apiserver-cert",
        "apiserver-key",
        "apiserver-kubelet-client-cert",
        "apiserver-kubelet-client-key",
        "service-account-key",
        "service-account-public-key",
        "controller-manager-cert",
        "controller-manager-key",
        "scheduler-cert",
        "scheduler-key",
        "csr-approver-cert",
        "csr-approver-key",
        "admin-cert",
        "admin-key",
    ),
    compose={
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
    },
    only_composed=("etcd-ca-cert", "events-ca-cert", "encryption-key"),
)
"""Secrets of an API server's machine. The events ring's client certificate is for people who look into that ring."""


def path(name: str) -> str:
    """Where a kept key or certificate lies."""
    return SECRETS.path(name)
