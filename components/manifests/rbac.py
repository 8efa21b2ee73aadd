"""RBAC roles, bindings and subjects."""

from __future__ import annotations

from components.manifests.owned import Object, owned

GROUP = "rbac.authorization.k8s.io"
VERSION = f"{GROUP}/v1"


def user(name: str) -> Object:
    """Return the subject of a user."""
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def group(name: str) -> Object:
    """Return the subject of a group of users."""
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def account(name: str, namespace: str) -> Object:
    """Return the subject of a service account."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def rule(api_group: str, resources: list[str], verbs: list[str], names: list[str] | None = None) -> Object:
    """Return a rule; names restricts it to single objects, which RBAC cannot do for create, list and watch."""
    return {"apiGroups": [api_group], "resources": resources, "verbs": verbs} | ({"resourceNames": names} if names else {})


def cluster_role(name: str, concern: str, rules: list[Object]) -> Object:
    """Return a ClusterRole of gpufleet."""
    return owned(VERSION, "ClusterRole", name, concern) | {"rules": rules}


def role(name: str, concern: str, namespace: str, rules: list[Object]) -> Object:
    """Return a Role of gpufleet in a namespace."""
    return owned(VERSION, "Role", name, concern, namespace) | {"rules": rules}


def cluster_binding(name: str, concern: str, cluster_role_name: str, subject: Object) -> Object:
    """Return a ClusterRoleBinding of one subject to any ClusterRole."""
    return owned(VERSION, "ClusterRoleBinding", name, concern) | {
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": cluster_role_name},
        "subjects": [subject],
    }


def binding(name: str, concern: str, namespace: str, role_kind: str, role_name: str, subject: Object) -> Object:
    """Return a RoleBinding of one subject in one namespace; role_kind is Role or ClusterRole."""
    return owned(VERSION, "RoleBinding", name, concern, namespace) | {
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role_name},
        "subjects": [subject],
    }
