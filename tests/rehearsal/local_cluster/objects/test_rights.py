"""Permissions of each caller, as the real authorizer reports them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from api_client import AUTHENTICATED, Api, Caller, eventually, node, service_account

from components.manifests.bootstrap import APPROVER
from components.manifests.owned import FLEET_NAMESPACE, SYSTEM_NAMESPACE
from components.manifests.rotation import LEASE
from components.manifests.traffic import NAME as TRAFFIC_ACCOUNT
from components.plan.access import (
    BOOTSTRAP_GROUP,
    CSR_APPROVER_USER,
    IDENTITY_NAMESPACE,
    KUBELET_CLIENT_USER,
    PREFLIGHT_ACCOUNT,
    ROTATION_ACCOUNT,
    entra_group,
)
from stacks.load import load_plan

REGION = load_plan("dev")
TEAM = REGION.clusters[0].spec.tenancy.teams[0]
HERE, THERE = "rights-here", "rights-there"
"""Two nodes, each with a pod that mounts a secret of its own."""
NODE, OTHER_NODES = node(HERE), "nodes and pods of others are others' business: a stolen node key must open one node only"
PERSON = Caller("entra:11111111-0000-0000-0000-000000000001", (entra_group(str(TEAM.group)), AUTHENTICATED))
OPERATOR = Caller("entra:11111111-0000-0000-0000-000000000002", (entra_group(str(REGION.spec.access.operators_group)), AUTHENTICATED))
APPROVES = Caller(CSR_APPROVER_USER, (AUTHENTICATED,))
KUBELET_CLIENT = Caller(KUBELET_CLIENT_USER, (AUTHENTICATED,))
PREFLIGHT = service_account(FLEET_NAMESPACE, PREFLIGHT_ACCOUNT)
ROTATION = service_account(FLEET_NAMESPACE, ROTATION_ACCOUNT)
TRAFFIC = service_account(FLEET_NAMESPACE, TRAFFIC_ACCOUNT)
POD = service_account(TEAM.name, "default")
JOINING = Caller("system:bootstrap:abcdef", ("system:bootstrappers", BOOTSTRAP_GROUP, AUTHENTICATED))
STRANGER = Caller("entra:11111111-0000-0000-0000-000000000003", (AUTHENTICATED,))
NOBODY = Caller("system:anonymous", ("system:unauthenticated",))
PROXY = service_account(SYSTEM_NAMESPACE, "kube-proxy")
CSRS, APPROVAL = "certificatesigningrequests.certificates.k8s.io", "certificatesigningrequests.certificates.k8s.io/approval"
SIGNERS, LEASES = "signers.certificates.k8s.io", "leases.coordination.k8s.io"
ROLES, CLUSTER_ROLES = "roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io"
ROLE_BINDINGS = "rolebindings.rbac.authorization.k8s.io"
POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
FLOWS = "flowschemas.flowcontrol.apiserver.k8s.io"
BUDGETS = "poddisruptionbudgets.policy"
GANGS = "podgroups.scheduling.k8s.io"


class Row(NamedTuple):
    """One question and its answer; resource is <plural>[.<group>][/<subresource>], or a path that begins with a slash."""

    by: Caller
    verb: str
    resource: str
    namespace: str
    name: str
    allowed: bool
    reason: str


ROWS = (
    # A node.
    Row(NODE, "get", "nodes", "", HERE, True, "a kubelet reads its own node"),
    Row(NODE, "patch", "nodes/status", "", HERE, True, "a kubelet reports its own status"),
    Row(NODE, "get", "nodes", "", THERE, False, OTHER_NODES),
    Row(NODE, "patch", "nodes", "", THERE, True, "the authorizer knows no owner of a node here; NodeRestriction refuses it on admission"),
    Row(NODE, "patch", "nodes/status", "", THERE, True, "as above"),
    Row(NODE, "delete", "nodes", "", HERE, False, "who joins again does so under the same object"),
    Row(NODE, "update", LEASES, "kube-node-lease", HERE, True, "a kubelet says that it lives"),
    Row(NODE, "update", LEASES, "kube-node-lease", THERE, False, "no kubelet keeps a dead neighbour alive"),
    Row(NODE, "get", "secrets", TEAM.name, f"{HERE}-secret", True, "a pod on the node mounts it"),
    Row(NODE, "get", "secrets", TEAM.name, f"{THERE}-secret", False, "no pod on the node mounts it"),
    Row(NODE, "list", "secrets", TEAM.name, "", False, "a kubelet reads what its pods mount, by name"),
    Row(NODE, "get", "secrets", SYSTEM_NAMESPACE, "bootstrap-token-abcdef", False, "with it anybody could join"),
    Row(NODE, "delete", "pods", TEAM.name, f"{HERE}-pod", True, "a kubelet removes a pod of its own that has ended"),
    Row(NODE, "create", "pods/exec", TEAM.name, f"{THERE}-pod", False, "exec goes through the API servers, never from a node"),
    Row(NODE, "create", "serviceaccounts/token", SYSTEM_NAMESPACE, "coredns", False, "no pod on the node runs as it"),
    Row(NODE, "update", APPROVAL, "", "", False, "nobody approves their own certificate"),
    Row(NODE, "create", CSRS, "", "", True, "a kubelet renews its certificates"),
    # A node that has no certificate yet.
    Row(JOINING, "create", CSRS, "", "", True, "a new node asks for its first certificate"),
    Row(JOINING, "get", CSRS, "", "csr-1", True, "and looks for the answer"),
    Row(JOINING, "create", f"{CSRS}/nodeclient", "", "", False, "the controller manager approves nothing"),
    Row(JOINING, "create", f"{CSRS}/selfnodeclient", "", "", False, "a renewal is for whoever has a certificate"),
    Row(JOINING, "get", "nodes", "", HERE, False, "every machine reads the token: it opens nothing else"),
    Row(JOINING, "create", "nodes", "", "", False, "a node is made by its own certificate"),
    Row(JOINING, "get", "secrets", SYSTEM_NAMESPACE, "bootstrap-token-abcdef", False, "the token gets no other token"),
    Row(JOINING, "list", "pods", "", "", False, "the token sees nothing of the cluster"),
    # A member of a team.
    Row(PERSON, "create", "pods", TEAM.name, "", True, "a team runs its jobs"),
    Row(PERSON, "create", "jobs.batch", TEAM.name, "", True, "a team runs its jobs"),
    Row(PERSON, "delete", "jobs.batch", TEAM.name, "train", True, "and ends them"),
    Row(PERSON, "create", "pods/exec", TEAM.name, "train-0", True, "a team looks into its own pods"),
    Row(PERSON, "get", "secrets", TEAM.name, "wandb", True, "a team's own secrets"),
    Row(PERSON, "create", "pods/eviction", TEAM.name, "train-0", True, "a team moves its own pods"),
    Row(PERSON, "create", "pods", "default", "", False, "a team has its own namespace only"),
    Row(PERSON, "list", "pods", "another-team", "", False, "jobs and their arguments are the other team's"),
    Row(PERSON, "get", "secrets", "another-team", "wandb", False, "another team's secrets"),
    Row(PERSON, "create", "pods", FLEET_NAMESPACE, "", False, "pods there may reach into the host, and run as our accounts"),
    Row(PERSON, "create", "pods/exec", FLEET_NAMESPACE, "dcgm-exporter-x", False, "which is root on a node"),
    Row(PERSON, "get", "secrets", SYSTEM_NAMESPACE, "bootstrap-token-abcdef", False, "with it anybody could join"),
    Row(PERSON, "list", "pods", "", "", False, "the whole cluster is nobody's team"),
    Row(PERSON, "patch", "nodes", "", HERE, False, "a team could give itself others' nodes"),
    Row(PERSON, "get", "nodes/proxy", "", HERE, False, "the kubelet's API runs commands in any pod of the node"),
    Row(PERSON, "create", "namespaces", "", "", False, "namespaces are declared in the region file"),
    Row(PERSON, "patch", "namespaces", "", TEAM.name, False, "the namespace's labels are its pod security level"),
    Row(PERSON, "create", ROLE_BINDINGS, TEAM.name, "", False, "who is in the team, the team's group says"),
    Row(PERSON, "escalate", ROLES, TEAM.name, "", False, "nobody gives rights that they do not have"),
    Row(PERSON, "bind", CLUSTER_ROLES, "", "cluster-admin", False, "nor binds others' roles"),
    Row(PERSON, "impersonate", "users", "", "anybody", False, "nor acts as others"),
    Row(PERSON, "impersonate", "groups", "", "system:masters", False, "nor as the break-glass administrator"),
    Row(PERSON, "create", "priorityclasses.scheduling.k8s.io", "", "", False, "a team could put itself before all others"),
    Row(PERSON, "patch", FLOWS, "", "gpufleet-people", False, "nor before all others at the API servers"),
    Row(PERSON, "delete", POLICIES, "", "gpufleet-preflight", False, "nor lift a policy"),
    # A pod of a team.
    Row(POD, "list", "pods", TEAM.name, "", False, "a pod has no rights that nobody gave its account"),
    Row(POD, "get", "secrets", TEAM.name, "wandb", False, "a pod has the secrets that it mounts"),
    Row(POD, "get", "nodes", "", HERE, False, "a pod knows no nodes"),
    # Operators.
    Row(OPERATOR, "patch", "nodes", "", HERE, True, "operators run the cluster"),
    Row(OPERATOR, "create", "pods/exec", FLEET_NAMESPACE, "dcgm-exporter-x", True, "and look into our own pods"),
    Row(OPERATOR, "create", "serviceaccounts/token", FLEET_NAMESPACE, ROTATION_ACCOUNT, True, "and start a rotation"),
    Row(OPERATOR, "delete", "daemonsets.apps", FLEET_NAMESPACE, "telemetry", True, "and stop what overloads the API servers"),
    # A person whom nobody made a member.
    Row(STRANGER, "list", "pods", TEAM.name, "", False, "whoever can log in to the tenant has no rights by that"),
    Row(STRANGER, "get", "nodes", "", HERE, False, "nor sees the fleet"),
    Row(STRANGER, "get", "/metrics", "", "", False, "nor the API servers' figures"),
    # Whoever shows no name at all.
    Row(NOBODY, "get", "/readyz", "", "", True, "the load balancer's probe shows none"),
    Row(NOBODY, "list", "pods", TEAM.name, "", False, "nothing else is for nobody"),
    Row(NOBODY, "get", "/metrics", "", "", False, "nothing else is for nobody"),
    Row(NOBODY, "get", "configmaps", "kube-public", "cluster-info", False, "nodes get their authority from a vault, not from strangers"),
    Row(NOBODY, "create", CSRS, "", "", False, "who has no token asks for no certificate"),
    # The approver of kubelets' certificates.
    Row(APPROVES, "watch", CSRS, "", "", True, "it waits for requests"),
    Row(APPROVES, "update", APPROVAL, "", "csr-1", True, "and decides"),
    Row(APPROVES, "approve", SIGNERS, "", "kubernetes.io/kubelet-serving", True, "for this signer"),
    Row(APPROVES, "approve", SIGNERS, "", "kubernetes.io/kube-apiserver-client-kubelet", True, "and for nodes' own"),
    Row(APPROVES, "approve", SIGNERS, "", "kubernetes.io/kube-apiserver-client", False, "or an administrator"),
    Row(APPROVES, "update", LEASES, SYSTEM_NAMESPACE, APPROVER, True, "one of them decides at a time"),
    Row(APPROVES, "update", LEASES, SYSTEM_NAMESPACE, "kube-scheduler", False, "it stops no other election"),
    Row(APPROVES, "get", "secrets", SYSTEM_NAMESPACE, "bootstrap-token-abcdef", False, "it reads its own alone"),
    Row(APPROVES, "update", "secrets", SYSTEM_NAMESPACE, "bootstrap-token-gpuf0a", True, "it makes the next token"),
    Row(APPROVES, "list", "secrets", SYSTEM_NAMESPACE, "", False, "and sees no other secret"),
    Row(APPROVES, "create", "configmaps", IDENTITY_NAMESPACE, "", True, "it records what it issues"),
    Row(APPROVES, "update", "configmaps", SYSTEM_NAMESPACE, "any", False, "and nothing elsewhere"),
    Row(APPROVES, "get", "nodes", "", HERE, True, "a Ready node has its certificate"),
    Row(APPROVES, "patch", "nodes", "", HERE, False, "it changes none"),
    Row(NODE, "create", f"{CSRS}/selfnodeclient", "", "", False, "the approver renews, while Azure lists the machine"),
    # The test of a node.
    Row(PREFLIGHT, "patch", "nodes", "", HERE, True, "it takes its taint away; whose, a policy says"),
    Row(PREFLIGHT, "get", "nodes", "", HERE, True, "it sees whether the taint is there"),
    Row(PREFLIGHT, "list", "nodes", "", "", False, "7,500 of them would list 7,500 nodes each"),
    Row(PREFLIGHT, "watch", "nodes", "", "", False, "nor watch them"),
    Row(PREFLIGHT, "patch", "nodes/status", "", HERE, False, "the status is the kubelet's word"),
    Row(PREFLIGHT, "delete", "nodes", "", HERE, False, "it opens nodes, it removes none"),
    Row(PREFLIGHT, "get", "secrets", FLEET_NAMESPACE, "any", False, "it needs none"),
    Row(PREFLIGHT, "create", "pods", FLEET_NAMESPACE, "", False, "it starts nothing"),
    # Whoever rotates nodes.
    Row(ROTATION, "patch", "nodes", "", HERE, True, "it cordons"),
    Row(ROTATION, "watch", "pods", "", "", True, "it sees which jobs a node holds"),
    Row(ROTATION, "create", "pods/eviction", TEAM.name, "train-0", True, "it drains by evictions, which budgets may refuse"),
    Row(ROTATION, "watch", BUDGETS, "", "", True, "it sees which would be refused"),
    Row(ROTATION, "list", GANGS, "", "", True, "it sees when a gang wrote its last checkpoint"),
    Row(ROTATION, "patch", GANGS, TEAM.name, "train", False, "a gang belongs to its team"),
    Row(ROTATION, "delete", "nodes", "", HERE, True, "a machine that is gone leaves its node behind; which, a policy says"),
    Row(ROTATION, "update", LEASES, FLEET_NAMESPACE, LEASE, True, "one run at a time"),
    Row(ROTATION, "list", LEASES, "kube-node-lease", "", True, "it sees which kubelets live"),
    Row(ROTATION, "update", LEASES, "kube-node-lease", HERE, False, "it makes no dead kubelet live"),
    Row(ROTATION, "update", LEASES, SYSTEM_NAMESPACE, "kube-scheduler", False, "it stops no election"),
    Row(ROTATION, "delete", "pods", TEAM.name, "train-0", False, "a delete asks no budget"),
    Row(ROTATION, "create", "pods", FLEET_NAMESPACE, "", False, "it starts nothing"),
    Row(ROTATION, "create", "pods/exec", TEAM.name, "train-0", False, "it looks into no job"),
    Row(ROTATION, "get", "secrets", TEAM.name, "wandb", False, "it needs none"),
    Row(ROTATION, "patch", "nodes/status", "", HERE, False, "the status is the kubelet's word"),
    Row(ROTATION, "create", "nodes", "", "", False, "a kubelet registers itself"),
    Row(ROTATION, "delete", BUDGETS, TEAM.name, "train", False, "it does not get round what it is held to"),
    # What tells whose traffic is whose.
    Row(TRAFFIC, "get", "nodes/pods", "", HERE, True, "its kubelet tells it whose addresses are whose"),
    Row(TRAFFIC, "get", "nodes/proxy", "", HERE, False, "the kubelet's API runs commands in any pod of the node"),
    Row(TRAFFIC, "create", "nodes/proxy", "", HERE, False, "the kubelet's API runs commands in any pod of the node"),
    Row(TRAFFIC, "get", "nodes/metrics", "", HERE, False, "it needs none"),
    Row(TRAFFIC, "list", "pods", "", "", False, "7,500 of them would list all pods each"),
    Row(TRAFFIC, "get", "nodes", "", HERE, False, "it knows its node's name"),
    Row(TRAFFIC, "get", "secrets", FLEET_NAMESPACE, "any", False, "a token that is on every node reads no secret"),
    # The API servers towards kubelets, and kube-proxy.
    Row(KUBELET_CLIENT, "create", "nodes/proxy", "", HERE, True, "logs and exec, which the kubelet has authorized here"),
    Row(KUBELET_CLIENT, "get", "nodes/metrics", "", HERE, True, "metrics"),
    Row(KUBELET_CLIENT, "get", "secrets", SYSTEM_NAMESPACE, "any", False, "its key opens kubelets, not the store"),
    Row(KUBELET_CLIENT, "patch", "nodes", "", HERE, False, "its key opens kubelets, not the store"),
    Row(PROXY, "watch", "endpointslices.discovery.k8s.io", "", "", True, "it programs services"),
    Row(PROXY, "list", "secrets", SYSTEM_NAMESPACE, "", False, "a token that is on every node reads no secret"),
    Row(PROXY, "patch", "nodes", "", HERE, False, "a token that is on every node changes none"),
)


def _allowed(api: Api, row: Row) -> bool:
    if row.resource.startswith("/"):
        request = {"nonResourceAttributes": {"path": row.resource, "verb": row.verb}}
    else:
        whole, _, sub = row.resource.partition("/")
        plural, _, group = whole.partition(".")
        attributes = {
            "verb": row.verb,
            "group": group,
            "resource": plural,
            "subresource": sub,
            "namespace": row.namespace,
            "name": row.name,
        }
        request = {"resourceAttributes": attributes}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": row.by.user, "groups": list(row.by.groups), **request},
    }
    reply = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert reply.status == 201, reply.message
    return bool(reply.body["status"]["allowed"])


@pytest.fixture
def two_nodes(api: Api) -> Iterator[None]:
    """Two nodes, and on each a pod of the team that mounts a secret."""
    made = []
    for name in (HERE, THERE):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{name}-secret"}, "stringData": {"key": "value"}}
        container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
        volume = {"name": "secret", "secret": {"secretName": f"{name}-secret"}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-pod"},
            "spec": {"nodeName": name, "containers": [container], "volumes": [volume]},
        }
        space = f"/api/v1/namespaces/{TEAM.name}"
        # Made by this: a pod of a service account is refused until its account is there.
        eventually(lambda: api.request("GET", f"{space}/serviceaccounts/default").status == 200, "the team's default account")  # noqa: B023
        for path, item in (
            ("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}),
            (f"{space}/secrets", secret),
        ):
            api.make(path, item)
        api.make(f"{space}/pods", pod)
        made += [f"{space}/pods/{name}-pod", f"{space}/secrets/{name}-secret", f"/api/v1/nodes/{name}"]
    yield
    for path in made:
        api.remove(path)


@pytest.mark.usefixtures("two_nodes")
def test_every_caller_may_do_what_the_table_says_and_nothing_that_it_denies(api: Api) -> None:
    mounted = next(row for row in ROWS if row.name == f"{HERE}-secret")
    eventually(lambda: _allowed(api, mounted), "the authorizer knows the pod")
    wrong = [
        f"{row.by.user} {row.verb} {row.resource} {row.namespace}/{row.name}: {row.reason}"
        for row in ROWS
        if _allowed(api, row) is not row.allowed
    ]
    assert wrong == []


def test_a_stranger_gets_no_answer_but_on_the_health_paths(api: Api) -> None:
    assert api.request("GET", "/readyz", token="").status == 200
    for path in ("/api/v1/namespaces", "/metrics", "/openapi/v2", "/version"):
        assert api.request("GET", path, token="").status == 401, path
    assert api.request("GET", "/readyz", token="forged").status == 401  # noqa: S106 (nobody's)
