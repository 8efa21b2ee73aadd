"""Rights of node rotation: read pods, gangs and nodes, cordon, evict, and delete nodes of deleted machines.

Rotation runs outside the cluster with a service account that no pod uses: the operator requests a token for the hours of one run, and there
is no permanent token. Not granted: secrets, exec, creating or deleting pods (a delete ignores disruption budgets, an eviction does not),
and the status of nodes, which only the kubelet writes.
"""

from __future__ import annotations

from components.manifests import policies, rbac
from components.manifests.owned import FLEET_NAMESPACE, Object, service_account
from components.manifests.policies import NODE_FIELDS, REST_OF_NODE, Demand
from components.plan.access import PREFLIGHT_KEY, ROTATION_ACCOUNT

CONCERN = "rotation"
ROLE = "gpufleet-rotation"
LEASE = "gpufleet-rotation"
"""Lease that allows one run per cluster at a time."""
NODE_LEASES_NAMESPACE = "kube-node-lease"
"""Built-in namespace of the heartbeat leases of kubelets."""
OWN_PREFIX = "gpufleet.io/"
"""Prefix of annotations with owner, reason and end time of a cordon."""
_READS = ["get", "list", "watch"]


def _rules() -> list[Object]:
    """Return the cluster-wide rules: nodes have no namespace, and their pods are in all namespaces."""
    return [
        # patch: to cordon and uncordon, to annotate the reason, and to mark a reimaged node as untested.
        rbac.rule("", ["nodes"], [*_READS, "patch"]),
        # There is no cloud controller that would delete the Node of a deleted machine.
        rbac.rule("", ["nodes"], ["delete"]),
        # One watch of pods for the whole run: a list per node was most of the API load of draining.
        rbac.rule("", ["pods"], _READS),
        rbac.rule("", ["pods/eviction"], ["create"]),
        # To check before an eviction whether it would be refused.
        rbac.rule("policy", ["poddisruptionbudgets"], _READS),
        # To interrupt a gang at its last checkpoint, which its PodGroup has.
        rbac.rule("scheduling.k8s.io", ["podgroups"], _READS),
    ]


def _lease_rules() -> list[Object]:
    """Return the rules for the lease of a run, in gpufleet's namespace."""
    return [
        rbac.rule("coordination.k8s.io", ["leases"], ["get", "update"], [LEASE]),
        # RBAC cannot restrict create by name, because the name is not known when the request is authorized.
        rbac.rule("coordination.k8s.io", ["leases"], ["create"]),
    ]


def _update_demands() -> list[Demand]:
    """Return the demands on updates of nodes by rotation."""
    return [
        Demand(policies.same_keys("labels", f'k == "{PREFLIGHT_KEY}"'), f"of a node's labels the rotation changes {PREFLIGHT_KEY} only"),
        Demand(policies.other_taints(PREFLIGHT_KEY), f"of a node's taints the rotation changes {PREFLIGHT_KEY} only"),
        Demand(
            policies.same_keys("annotations", f'k.startsWith("{OWN_PREFIX}")'),
            f"of a node's annotations the rotation changes those that begin with {OWN_PREFIX}",
        ),
        REST_OF_NODE,
    ]


_CORDONED = "oldObject.spec.?unschedulable.orValue(false)"
_ALIVE = 'oldObject.?status.?conditions.orValue([]).exists(c, c.type == "Ready" && c.status == "True")'
_DEAD = Demand(
    f"{_CORDONED} && !{_ALIVE}",
    "the rotation deletes a node only when it is cordoned and its kubelet no longer reports: drain it, and wait until its machine is gone",
)


def rotation_objects() -> list[Object]:
    """Return all objects of this concern, the same for every cluster."""
    subject = rbac.account(ROTATION_ACCOUNT, FLEET_NAMESPACE)
    # To check whether the kubelet of a node with an old status is alive; no watch, which would receive all lease renewals.
    heartbeats = [rbac.rule("coordination.k8s.io", ["leases"], ["get", "list"])]
    return [
        service_account(ROTATION_ACCOUNT, CONCERN, FLEET_NAMESPACE),
        rbac.cluster_role(ROLE, CONCERN, _rules()),
        rbac.cluster_binding(ROLE, CONCERN, ROLE, subject),
        rbac.role(ROLE, CONCERN, FLEET_NAMESPACE, _lease_rules()),
        rbac.binding(ROLE, CONCERN, FLEET_NAMESPACE, "Role", ROLE, subject),
        rbac.role(ROLE, CONCERN, NODE_LEASES_NAMESPACE, heartbeats),
        rbac.binding(ROLE, CONCERN, NODE_LEASES_NAMESPACE, "Role", ROLE, subject),
        *policies.node_policy(f"{ROLE}-changes", CONCERN, ROTATION_ACCOUNT, "UPDATE", NODE_FIELDS, _update_demands()),
        *policies.node_policy(f"{ROLE}-deletes", CONCERN, ROTATION_ACCOUNT, "DELETE", {}, [_DEAD]),
    ]
