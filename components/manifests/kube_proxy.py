"""How service addresses reach pods: kube-proxy on every node, in nftables mode.

nftables, because the traffic accounting lives in iptables' mangle table: in this mode kube-proxy keeps its rules in tables of its own,
whereas in iptables mode it keeps canary chains in mangle too and takes the xtables lock at each resync. A lookup costs one map access
however many services there are: https://kubernetes.io/blog/2025/02/28/nftables-kube-proxy/

kube-proxy is our only DaemonSet that watches the API server: it must learn every change of a service on every node. What it watches is
small: services, and the EndpointSlices of services that have an address; those of headless services, which jobs use, it filters out.
"""

from __future__ import annotations

import yaml

from components.manifests import images, pods, rbac
from components.manifests.owned import SYSTEM_NAMESPACE, Object, frozen_config, name_of, service_account
from components.manifests.priorities import NODE_CRITICAL
from components.plan.model import ClusterPlan

CONCERN = "kube-proxy"
NAME = "kube-proxy"
HEALTH_PORT = 10256
METRICS_PORT = 10249
CONNTRACK = {
    # Entries per core; kube-proxy itself stops at 1,048,576, which a 32-core node reaches.
    "maxPerCore": 32_768,
    # At least this on small nodes; 262,144 entries are about 80 MB when all are used.
    "min": 262_144,
    # A day: SSH sessions between the ranks of an MPI job stay silent for hours and may run through a service address.
    "tcpEstablishedTimeout": "24h0m0s",
    "tcpCloseWaitTimeout": "1h0m0s",
    # Segments out of window are otherwise INVALID, lose their translation and reset long flows: https://github.com/kubernetes/kubernetes/issues/74839
    "tcpBeLiberal": True,
    "udpTimeout": "30s",
    "udpStreamTimeout": "2m0s",
}


def proxy_configuration(cluster: ClusterPlan) -> Object:
    """KubeProxyConfiguration of a cluster: https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/"""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": f"{pods.CONFIG_PATH}/kubeconfig", "contentType": "application/vnd.kubernetes.protobuf"},
        # Pods have addresses of the cluster's block: only traffic to a service from outside is translated to the node's own address.
        "detectLocalMode": "ClusterCIDR",
        "clusterCIDR": cluster.network.block,
        "nodePortAddresses": ["primary"],
        "healthzBindAddress": f"0.0.0.0:{HEALTH_PORT}",
        "metricsBindAddress": f"0.0.0.0:{METRICS_PORT}",
        "conntrack": CONNTRACK,
    }


def kubeconfig(cluster: ClusterPlan) -> Object:
    """Kubeconfig with the load balancer's name: the kubernetes service's own address works only once kube-proxy does."""
    secrets = "/var/run/secrets/kubernetes.io/serviceaccount"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {"server": cluster.api_servers.url, "certificate-authority": f"{secrets}/ca.crt"}}],
        "users": [{"name": NAME, "user": {"tokenFile": f"{secrets}/token"}}],
        "contexts": [{"name": NAME, "context": {"cluster": "cluster", "user": NAME}}],
        "current-context": NAME,
    }


def _container(cluster: ClusterPlan, name: str, flags: list[str]) -> Object:
    """One kube-proxy container, without its security context."""
    return {
        "name": name,
        "image": images.kube_proxy(cluster.spec.kubernetes).reference,
        "command": ["/usr/local/bin/kube-proxy", f"--config={pods.CONFIG_PATH}/config.yaml", "--hostname-override=$(NODE_NAME)", *flags],
        "env": [pods.node_name()],
        "resources": pods.resources(cpu=("50m", "1"), memory=("64Mi", "256Mi")),
        "volumeMounts": [pods.config_mount()],
    }


def _daemon_set(cluster: ClusterPlan, config: str) -> Object:
    """kube-proxy on every node, in two containers: the privileged one only sets up and ends."""
    # The sysctls of conntrack are writable in a privileged container alone; --init-only sets them and exits, so that what keeps running
    # needs no more than NET_ADMIN.
    privileged = {"privileged": True, "runAsNonRoot": False, "runAsUser": 0, "readOnlyRootFilesystem": True}
    init = _container(cluster, "init", ["--init-only"]) | {"securityContext": privileged}
    # User 0, because a container's other users have no effective capabilities, and netlink asks for NET_ADMIN.
    main = _container(cluster, NAME, []) | {
        "securityContext": pods.root("NET_ADMIN"),
        "ports": pods.ports(("healthz", HEALTH_PORT, "TCP"), ("metrics", METRICS_PORT, "TCP")),
        "livenessProbe": pods.http_probe("/livez", HEALTH_PORT, initialDelaySeconds=30, periodSeconds=30, failureThreshold=4),
        "readinessProbe": pods.http_probe("/healthz", HEALTH_PORT, periodSeconds=10),
    }
    spec = pods.pod(NAME, NODE_CRITICAL, token=True, initContainers=[init], containers=[main], volumes=[pods.config_volume(config)])
    return pods.daemon_set(NAME, CONCERN, SYSTEM_NAMESPACE, spec)


def kube_proxy_objects(cluster: ClusterPlan) -> list[Object]:
    """All objects of this concern."""
    data = {
        "config.yaml": yaml.safe_dump(proxy_configuration(cluster), sort_keys=False),
        "kubeconfig": yaml.safe_dump(kubeconfig(cluster), sort_keys=False),
    }
    config = frozen_config(NAME, CONCERN, SYSTEM_NAMESPACE, data)
    return [
        service_account(NAME, CONCERN, SYSTEM_NAMESPACE),
        rbac.cluster_binding("gpufleet-kube-proxy", CONCERN, "system:node-proxier", rbac.account(NAME, SYSTEM_NAMESPACE)),
        config,
        _daemon_set(cluster, name_of(config)),
    ]
