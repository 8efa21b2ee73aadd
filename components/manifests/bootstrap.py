"""RBAC objects and policies for node certificates: bootstrap tokens, the approver of kubelets' certificates, and its records.

A new machine requests a client certificate with a bootstrap token and Azure's attested data. Only gpufleet's approver approves it, and
renewals and serving certificates, if Azure lists the machine: the controller manager approves nothing by itself.
https://kubernetes.io/docs/reference/access-authn-authz/kubelet-tls-bootstrapping/
"""

from __future__ import annotations

import base64

from components.manifests import rbac
from components.manifests.owned import SYSTEM_NAMESPACE, Object, owned
from components.manifests.policies import VERSION as POLICY_VERSION
from components.plan.access import BOOTSTRAP_GROUP, BOOTSTRAP_TOKEN_IDS, CSR_APPROVER_USER, IDENTITY_NAMESPACE, REIMAGED_AT

CONCERN = "bootstrap"
CERTIFICATES = "certificates.k8s.io"
KUBELET_SERVING_SIGNER = "kubernetes.io/kubelet-serving"
KUBELET_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
APPROVER = "gpufleet-csr-approver"
TOKEN_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105 - a type
TOKEN_POLICY = "gpufleet-bootstrap-tokens"  # noqa: S105 - a name
REIMAGE_POLICY = "gpufleet-reimage-record"
TOKEN_FIELDS = ("token-id", "token-secret", "expiration", "usage-bootstrap-authentication", "auth-extra-groups")
_TOKENS = [f"bootstrap-token-{token_id}" for token_id in BOOTSTRAP_TOKEN_IDS]


def node_bootstrap() -> list[Object]:
    """Return the binding of new machines, which may create and read signing requests."""
    return [rbac.cluster_binding("gpufleet-node-bootstrapper", CONCERN, "system:node-bootstrapper", rbac.group(BOOTSTRAP_GROUP))]


def csr_approver() -> list[Object]:
    """Return the rights of the approver: decide requests of two signers, read Nodes, keep records and tokens, and use one Lease."""
    reviewer = [
        rbac.rule(CERTIFICATES, ["certificatesigningrequests"], ["get", "list", "watch"]),
        rbac.rule(CERTIFICATES, ["certificatesigningrequests/approval"], ["update"]),
        rbac.rule(CERTIFICATES, ["signers"], ["approve"], [KUBELET_SERVING_SIGNER, KUBELET_CLIENT_SIGNER]),
        rbac.rule("", ["nodes"], ["get"]),
    ]
    # RBAC cannot restrict create by name, because the name is not known when the request is authorized. For Secrets a policy does.
    system = [
        rbac.rule("coordination.k8s.io", ["leases"], ["get", "update"], [APPROVER]),
        rbac.rule("coordination.k8s.io", ["leases"], ["create"]),
        rbac.rule("", ["secrets"], ["get", "update"], _TOKENS),
        rbac.rule("", ["secrets"], ["create"]),
    ]
    recorder = [rbac.rule("", ["configmaps"], ["get", "list", "create", "update", "delete"])]
    approver = rbac.user(CSR_APPROVER_USER)
    return [
        rbac.cluster_role(APPROVER, CONCERN, reviewer),
        rbac.cluster_binding(APPROVER, CONCERN, APPROVER, approver),
        rbac.role(APPROVER, CONCERN, SYSTEM_NAMESPACE, system),
        rbac.binding(APPROVER, CONCERN, SYSTEM_NAMESPACE, "Role", APPROVER, approver),
        owned("v1", "Namespace", IDENTITY_NAMESPACE, CONCERN),
        rbac.role(APPROVER, CONCERN, IDENTITY_NAMESPACE, recorder),
        rbac.binding(APPROVER, CONCERN, IDENTITY_NAMESPACE, "Role", APPROVER, approver),
    ]


def _policy(name: str, condition: str, operations: list[str], resources: list[str], expression: str, message: str) -> list[Object]:
    """Return a policy on requests that meet a condition, and its binding."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": resources}
    spec: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "by-the-sender", "expression": condition}],
        "validations": [{"expression": expression, "message": message, "reason": "Forbidden"}],
    }
    policy = owned(POLICY_VERSION, "ValidatingAdmissionPolicy", name, CONCERN) | {"spec": spec}
    binding = owned(POLICY_VERSION, "ValidatingAdmissionPolicyBinding", name, CONCERN)
    return [policy, binding | {"spec": {"policyName": name, "validationActions": ["Deny"]}}]


def token_policy() -> list[Object]:
    """Return the policy that lets the approver write bootstrap tokens of new machines, and no other Secrets."""
    group = base64.b64encode(BOOTSTRAP_GROUP.encode()).decode()
    fields, names = (", ".join(f'"{one}"' for one in many) for many in (TOKEN_FIELDS, _TOKENS))
    expression = (
        f'object.type == "{TOKEN_TYPE}" && object.metadata.name in [{names}] && object.data.all(k, k in [{fields}]) '
        f'&& object.data["auth-extra-groups"] == "{group}"'
    )
    message = f"the approver writes only bootstrap tokens of group {BOOTSTRAP_GROUP}: {', '.join(_TOKENS)}"
    condition = f'request.userInfo.username == "{CSR_APPROVER_USER}"'
    return _policy(TOKEN_POLICY, condition, ["CREATE", "UPDATE"], ["secrets"], expression, message)


def reimage_policy() -> list[Object]:
    """Return the policy that forbids nodes to record a reimage, which would allow a second certificate."""
    new, old = (f'{one}.metadata.?annotations[?"{REIMAGED_AT}"].orValue("")' for one in ("object", "oldObject"))
    expression = f'{new} == (oldObject == null ? "" : {old})'
    condition = '"system:nodes" in request.userInfo.groups'
    message = f"nodes do not set annotation {REIMAGED_AT}"
    return _policy(REIMAGE_POLICY, condition, ["CREATE", "UPDATE"], ["nodes", "nodes/status"], expression, message)


def bootstrap_objects() -> list[Object]:
    """Return all objects of this concern, the same for every cluster."""
    return [*node_bootstrap(), *csr_approver(), *token_policy(), *reimage_policy()]
