"""Under which path the API server serves a kind, which of them hold objects of a namespace, and which kinds are ours to take away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.local_cluster.objects.connection import DISCOVERY, Connection
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
"""Kinds, with their API versions, of which the program makes objects: those alone are looked through for what it no longer makes."""
ROOTS = ("/api", "/apis")
FIRST_WAIT_SECONDS = 0.2


@dataclass(frozen=True)
class ServedKind:
    """A kind that the server knows: path of its collection without a namespace, and its plural name."""

    root: str
    plural: str
    namespaced: bool

    def collection(self, namespace: str = "") -> str:
        """Path of all objects, or of one namespace's."""
        return f"{self.root}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.root}/{self.plural}"

    def item(self, key: ObjectKey) -> str:
        """Path of one object."""
        return f"{self.collection(key.namespace if self.namespaced else '')}/{key.name}"


Kinds = Mapping[tuple[str, str], ServedKind]
"""Served kinds by API version and kind."""


def discover(connection: Connection) -> Kinds:
    """Every kind that the server serves, in two requests."""
    kinds: dict[tuple[str, str], ServedKind] = {}
    for root in ROOTS:
        kinds.update(kinds_in(root, connection.request("GET", root, accept=DISCOVERY).body))
    return kinds


def kinds_in(root: str, body: Mapping[str, Any]) -> Kinds:
    """The kinds that one answer of discovery tells of."""
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
    connection: Connection, wanted: Iterable[tuple[str, str]], kinds: Kinds, patience: float, say: Callable[[str], None]
) -> Kinds:
    """The served kinds as soon as all wanted ones are among them, or when patience (seconds) is over: a definition takes a moment to be
    served, and a server that starts does not serve everything at once."""
    end, wait, names = time.monotonic() + patience, FIRST_WAIT_SECONDS, sorted(set(wanted))
    while (missing := [pair for pair in names if pair not in kinds]) and time.monotonic() + wait < end:
        say(f"waits for {', '.join(f'{kind} of {version}' for version, kind in missing)} to be served")
        time.sleep(wait)
        wait = min(2 * wait, 5.0)
        kinds = discover(connection)
    return kinds
