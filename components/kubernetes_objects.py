"""Kubernetes objects of a cluster as Pulumi resources, in order and without waiting for pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.plan.access import TEAM_LABEL
from components.plan.model import ClusterPlan, RegionPlan

PREREQUISITES = frozenset({"Namespace", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
"""Kinds that other objects require, and policies that restrict an account, which must exist before its rights."""
RIGHTS = frozenset(
    {
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "PriorityClass",
        "RuntimeClass",
        "PriorityLevelConfiguration",
    }
)
"""Kinds without which a pod lacks rights or does not start, and the priority levels of flow schemas."""
AWAITED = frozenset(
    {"DaemonSet", "Deployment", "Ingress", "Job", "PersistentVolumeClaim", "Pod", "ResourceQuota", "Service", "StatefulSet"}
)
"""Kinds for which the provider would wait: https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/await/awaiters.go"""
SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}

KubernetesObject = Mapping[str, Any]


@dataclass(frozen=True)
class KubernetesObjectsArgs:
    """The objects of one cluster; ready is complete when the API servers answer."""

    region: RegionPlan
    plan: ClusterPlan
    objects: tuple[KubernetesObject, ...]
    kubeconfig: pulumi.Input[str]
    ready: pulumi.Resource


class KubernetesObjects(pulumi.ComponentResource):
    """All objects that gpufleet creates in the cluster.

    A team's namespace is protected, because its deletion would delete the team's jobs. An update that removes a team is refused until a
    person has unprotected the namespace.
    """

    def __init__(self, name: str, args: KubernetesObjectsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:kubernetes_objects:KubernetesObjects", name, {}, opts)
        provider = kubernetes.Provider(
            f"{name}-kubernetes",
            kubeconfig=pulumi.Output.secret(args.kubeconfig),
            # A renewed administrator certificate changes the kubeconfig but not the cluster; its objects remain.
            cluster_identifier=f"{args.region.name}/{args.plan.name}",
            # If the API servers of a cluster are down, its objects remain, with a warning, and other clusters are updated.
            skip_update_unreachable=True,
            # Before the API servers are ready, each object would fail.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[args.ready]),
        )
        done: list[pulumi.Resource] = []
        for kinds in tiers(args.objects):
            # Objects of a tier require those of the previous tiers.
            child = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=done)
            # Protected, since the deletion of a team's namespace would delete its jobs.
            guarded = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=done, protect=True)
            done = [*done, *(register(name, item, guarded if of_team(item) else child) for item in kinds)]
        self.register_outputs({})


def tiers(objects: Iterable[KubernetesObject]) -> tuple[tuple[KubernetesObject, ...], ...]:
    """Return the objects in three tiers, each of which must exist before the next: prerequisites, rights, all others."""
    items = tuple(objects)
    prerequisites = tuple(item for item in items if item["kind"] in PREREQUISITES)
    rights = tuple(item for item in items if item["kind"] in RIGHTS)
    return prerequisites, rights, tuple(item for item in items if item["kind"] not in PREREQUISITES | RIGHTS)


def of_team(item: KubernetesObject) -> bool:
    """Return True if the object is a team's namespace."""
    return item["kind"] == "Namespace" and TEAM_LABEL in item["metadata"].get("labels", {})


def type_token(item: KubernetesObject) -> str:
    """Return the type token of the typed SDK for an object, for example kubernetes:core/v1:Service."""
    version = item["apiVersion"]
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{item['kind']}"


def logical_name(item: KubernetesObject) -> str:
    """Return kind, namespace and name, which are unique in the cluster."""
    metadata = item["metadata"]
    return "/".join(part for part in (item["kind"], metadata.get("namespace"), metadata["name"]) if part)


def register(name: str, item: KubernetesObject, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """Register one object from raw data, which needs two thirds of the time of a typed resource, with the same result."""
    return pulumi.CustomResource(type_token(item), f"{name}-{logical_name(item)}", dict(unawaited(item)), opts)


def unawaited(item: KubernetesObject) -> KubernetesObject:
    """Return the object with an annotation against waiting, since its pods run after the first nodes have joined."""
    if item["kind"] not in AWAITED:
        return item
    metadata = item["metadata"]
    return {**item, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **SKIP_AWAIT}}}
