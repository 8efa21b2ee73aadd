"""Rights of the preflight test: it may only mark its own node as tested.

A node joins with a taint and a label. A DaemonSet pod tests its hardware and on success removes both:
https://openai.com/index/scaling-kubernetes-to-7500-nodes/. RBAC cannot express "its own node" or "this label": with the role alone, a pod
could untaint and drain all nodes. Therefore a policy compares the node's name with that in the pod's token, which the API server adds:
 https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#additional-metadata-in-pod-bound-tokens
"""

from __future__ import annotations

from components.manifests import policies, rbac
from components.manifests.owned import FLEET_NAMESPACE, Object, service_account
from components.manifests.policies import NODE_FIELDS, REST_OF_NODE, Demand
from components.plan.access import PREFLIGHT_ACCOUNT, PREFLIGHT_KEY

CONCERN = "preflight"
ROLE = "gpufleet-preflight"
_NODE_NAME = "authentication.kubernetes.io/node-name"
"""Claim with the node of a token's pod; a token without a pod lacks it and has no effect."""
_OWN_NODE = (
    f'request.userInfo.?extra["{_NODE_NAME}"].orValue([]) == [object.metadata.name]',
    "the preflight test changes only the node that its own pod runs on, by the token of that pod",
)
_KEY = f'"{PREFLIGHT_KEY}"'
_ONLY_REMOVES = (
    f"!({_KEY} in variables.new_labels) || (variables.old_labels[?{_KEY}] == optional.of(variables.new_labels[{_KEY}]))",
    f"the preflight test may take the label {PREFLIGHT_KEY} away, not put it on or change it",
)
_TAKES_AWAY = (
    f"variables.new_taints.filter(t, t.key == {_KEY}).all(a, variables.old_taints.exists(b, {policies.SAME_TAINT}))",
    f"the preflight test may take the taint {PREFLIGHT_KEY} away, not put it on or change it",
)


def preflight_objects() -> list[Object]:
    """Return all objects of this concern, the same for every cluster."""
    rules = [
        # get: to read the taint. patch: to remove it. No list or watch: 7,500 pods would have 7,500 watches.
        rbac.rule("", ["nodes"], ["get", "patch"]),
    ]
    subject = rbac.account(PREFLIGHT_ACCOUNT, FLEET_NAMESPACE)
    only = f"k == {_KEY}"
    demands = [
        Demand(*_OWN_NODE),
        Demand(*_ONLY_REMOVES),
        Demand(*_TAKES_AWAY),
        Demand(policies.same_keys("labels", only), f"of a node's labels the preflight test takes {PREFLIGHT_KEY} away and no other"),
        Demand(policies.other_taints(PREFLIGHT_KEY), f"of a node's taints the preflight test takes {PREFLIGHT_KEY} away and no other"),
        Demand(policies.same_keys("annotations", "false"), "the preflight test changes no annotation of a node"),
        # A cordoned node remains cordoned after a successful test.
        Demand(policies.unchanged("spec.?unschedulable", "false"), "the preflight test neither cordons nor uncordons"),
        REST_OF_NODE,
    ]
    return [
        service_account(PREFLIGHT_ACCOUNT, CONCERN, FLEET_NAMESPACE),
        rbac.cluster_role(ROLE, CONCERN, rules),
        rbac.cluster_binding(ROLE, CONCERN, ROLE, subject),
        *policies.node_policy(ROLE, CONCERN, PREFLIGHT_ACCOUNT, "UPDATE", NODE_FIELDS, demands),
    ]
