"""Kubernetes objects that the program registered for a cluster, as the provider would send them."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from components.plan.model import ClusterPlan
from rehearsal.local_cluster.objects.results import KubernetesObject
from rehearsal.program.graph import Graph, Resource, reveal

PROVIDER = "pulumi:providers:kubernetes"
PREFIX = "kubernetes:"
AUTONAMED = "pulumi.com/autonamed"
"""The only annotation that the provider does not send. It sends its other annotations, such as skipAwait, with the object:
https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/metadata/annotations.go"""


def objects_of(graph: Graph, cluster: ClusterPlan) -> tuple[KubernetesObject, ...]:
    """Return the objects of one cluster in the order of registration, which is by tiers, with their secrets revealed.

    Empty if the program registered none. The provider would also wait for pods of some kinds; the program marks those with skipAwait.
    """
    providers = {
        resource.urn
        for resource in graph.of_type(PROVIDER)
        if str(reveal(resource.inputs["clusterIdentifier"])).endswith(f"/{cluster.name}")
    }
    return tuple(_sent(resource) for resource in graph if resource.type.startswith(PREFIX) and resource.provider in providers)


def _sent(resource: Resource) -> KubernetesObject:
    """Return a resource's inputs as the provider sends them."""
    item: dict[str, Any] = reveal(resource.inputs)
    annotations = item["metadata"].get("annotations", {})
    if AUTONAMED in annotations:
        item["metadata"]["annotations"] = {key: text for key, text in annotations.items() if key != AUTONAMED}
    return _stored(item) if item["kind"] == "Secret" else item


def _stored(secret: Mapping[str, Any]) -> KubernetesObject:
    """Return a Secret with its stringData moved to data, because the server stores and records only data."""
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in secret.get("stringData", {}).items()}
    rest = {key: value for key, value in secret.items() if key != "stringData"}
    return {**rest, "data": {**secret.get("data", {}), **encoded}}
