"""Kubernetes objects that the program registered for a cluster, as the provider would send them."""

from __future__ import annotations

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
    """Return the objects of one cluster in the order of registration, which is by tiers.

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
    return item
