"""How a rule that is too fine for RBAC is said: validating admission policies, which the API server itself decides.

https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
"""

from __future__ import annotations

from dataclasses import dataclass

from components.manifests.owned import FLEET_NAMESPACE, Object, owned

VERSION = "admissionregistration.k8s.io/v1"
SAME_TAINT = 'a.key == b.key && a.effect == b.effect && a.?value.orValue("") == b.?value.orValue("")'
"""Expression of CEL: taints a and b are the same."""


@dataclass(frozen=True)
class Demand:
    """An expression of CEL that must hold, and what a caller is told where it does not."""

    expression: str
    message: str


def username(account: str) -> str:
    """User name of a service account of our own namespace."""
    return f"system:serviceaccount:{FLEET_NAMESPACE}:{account}"


def node_policy(name: str, concern: str, account: str, operation: str, variables: dict[str, str], demands: list[Demand]) -> list[Object]:
    """Policy, and its binding, on what one account does with nodes; operation is UPDATE, which a patch is too, or DELETE.

    Nobody else's requests are looked at, so that a fault in the policy stops that account and no kubelet.
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
    """A field is what it was; path as CEL's optional field selection, for example spec.?unschedulable, default what an absent one is."""
    return f"object.{path}.orValue({default}) == oldObject.{path}.orValue({default})"


def same_keys(field: str, may_change: str) -> str:
    """A map of the metadata, labels or annotations, is what it was but for keys k of which may_change holds."""

    def within(one: str, other: str) -> str:
        return f"variables.{one}.all(k, ({may_change}) || (k in variables.{other} && variables.{other}[k] == variables.{one}[k]))"

    return f"{within(f'new_{field}', f'old_{field}')} && {within(f'old_{field}', f'new_{field}')}"


def before_and_after(field: str, path: str, empty: str) -> dict[str, str]:
    """Variables new_<field> and old_<field>: what a request makes of a field, and what it was."""
    return {f"new_{field}": f"object.{path}.orValue({empty})", f"old_{field}": f"oldObject.{path}.orValue({empty})"}


NODE_FIELDS = {
    **before_and_after("labels", "metadata.?labels", "{}"),
    **before_and_after("annotations", "metadata.?annotations", "{}"),
    **before_and_after("taints", "spec.?taints", "[]"),
}
"""Variables of what of a node an account of ours may change in part."""
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
"""What of a node no account of ours changes."""


def other_taints(key: str) -> str:
    """Every taint with another key than this is what it was, added and removed ones included."""
    kept = [f'variables.{side}_taints.filter(t, t.key != "{key}")' for side in ("new", "old")]
    pairs = " && ".join(f"{one}.all(a, {other}.exists(b, {SAME_TAINT}))" for one, other in (kept, reversed(kept)))
    return f"{pairs} && {kept[0]}.size() == {kept[1]}.size()"
