"""Kubernetes objects of a cluster, and their apply order."""

from __future__ import annotations

from components.manifests.bootstrap import bootstrap_objects
from components.manifests.coredns import coredns_objects
from components.manifests.flow_control import flow_control_objects
from components.manifests.gpu import gpu_objects
from components.manifests.gpu_metrics import gpu_metrics_objects
from components.manifests.infiniband import infiniband_objects
from components.manifests.kube_proxy import kube_proxy_objects
from components.manifests.node_local_dns import node_local_dns_objects
from components.manifests.owned import Object
from components.manifests.preflight import preflight_objects
from components.manifests.priorities import priority_objects
from components.manifests.rotation import rotation_objects
from components.manifests.tenancy import tenancy_objects
from components.manifests.traffic import traffic_objects
from components.plan.model import ClusterPlan, RegionPlan

APPLY_ORDER = (
    "Namespace",
    "PriorityClass",
    "RuntimeClass",
    "PriorityLevelConfiguration",
    "FlowSchema",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ConfigMap",
    "Service",
    "PodDisruptionBudget",
    "Deployment",
    "DaemonSet",
)
"""Kinds in apply order: objects that others refer to come first."""


def objects_by_concern(region: RegionPlan, cluster: ClusterPlan) -> dict[str, list[Object]]:
    """Return the objects of a cluster by concern; a review has one file per concern."""
    return {
        "bootstrap": bootstrap_objects(),
        "tenancy": tenancy_objects(region, cluster),
        "priorities": priority_objects(),
        "flow-control": flow_control_objects(region, cluster),
        "rotation": rotation_objects(),
        "preflight": preflight_objects(),
        "kube-proxy": kube_proxy_objects(cluster),
        "coredns": coredns_objects(cluster),
        "node-local-dns": node_local_dns_objects(cluster),
        "gpu": gpu_objects(cluster),
        "infiniband": infiniband_objects(cluster),
        "gpu-metrics": gpu_metrics_objects(cluster),
        "traffic": traffic_objects(cluster),
    }


def cluster_objects(region: RegionPlan, cluster: ClusterPlan) -> tuple[Object, ...]:
    """Return all Kubernetes objects of one cluster, in apply order."""
    every = [item for items in objects_by_concern(region, cluster).values() for item in items]
    return tuple(sorted(every, key=lambda item: APPLY_ORDER.index(item["kind"])))
