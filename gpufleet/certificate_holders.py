"""Which certificates a cluster has, what each is for, in which of its vaults it lies, and which machines hold it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from components.boot import control_keys, etcd_flags, kubelet
from components.boot.secrets import Secrets
from components.pki_certificates import AUTHORITIES
from components.plan.model import ClusterPlan, VaultPlan

END = "-cert"
PURPOSES = {
    "cluster-ca": "authority of API servers, kubelets and their clients",
    "etcd-ca": "authority of the etcd ring and its clients",
    "events-ca": "authority of the events ring and its clients",
    "front-proxy-ca": "authority of the API servers as front proxies",
    "apiserver": "served by the API servers",
    "apiserver-kubelet-client": "API servers to kubelets",
    "front-proxy-client": "API servers to aggregated servers",
    "etcd-client": "API servers to both etcd rings",
    "events-client": "people to the events ring",
    "controller-manager": "controller manager to API server",
    "scheduler": "scheduler to API server",
    "csr-approver": "approver of kubelets' certificates to API server",
    "admin": "break-glass administrator",
}
"""What a certificate is for, by its name; one per member of a ring is not in it."""


@dataclass(frozen=True)
class Holder:
    """A certificate in one vault: secret is its name there, machines says who fetches it, counted where they are many."""

    cluster: str
    name: str
    purpose: str
    vault: VaultPlan
    secret: str
    machines: tuple[str, ...]
    authority: bool


def holders(cluster: ClusterPlan) -> tuple[Holder, ...]:
    """Every certificate of a cluster, once for each vault that has it; pure."""
    return tuple(
        Holder(cluster.name, name, purpose(name), vault, secret, _machines(cluster, vault.role, secret), name in _authorities())
        for vault in cluster.vaults
        for secret in vault.secrets
        if (name := secret.removesuffix(END)) != secret
    )


def purpose(name: str) -> str:
    """What a certificate is for, by its name; KeyError for one that nobody has explained."""
    ring, _, number = name.rpartition("-")
    return f"member {number} of the {ring} ring" if ring in ("etcd", "events") and number.isdigit() else PURPOSES[name]


def _authorities() -> tuple[str, ...]:
    return tuple(f"{role}-ca" for role in AUTHORITIES)


def _machines(cluster: ClusterPlan, role: str, secret: str) -> tuple[str, ...]:
    """Who fetches a secret from the vault of a role: one machine by name, several counted."""
    names = tuple(name for name, secrets in _fetching(cluster, role) if secret in secrets.keep + secrets.only_composed)
    return names if len(names) < 2 else (_counted(len(names), "etcd machine"),)


def _fetching(cluster: ClusterPlan, role: str) -> Iterator[tuple[str, Secrets]]:
    """Machines that read the vault of a role, and what they read."""
    if role == "etcd":
        for ring in (cluster.etcd, cluster.events_etcd):
            for member in ring.members:
                yield member.name, etcd_flags.secrets_of(ring, member)
    elif role == "control":
        yield _counted(cluster.api_servers.count, "API server"), control_keys.secrets_of(cluster)
    else:
        yield _counted(cluster.nodes, "node"), kubelet.secrets_of(cluster)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
