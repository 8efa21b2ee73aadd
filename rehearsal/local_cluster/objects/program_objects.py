"""Which Kubernetes objects the program registered for a cluster, as the provider would send them."""

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
"""The one annotation that the provider keeps to itself. Others of its own, skipAwait too, it sends with the object, and acts on:
https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/metadata/annotations.go"""


def objects_of(graph: Graph, cluster: ClusterPlan) -> tuple[KubernetesObject, ...]:
    """The objects of one cluster in the order in which they were registered, which is by tiers, with their secrets revealed.

    Empty where the program registered none for the cluster. Nothing is waited for beyond what the API server answers: the provider would
    wait for pods, which none of ours asks of it, since each such object is marked with skipAwait.
    """
    providers = {
        resource.urn
        for resource in graph.of_type(PROVIDER)
        if str(reveal(resource.inputs["clusterIdentifier"])).endswith(f"/{cluster.name}")
    }
    return tuple(_sent(resource) for resource in graph if resource.type.startswith(PREFIX) and resource.provider in providers)


def _sent(resource: Resource) -> KubernetesObject:
    """A resource's inputs as they go over the wire."""
    item: dict[str, Any] = reveal(resource.inputs)
    annotations = item["metadata"].get("annotations", {})
    if AUTONAMED in annotations:
        item["metadata"]["annotations"] = {key: text for key, text in annotations.items() if key != AUTONAMED}
    return _stored(item) if item["kind"] == "Secret" else item


def _stored(secret: Mapping[str, Any]) -> KubernetesObject:
    """A Secret with its stringData as data: what the server keeps, and so all that an owner of fields can own of it."""
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in secret.get("stringData", {}).items()}
    rest = {key: value for key, value in secret.items() if key != "stringData"}
    return {**rest, "data": {**secret.get("data", {}), **encoded}}
