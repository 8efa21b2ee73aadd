"""Which names and labels mark a Kubernetes object as ours, and in which namespaces ours live."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
"""One Kubernetes object, as its API takes it in JSON."""

SYSTEM_NAMESPACE = "kube-system"
"""Built-in namespace: what every node or every pod needs (proxy, DNS) lives here."""
FLEET_NAMESPACE = "gpufleet-system"
"""Our own namespace: what makes GPUs and InfiniBand usable and measured."""
MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
OWNER = "gpufleet"


def owner_labels(concern: str) -> dict[str, str]:
    """Labels of every object and pod of ours; concern is the part of the cluster that it belongs to, for example dns."""
    return {MANAGED_BY: OWNER, PART_OF: concern}


def owned(
    api_version: str, kind: str, name: str, concern: str, namespace: str | None = None, labels: dict[str, str] | None = None
) -> Object:
    """Head of one object: apiVersion, kind and metadata; the caller adds the body with the | operator."""
    metadata: Object = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata | {"labels": owner_labels(concern) | (labels or {})}}


def frozen_config(name: str, concern: str, namespace: str, data: dict[str, str]) -> Object:
    """ConfigMap that never changes, its name ending in eight digits of its content's hash.

    A changed configuration is a new object, so that it reaches the pods by their rolling update and not everywhere at once;
    and kubelets do not watch an immutable ConfigMap: https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable
    """
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]
    return owned("v1", "ConfigMap", f"{name}-{digest}", concern, namespace) | {"immutable": True, "data": data}


def service_account(name: str, concern: str, namespace: str) -> Object:
    """ServiceAccount whose token no pod gets unless the pod asks for it."""
    return owned("v1", "ServiceAccount", name, concern, namespace) | {"automountServiceAccountToken": False}


def name_of(item: Object) -> str:
    """Name of an object."""
    return str(item["metadata"]["name"])
