"""Kinds that an API server serves, by discovery, and the kinds that pruning covers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lifecycle.kubernetes_api.connection import DISCOVERY, Connection
from rehearsal.local_cluster.objects.results import ObjectKey

PRUNED_KINDS: Mapping[str, str] = {
    "Namespace": "v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "RuntimeClass": "node.k8s.io/v1",
    "PriorityLevelConfiguration": "flowcontrol.apiserver.k8s.io/v1",
    "FlowSchema": "flowcontrol.apiserver.k8s.io/v1",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1",
    "ServiceAccount": "v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "ConfigMap": "v1",
    "Secret": "v1",
    "Service": "v1",
    "PodDisruptionBudget": "policy/v1",
    "Deployment": "apps/v1",
    "DaemonSet": "apps/v1",
}
"""Kinds that the program creates, with their API versions. Only objects of these kinds are pruned."""
ROOTS = ("/api", "/apis")
FIRST_WAIT_SECONDS = 0.2


@dataclass(frozen=True)
class ServedKind:
    """A kind that the server serves: path of its API version, plural name, and True if its objects have a namespace."""

    root: str
    plural: str
    namespaced: bool

    def collection(self, namespace: str = "") -> str:
        """Return the path of all objects, or of the objects in a namespace."""
        return f"{self.root}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.root}/{self.plural}"

    def item(self, key: ObjectKey) -> str:
        """Return the path of one object."""
        return f"{self.collection(key.namespace if self.namespaced else '')}/{key.name}"


Kinds = Mapping[tuple[str, str], ServedKind]
"""Served kinds by API version and kind."""


def discover(connection: Connection) -> Kinds:
    """Return every kind that the server serves, in two requests."""
    kinds: dict[tuple[str, str], ServedKind] = {}
    for root in ROOTS:
        kinds.update(kinds_in(root, connection.request("GET", root, accept=DISCOVERY).body))
    return kinds


def kinds_in(root: str, body: Mapping[str, Any]) -> Kinds:
    """Return the kinds in one response of discovery."""
    kinds = {}
    for group in body.get("items", []):
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            api_version = f"{name}/{version['version']}" if name else version["version"]
            for resource in version.get("resources", []):
                served = ServedKind(f"{root}/{api_version}", resource["resource"], resource["scope"] == "Namespaced")
                kinds[api_version, resource["responseKind"]["kind"]] = served
    return kinds


def wait_until_served(
    connection: Connection, required: Iterable[tuple[str, str]], kinds: Kinds, patience: float, say: Callable[[str], None]
) -> Kinds:
    """Return the served kinds once they contain all required ones, or after patience (seconds).

    A CustomResourceDefinition is served after a moment, and a starting server serves its groups one after the other.
    """
    end, wait, pairs = time.monotonic() + patience, FIRST_WAIT_SECONDS, sorted(set(required))
    while (missing := [pair for pair in pairs if pair not in kinds]) and time.monotonic() + wait < end:
        say(f"waiting until {', '.join(f'{kind} of {version}' for version, kind in missing)} is served")
        time.sleep(wait)
        wait = min(2 * wait, 5.0)
        kinds = discover(connection)
    return kinds
