"""CoreDNS of a cluster: configuration, size by nodes and pods, and service addresses.

Each replica watches all services and EndpointSlices, which is load on the API servers. Therefore node-local caches answer most queries, and
there is one replica per 256 nodes. Replicas do not watch pods (autopath and verified pod names are off), since each replica would receive
every change of every pod.
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
"""Label by which services select the replicas; the usual label, so that common dashboards and alerts work."""
NODES_PER_REPLICA = 256
"""Nodes per replica, chosen for caches that query again only after the five seconds of a record."""
FEWEST_REPLICAS = 2
BASE_MEMORY_MIB = 54
"""Memory of a replica without pods: https://github.com/coredns/deployment/blob/master/kubernetes/Scaling_CoreDNS.md"""
MEMORY_PER_THOUSAND_MIB = 1
"""Memory per thousand pods and services; same source."""
LEAST_LIMIT_MIB = 170
"""Memory limit of a small cluster's replica: https://github.com/kubernetes/kubernetes/blob/v1.36.3/cluster/addons/dns/coredns/coredns.yaml.base"""
NON_ROOT_USER = 65_532
"""User of the image, as a number, because the kubelet cannot verify from a name that it is not root."""

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
    """Return the replicas for a number of nodes: at least two, and one per 256."""
    return max(FEWEST_REPLICAS, math.ceil(nodes / NODES_PER_REPLICA))


def memory_mib(pods_at_most: int) -> tuple[int, int]:
    """Return memory request and limit of a replica in MiB, if every pod with an address is in a service."""
    needed = BASE_MEMORY_MIB + math.ceil(pods_at_most / 1000) * MEMORY_PER_THOUSAND_MIB
    return needed, max(LEAST_LIMIT_MIB, 2 * needed)


def _affinity() -> Object:
    """Return the affinity: never two replicas on a machine, whose queries to Azure's resolver are limited; preferably no GPU or spot nodes.

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
    """Return the Deployment."""
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
    # A cordoned or broken node is not tolerated; a team's or a spot node is, since there may be no other.
    taints = [{"key": key, "operator": "Exists", "effect": "NoSchedule"} for key in (TEAM_LABEL, "gpufleet.io/spot")]
    placement = {"affinity": _affinity(), "tolerations": taints, "nodeSelector": {"kubernetes.io/os": "linux"}}
    spec = pods.pod(
        NAME, CLUSTER_CRITICAL, token=True, dnsPolicy="Default", **placement, containers=[container], volumes=[pods.config_volume(config)]
    )
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}
    return pods.workload("Deployment", NAME, CONCERN, SYSTEM_NAMESPACE, spec, SELECTOR, replicas=replicas(cluster.nodes), strategy=strategy)


def _service(address: str) -> Object:
    """Return the service for node-local caches and for pods that do not use them."""
    rows = (("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", 9153, "TCP"))
    ports = [{"name": port, "port": number, "protocol": protocol, "targetPort": number} for port, number, protocol in rows]
    return owned("v1", "Service", "kube-dns", CONCERN, SYSTEM_NAMESPACE, SELECTOR) | {
        "spec": {"type": "ClusterIP", "clusterIP": address, "selector": SELECTOR, "ports": ports}
    }


def _budget() -> Object:
    """Return the disruption budget: at most one unavailable replica; an unready replica never blocks a drain."""
    return owned("policy/v1", "PodDisruptionBudget", NAME, CONCERN, SYSTEM_NAMESPACE) | {
        "spec": {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": SELECTOR}}
    }


def coredns_objects(cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern."""
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
