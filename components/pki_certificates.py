"""Certificates of a cluster: subject, authority and name of the vault secret."""

from __future__ import annotations

from dataclasses import dataclass

from components.plan.access import CSR_APPROVER_USER, KUBELET_CLIENT_USER
from components.plan.model import ApiServersPlan, ClusterPlan, EtcdPlan
from components.plan.naming import CLUSTER_DOMAIN
from components.x509 import Subject

AUTHORITIES = ("cluster", "etcd", "events", "front-proxy")
"""Each etcd cluster has its own authority, so that a client of one is not a client of the other."""
LOOPBACK_NAME, LOOPBACK = "localhost", "127.0.0.1"
SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{CLUSTER_DOMAIN}")
"""Names of the API servers for pods."""
CLIENTS = (
    ("etcd-client", "etcd", "kube-apiserver-etcd-client", ()),
    ("events-client", "events", "kube-apiserver-etcd-client", ()),
    ("front-proxy-client", "front-proxy", "front-proxy-client", ()),
    ("apiserver-kubelet-client", "cluster", KUBELET_CLIENT_USER, ()),
    ("controller-manager", "cluster", "system:kube-controller-manager", ()),
    ("scheduler", "cluster", "system:kube-scheduler", ()),
    ("csr-approver", "cluster", CSR_APPROVER_USER, ()),
    ("admin", "cluster", "gpufleet-break-glass", ("system:masters",)),
)
"""Client certificates: name, authority, user and groups (https://kubernetes.io/docs/setup/best-practices/certificates/)."""


@dataclass(frozen=True)
class CertificatePlan:
    """One leaf certificate: its vault secrets are name-cert and name-key."""

    name: str
    authority: str
    subject: Subject


def certificates_of(plan: ClusterPlan) -> tuple[CertificatePlan, ...]:
    """Return all leaf certificates of a cluster."""
    clients = (CertificatePlan(name, authority, Subject(user, groups, (), (), ("client",))) for name, authority, user, groups in CLIENTS)
    serving = CertificatePlan("apiserver", "cluster", _api_servers(plan.api_servers, plan.network.kubernetes_service_address))
    return (*_members(plan.etcd), *_members(plan.events_etcd), serving, *clients)


def _members(etcd: EtcdPlan) -> tuple[CertificatePlan, ...]:
    """Return a leaf certificate per member, for server and client use between members."""
    return tuple(
        CertificatePlan(
            name=f"{etcd.role}-{member.member}",
            authority=etcd.role,
            subject=Subject(member.name, (), (member.dns_name, LOOPBACK_NAME), (member.address, LOOPBACK), ("server", "client")),
        )
        for member in etcd.members
    )


def _api_servers(plan: ApiServersPlan, service_address: str) -> Subject:
    """Return the subject of the API servers' serving certificate, with all their names and addresses."""
    addresses = [plan.address, service_address, LOOPBACK] + ([plan.endpoint_address] if plan.endpoint_address else [])
    return Subject("kube-apiserver", (), (plan.dns_name, *SERVICE_NAMES, LOOPBACK_NAME), tuple(addresses), ("server",))
