"""Who answers for the cluster's names: CoreDNS, its size by the number of nodes and pods, its service addresses.

Every replica holds a watch of all services and EndpointSlices, so a replica is not free for the API servers: the node-local caches take the
queries, and a replica is added per 256 nodes only. Pods are not watched (autopath and verified pod names are off), which would cost
each replica every change of every pod.
"""

from __future__ import annotations

import math

from components.manifests import images, pods, rbac
from components.manifests.owned import SYSTEM_NAMESPACE, Object, frozen_config, name_of, owned, service_account
from components.manifests.priorities import CLUSTER_CRITICAL
from components.plan.access import TEAM_LABEL
from components.plan.addresses import AZURE_DNS_ADDRESS
from components.plan.model import ClusterPlan
from components.plan.naming import CLUSTER_DOMAIN

CONCERN = "dns"
NAME = "coredns"
SELECTOR = {"k8s-app": "kube-dns"}
"""Label by which the services find the replicas; the customary one, so that dashboards and alerts made for others fit."""
NODES_PER_REPLICA = 256
"""Nodes per replica: a project's choice, for caches that ask again only when a record's five seconds are over."""
FEWEST_REPLICAS = 2
BASE_MEMORY_MIB = 54
"""Memory of a replica that knows no pod: https://github.com/coredns/deployment/blob/master/kubernetes/Scaling_CoreDNS.md"""
MEMORY_PER_THOUSAND_MIB = 1
"""Memory per thousand pods and services; same source."""
LEAST_LIMIT_MIB = 170
"""Memory limit of a small cluster's replica: https://github.com/kubernetes/kubernetes/blob/v1.36.3/cluster/addons/dns/coredns/coredns.yaml.base"""
NON_ROOT_USER = 65_532
"""User of the image, by number, because the kubelet cannot tell from the name that it is not root."""

COREFILE = f"""\
.:53 {{
    errors
    health {{
        lameduck 10s
    }}
    ready
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }}
    prometheus :9153
    forward . {AZURE_DNS_ADDRESS} {{
        max_concurrent 1000
    }}
    cache 30 {{
        disable success {CLUSTER_DOMAIN}
        disable denial {CLUSTER_DOMAIN}
    }}
    loadbalance
}}
"""
"""Configuration of CoreDNS.

ttl 5: a gang that restarts has new addresses, and must not meet its old ones in a cache. No reload: a changed file is a new ConfigMap and a
rolling update. Azure's resolver by address, because a node's own resolv.conf may name a stub on the node, which is a loop.
"""


def replicas(nodes: int) -> int:
    """Replicas for a number of nodes: two at least, and one per 256."""
    return max(FEWEST_REPLICAS, math.ceil(nodes / NODES_PER_REPLICA))


def memory_mib(pods_at_most: int) -> tuple[int, int]:
    """Memory request and limit of a replica, in MiB, when every pod that has an address stands behind a service."""
    needed = BASE_MEMORY_MIB + math.ceil(pods_at_most / 1000) * MEMORY_PER_THOUSAND_MIB
    return needed, max(LEAST_LIMIT_MIB, 2 * needed)


def _affinity() -> Object:
    """Never two replicas on one machine, whose queries to Azure's resolver are limited; rather CPU than GPU, rather kept than spot nodes.

    Required, not preferred: https://openai.com/index/scaling-kubernetes-to-2500-nodes/
    """
    others = {"labelSelector": {"matchLabels": SELECTOR}, "topologyKey": "kubernetes.io/hostname"}
    wishes = (
        {"key": "gpufleet.io/gpu", "operator": "DoesNotExist"},
        {"key": "gpufleet.io/capacity", "operator": "NotIn", "values": ["spot"]},
    )
    preferred = [{"weight": 50, "preference": {"matchExpressions": [wish]}} for wish in wishes]
    return {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [others]},
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred},
    }


def _deployment(cluster: ClusterPlan, config: str) -> Object:
    """The replicas."""
    request, limit = memory_mib(sum(pool.spec.nodes * pool.spec.pods_per_node for pool in cluster.pools))
    container = {
        "name": NAME,
        "image": images.COREDNS.reference,
        "args": ["-conf", f"{pods.CONFIG_PATH}/Corefile"],
        "ports": pods.ports(
            ("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP"), ("health", 8080, "TCP"), ("ready", 8181, "TCP")
        ),
        "resources": pods.resources(cpu=("200m", "2"), memory=(f"{request}Mi", f"{limit}Mi")),
        # Port 53 is below 1024.
        "securityContext": pods.security(runAsUser=NON_ROOT_USER, capabilities={"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}),
        "livenessProbe": pods.http_probe("/health", 8080, initialDelaySeconds=60, timeoutSeconds=5, failureThreshold=5),
        "readinessProbe": pods.http_probe("/ready", 8181),
        "volumeMounts": [pods.config_mount()],
    }
    # A cordoned or broken node is not tolerated; a team's or a spot node is, for there may be no other.
    taints = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in (TEAM_LABEL, "gpufleet.io/spot")]
    placement = {"affinity": _affinity(), "tolerations": taints, "nodeSelector": {"kubernetes.io/os": "linux"}}
    spec = pods.pod(
        NAME, CLUSTER_CRITICAL, token=True, dnsPolicy="Default", **placement, containers=[container], volumes=[pods.config_volume(config)]
    )
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}
    return pods.workload("Deployment", NAME, CONCERN, SYSTEM_NAMESPACE, spec, SELECTOR, replicas=replicas(cluster.nodes), strategy=strategy)


def _service(address: str) -> Object:
    """The address at which node-local caches, and pods that pass them by, reach the replicas."""
    rows = (("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP"))
    ports = [{"name": port, "port": number, "protocol": protocol, "targetPort": number} for port, number, protocol in rows]
    return owned("v1", "Service", "kube-dns", CONCERN, SYSTEM_NAMESPACE, SELECTOR) | {
        "spec": {"type": "ClusterIP", "clusterIP": address, "selector": SELECTOR, "ports": ports}
    }


def _budget() -> Object:
    """At most one replica away at a time; one that is not ready protects nobody and never blocks a drain."""
    return owned("policy/v1", "PodDisruptionBudget", NAME, CONCERN, SYSTEM_NAMESPACE) | {
        "spec": {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": SELECTOR}}
    }


def coredns_objects(cluster: ClusterPlan) -> list[Object]:
    """All objects of this concern."""
    config = frozen_config(NAME, CONCERN, SYSTEM_NAMESPACE, {"Corefile": COREFILE})
    reader = [
        rbac.rule("", ["services", "namespaces"], ["list", "watch"]),
        rbac.rule("discovery.k8s.io", ["endpointslices"], ["list", "watch"]),
    ]
    return [
        service_account(NAME, CONCERN, SYSTEM_NAMESPACE),
        rbac.cluster_role("gpufleet-coredns", CONCERN, reader),
        rbac.cluster_binding("gpufleet-coredns", CONCERN, "gpufleet-coredns", rbac.account(NAME, SYSTEM_NAMESPACE)),
        config,
        _service(cluster.network.dns_service_address),
        _deployment(cluster, name_of(config)),
        _budget(),
    ]
