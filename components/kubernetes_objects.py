"""Decides in which order a cluster's Kubernetes objects are made, and that Pulumi waits for none of them to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

from components.manifests.owned import owner_labels
from components.plan.access import BOOTSTRAP_GROUP, TEAM_LABEL
from components.plan.model import ClusterPlan, RegionPlan

SPACES = frozenset({"Namespace", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"})
"""Kinds without which other objects are refused, and those that restrain an account, which must be there before its rights."""
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
"""Kinds without which a pod starts without rights, or not at all; and the levels to which flow schemas lead."""
AWAITED = frozenset(
    {"DaemonSet", "Deployment", "Ingress", "Job", "PersistentVolumeClaim", "Pod", "ResourceQuota", "Service", "StatefulSet"}
)
"""Kinds that the provider would wait for: https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/await/awaiters.go"""
SKIP_AWAIT = {"pulumi.com/skipAwait": "true"}

KubernetesObject = Mapping[str, Any]


@dataclass(frozen=True)
class KubernetesObjectsArgs:
    """The objects of one cluster: bootstrap_token is "id.secret"; ready is complete when the API servers answer."""

    region: RegionPlan
    plan: ClusterPlan
    objects: tuple[KubernetesObject, ...]
    kubeconfig: pulumi.Input[str]
    bootstrap_token: pulumi.Output[str]
    ready: pulumi.Resource


class KubernetesObjects(pulumi.ComponentResource):
    """Everything that the cluster holds from its first minute on.

    A team's namespace is protected: with it Kubernetes would delete the team's jobs. An update that drops a team is refused until a
    person has seen to them and unprotected the namespace.
    """

    def __init__(self, name: str, args: KubernetesObjectsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:kubernetes_objects:KubernetesObjects", name, {}, opts)
        provider = kubernetes.Provider(
            f"{name}-kubernetes",
            kubeconfig=pulumi.Output.secret(args.kubeconfig),
            # A renewed administrator certificate changes the kubeconfig, but not the cluster: its objects stay.
            cluster_identifier=f"{args.region.name}/{args.plan.name}",
            # A cluster whose API servers are down keeps its objects, with a warning, and the other clusters get theirs.
            skip_update_unreachable=True,
            # Before the API servers answer, every object would fail on its own.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[args.ready]),
        )
        done: list[pulumi.Resource] = []
        for kinds in tiers(args.objects):
            # What a tier holds, objects of the next ones need from their first moment on.
            child = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=done)
            # Waits as every other, and is not deleted by an update: with a team's namespace would go its jobs.
            guarded = pulumi.ResourceOptions(parent=self, provider=provider, depends_on=done, protect=True)
            done = [*done, *(register(name, item, guarded if of_team(item) else child) for item in kinds)]
        pulumi.CustomResource(
            "kubernetes:core/v1:Secret",
            f"{name}-bootstrap-token",
            bootstrap_secret(args.bootstrap_token),
            pulumi.ResourceOptions(parent=self, provider=provider, additional_secret_outputs=["stringData", "data"]),
        )
        self.register_outputs({})


def bootstrap_secret(token: pulumi.Output[str]) -> dict[str, Any]:
    """The Secret with which a node joins: good for asking a client certificate and for nothing else.

    https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
    """
    # The id is public, the Secret is named after it.
    token_id = pulumi.Output.unsecret(token).apply(lambda text: text.partition(".")[0])
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {
            "name": pulumi.Output.concat("bootstrap-token-", token_id),
            "namespace": "kube-system",
            "labels": owner_labels("bootstrap"),
        },
        "stringData": {
            "token-id": token_id,
            "token-secret": token.apply(lambda text: text.partition(".")[2]),
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": BOOTSTRAP_GROUP,
        },
    }


def tiers(objects: Iterable[KubernetesObject]) -> tuple[tuple[KubernetesObject, ...], ...]:
    """The objects in three tiers, each of which must be there before the next: spaces, rights, everything else."""
    items = tuple(objects)
    spaces = tuple(item for item in items if item["kind"] in SPACES)
    rights = tuple(item for item in items if item["kind"] in RIGHTS)
    return spaces, rights, tuple(item for item in items if item["kind"] not in SPACES | RIGHTS)


def of_team(item: KubernetesObject) -> bool:
    """Whether the object is a team's namespace."""
    return item["kind"] == "Namespace" and TEAM_LABEL in item["metadata"].get("labels", {})


def type_token(item: KubernetesObject) -> str:
    """Type token under which the typed SDK registers an object, for example kubernetes:core/v1:Service."""
    version = item["apiVersion"]
    return f"kubernetes:{version if '/' in version else f'core/{version}'}:{item['kind']}"


def logical_name(item: KubernetesObject) -> str:
    """Kind, namespace and name, which tell an object from every other of its cluster."""
    metadata = item["metadata"]
    return "/".join(part for part in (item["kind"], metadata.get("namespace"), metadata["name"]) if part)


def register(name: str, item: KubernetesObject, opts: pulumi.ResourceOptions) -> pulumi.Resource:
    """Register one object as it is, which costs two thirds of what a typed resource does and gives the same one."""
    return pulumi.CustomResource(type_token(item), f"{name}-{logical_name(item)}", dict(unawaited(item)), opts)


def unawaited(item: KubernetesObject) -> KubernetesObject:
    """The object, marked not to be waited for: its pods run when the first nodes have joined, which may be long after the update."""
    if item["kind"] not in AWAITED:
        return item
    metadata = item["metadata"]
    return {**item, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **SKIP_AWAIT}}}
