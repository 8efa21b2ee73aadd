"""What a node's own test may do to the cluster: declare its own node tested, and nothing else.

A node joins with a taint and a label; a pod of a DaemonSet tests its hardware, and on success the test itself takes both away:
https://openai.com/index/scaling-kubernetes-to-7500-nodes/. RBAC has no words for "its own node", nor for "this label": with its role alone
one pod could open every node and drain any. So a policy compares the node's name with the one in the pod's token, which the API server
wrote there itself: https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/#additional-metadata-in-pod-bound-tokens
"""

from __future__ import annotations

from components.manifests import policies, rbac
from components.manifests.owned import FLEET_NAMESPACE, Object, service_account
from components.manifests.policies import NODE_FIELDS, REST_OF_NODE, Demand
from components.plan.access import PREFLIGHT_ACCOUNT, PREFLIGHT_KEY

CONCERN = "preflight"
ROLE = "gpufleet-preflight"
_NODE_NAME = "authentication.kubernetes.io/node-name"
"""What a token tells of its pod's node; one that is bound to no pod has none, and opens nothing."""
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
    """All objects of this concern; the same for every cluster."""
    rules = [
        # get: to see whether the taint is still there. patch: to take it away. No list, no watch: 7,500 of them would hold 7,500 watches.
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
        # A node that somebody cordoned stays so, however well it tests.
        Demand(policies.unchanged("spec.?unschedulable", "false"), "the preflight test neither cordons nor uncordons"),
        REST_OF_NODE,
    ]
    return [
        service_account(PREFLIGHT_ACCOUNT, CONCERN, FLEET_NAMESPACE),
        rbac.cluster_role(ROLE, CONCERN, rules),
        rbac.cluster_binding(ROLE, CONCERN, ROLE, subject),
        *policies.node_policy(ROLE, CONCERN, PREFLIGHT_ACCOUNT, "UPDATE", NODE_FIELDS, demands),
    ]
