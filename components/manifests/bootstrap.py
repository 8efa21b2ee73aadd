"""RBAC objects for node certificates: bootstrap token, client certificates and the approver of serving certificates.

A new node requests a client certificate with the bootstrap token; the controller manager approves it. With that certificate, the kubelet
requests a serving certificate, which only gpufleet's approver approves, if name and addresses match the Azure instance.
https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/
"""

from __future__ import annotations

from components.manifests import rbac
from components.manifests.owned import SYSTEM_NAMESPACE, Object
from components.plan.access import BOOTSTRAP_GROUP, CSR_APPROVER_USER

CONCERN = "bootstrap"
CERTIFICATES = "certificates.k8s.io"
KUBELET_SERVING_SIGNER = "kubernetes.io/kubelet-serving"
APPROVER = "gpufleet-csr-approver"
_CSR = "system:certificates.k8s.io:certificatesigningrequests"


def node_bootstrap() -> list[Object]:
    """Return the bindings of new and of joined nodes."""
    rows = (
        ("gpufleet-node-bootstrapper", "system:node-bootstrapper", BOOTSTRAP_GROUP),
        ("gpufleet-approve-first-client-certificate", f"{_CSR}:nodeclient", BOOTSTRAP_GROUP),
        ("gpufleet-renew-client-certificate", f"{_CSR}:selfnodeclient", "system:nodes"),
    )
    return [rbac.cluster_binding(name, CONCERN, role, rbac.group(group)) for name, role, group in rows]


def csr_approver() -> list[Object]:
    """Return the rights of the approver of serving certificates: read requests, approve for one signer, and use one Lease."""
    reviewer = [
        rbac.rule(CERTIFICATES, ["certificatesigningrequests"], ["get", "list", "watch"]),
        rbac.rule(CERTIFICATES, ["certificatesigningrequests/approval"], ["update"]),
        rbac.rule(CERTIFICATES, ["signers"], ["approve"], [KUBELET_SERVING_SIGNER]),
    ]
    elector = [
        rbac.rule("coordination.k8s.io", ["leases"], ["get", "update"], [APPROVER]),
        # RBAC cannot restrict create by name, because the name is not known when the request is authorized.
        rbac.rule("coordination.k8s.io", ["leases"], ["create"]),
    ]
    approver = rbac.user(CSR_APPROVER_USER)
    return [
        rbac.cluster_role(APPROVER, CONCERN, reviewer),
        rbac.cluster_binding(APPROVER, CONCERN, APPROVER, approver),
        rbac.role(APPROVER, CONCERN, SYSTEM_NAMESPACE, elector),
        rbac.binding(APPROVER, CONCERN, SYSTEM_NAMESPACE, "Role", APPROVER, approver),
    ]


def bootstrap_objects() -> list[Object]:
    """Return all objects of this concern, the same for every cluster."""
    return [*node_bootstrap(), *csr_approver()]
