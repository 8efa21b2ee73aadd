"""What whoever rotates nodes may do to the cluster: see what runs, cordon, evict, and remove nodes whose machines are gone.

The rotation works from outside the cluster, under a service account that no pod runs as: its operator has the API server issue a token
for the hours of one run, and no lasting one exists. Not granted: secrets, exec, making or deleting pods (an eviction asks the pod's
disruption budget, a delete does not), and the status of nodes, which is the kubelet's word.
"""

from __future__ import annotations

from components.manifests import policies, rbac
from components.manifests.owned import FLEET_NAMESPACE, Object, service_account
from components.manifests.policies import NODE_FIELDS, REST_OF_NODE, Demand
from components.plan.access import PREFLIGHT_KEY, ROTATION_ACCOUNT

CONCERN = "rotation"
ROLE = "gpufleet-rotation"
LEASE = "gpufleet-rotation"
"""Lease of the one run that a cluster may have at a time."""
NODE_LEASES_NAMESPACE = "kube-node-lease"
"""Built-in namespace of the leases by which kubelets say that they live."""
OWN_PREFIX = "gpufleet.io/"
"""Prefix of the annotations in which the rotation says who cordoned a node, why and until when."""
_READS = ["get", "list", "watch"]


def _rules() -> list[Object]:
    """Rights in the whole cluster, since nodes are of none of its namespaces and the pods on them of all."""
    return [
        # patch: to cordon and uncordon, to say why, and to mark a reimaged node as untested.
        rbac.rule("", ["nodes"], [*_READS, "patch"]),
        # Nobody else takes the object of a deleted machine away: there is no cloud controller.
        rbac.rule("", ["nodes"], ["delete"]),
        # Which jobs a node holds; by one watch for the whole run, since a list per node was most of what draining cost the API servers.
        rbac.rule("", ["pods"], _READS),
        rbac.rule("", ["pods/eviction"], ["create"]),
        # Whether an eviction would be refused, before it is asked for.
        rbac.rule("policy", ["poddisruptionbudgets"], _READS),
    ]


def _lease_rules() -> list[Object]:
    """Rights on the lease of a run, in our own namespace."""
    return [
        rbac.rule("coordination.k8s.io", ["leases"], ["get", "update"], [LEASE]),
        # RBAC cannot restrict create by name, because the name is not known when the request is authorized.
        rbac.rule("coordination.k8s.io", ["leases"], ["create"]),
    ]


def _update_demands() -> list[Demand]:
    """What of a node the rotation may change."""
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
    """All objects of this concern; the same for every cluster."""
    subject = rbac.account(ROTATION_ACCOUNT, FLEET_NAMESPACE)
    # Whether a kubelet lives, of a node whose status is old; no watch, which would bring every renewal of every node.
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
