"""Validating admission policies, for rules that RBAC cannot express; the API server evaluates them.

https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from __future__ import annotations

from dataclasses import dataclass

from components.manifests.owned import FLEET_NAMESPACE, Object, owned

VERSION = "admissionregistration.k8s.io/v1"
SAME_TAINT = 'a.key == b.key && a.effect == b.effect && a.?value.orValue("") == b.?value.orValue("")'
"""CEL expression: taints a and b are the same."""


@dataclass(frozen=True)
class Demand:
    """A CEL expression that must be true, and the message if it is not."""

    expression: str
    message: str


def username(account: str) -> str:
    """Return the user name of a service account in gpufleet's namespace."""
    return f"system:serviceaccount:{FLEET_NAMESPACE}:{account}"


def node_policy(name: str, concern: str, account: str, operation: str, variables: dict[str, str], demands: list[Demand]) -> list[Object]:
    """Return a policy and its binding for one account's requests on nodes; operation is UPDATE (also for patches) or DELETE.

    The policy does not apply to other accounts, so that an error in it affects no kubelet.
    """
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": ["nodes"]}
    spec: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "by-the-account", "expression": f'request.userInfo.username == "{username(account)}"'}],
        **({"variables": [{"name": key, "expression": text} for key, text in variables.items()]} if variables else {}),
        "validations": [{"expression": row.expression, "message": row.message, "reason": "Forbidden"} for row in demands],
    }
    policy = owned(VERSION, "ValidatingAdmissionPolicy", name, concern) | {"spec": spec}
    binding = owned(VERSION, "ValidatingAdmissionPolicyBinding", name, concern)
    return [policy, binding | {"spec": {"policyName": name, "validationActions": ["Deny"]}}]


def unchanged(path: str, default: str) -> str:
    """Return the expression that a field is unchanged; path is a CEL selection such as spec.?unschedulable, default the absent value."""
    return f"object.{path}.orValue({default}) == oldObject.{path}.orValue({default})"


def same_keys(field: str, may_change: str) -> str:
    """Return the expression that labels or annotations are unchanged, except keys k for which may_change is true."""

    def within(one: str, other: str) -> str:
        return f"variables.{one}.all(k, ({may_change}) || (k in variables.{other} && variables.{other}[k] == variables.{one}[k]))"

    return f"{within(f'new_{field}', f'old_{field}')} && {within(f'old_{field}', f'new_{field}')}"


def before_and_after(field: str, path: str, empty: str) -> dict[str, str]:
    """Return the variables new_<field> and old_<field>, the values of a field after and before a request."""
    return {f"new_{field}": f"object.{path}.orValue({empty})", f"old_{field}": f"oldObject.{path}.orValue({empty})"}


NODE_FIELDS = {
    **before_and_after("labels", "metadata.?labels", "{}"),
    **before_and_after("annotations", "metadata.?annotations", "{}"),
    **before_and_after("taints", "spec.?taints", "[]"),
}
"""Variables of node fields that gpufleet's accounts may change in part."""
REST_OF_NODE = Demand(
    " && ".join(
        (
            unchanged("spec.?providerID", '""'),
            unchanged("spec.?podCIDRs", "[]"),
            unchanged("metadata.?finalizers", "[]"),
            unchanged("metadata.?ownerReferences", "[]"),
        )
    ),
    "a node's provider id, pod addresses, finalizers and owners are not this account's to change",
)
"""Fields of a node that no account of gpufleet changes."""


def other_taints(key: str) -> str:
    """Return the expression that all taints with other keys are unchanged, without added or removed ones."""
    others = [f'variables.{side}_taints.filter(t, t.key != "{key}")' for side in ("new", "old")]
    pairs = " && ".join(f"{one}.all(a, {other}.exists(b, {SAME_TAINT}))" for one, other in (others, reversed(others)))
    return f"{pairs} && {others[0]}.size() == {others[1]}.size()"
