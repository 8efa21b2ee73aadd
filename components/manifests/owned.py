"""Names, labels and namespaces of Kubernetes objects that belong to gpufleet."""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeAlias

Object: TypeAlias = dict[str, Any]
"""One Kubernetes object as JSON data."""

SYSTEM_NAMESPACE = "kube-system"
"""Built-in namespace, for objects that every node or pod needs (proxy, DNS)."""
FLEET_NAMESPACE = "gpufleet-system"
"""Namespace of gpufleet, for GPU and InfiniBand plugins and metrics."""
MANAGED_BY = "app.kubernetes.io/managed-by"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
OWNER = "gpufleet"


def owner_labels(concern: str) -> dict[str, str]:
    """Return the labels of gpufleet's objects and pods; concern is their part of the cluster, for example dns."""
    return {MANAGED_BY: OWNER, PART_OF: concern}


def owned(
    api_version: str, kind: str, name: str, concern: str, namespace: str | None = None, labels: dict[str, str] | None = None
) -> Object:
    """Return apiVersion, kind and metadata of an object; the caller adds the body with the | operator."""
    metadata: Object = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata | {"labels": owner_labels(concern) | (labels or {})}}


def frozen_config(name: str, concern: str, namespace: str, data: dict[str, str]) -> Object:
    """Return an immutable ConfigMap whose name ends in eight digits of the hash of its content.

    A changed configuration is a new object, so that pods get it by a rolling update and not all at the same time. Kubelets do not watch an
    immutable ConfigMap: https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable
    """
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]
    return owned("v1", "ConfigMap", f"{name}-{digest}", concern, namespace) | {"immutable": True, "data": data}


def service_account(name: str, concern: str, namespace: str) -> Object:
    """Return a ServiceAccount whose token is not mounted unless the pod requests it."""
    return owned("v1", "ServiceAccount", name, concern, namespace) | {"automountServiceAccountToken": False}


def name_of(item: Object) -> str:
    """Return the name of an object."""
    return str(item["metadata"]["name"])
