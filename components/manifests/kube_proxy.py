"""kube-proxy on every node, in nftables mode.

Traffic accounting uses iptables' mangle table. In nftables mode, kube-proxy has its own tables; in iptables mode, it would add canary
chains to mangle and take the xtables lock at each resync. A lookup is one map access for any number of services: https://kubernetes.io/blog/2025/02/28/nftables-kube-proxy/

kube-proxy is gpufleet's only DaemonSet that watches the API server, since each node needs every change of a service. The watch is small:
services, and EndpointSlices of services with an address, without those of headless services, which jobs use.
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
    # Entries per core; the maximum of kube-proxy is 1,048,576, which a 32-core node reaches.
    "maxPerCore": 32_768,
    # Minimum on small nodes; 262,144 entries use about 80 MB.
    "min": 262_144,
    # A day: SSH sessions between ranks of an MPI job are idle for hours and may use a service address.
    "tcpEstablishedTimeout": "24h0m0s",
    "tcpCloseWaitTimeout": "1h0m0s",
    # Otherwise segments out of window are INVALID, are not translated, and reset long flows: https://github.com/kubernetes/kubernetes/issues/74839
    "tcpBeLiberal": True,
    "udpTimeout": "30s",
    "udpStreamTimeout": "2m0s",
}


def proxy_configuration(cluster: ClusterPlan) -> Object:
    """Return the KubeProxyConfiguration of a cluster: https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/"""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": f"{pods.CONFIG_PATH}/kubeconfig", "contentType": "application/vnd.kubernetes.protobuf"},
        # Pods have addresses of the cluster's block; only external traffic to a service is translated to the node's address.
        "detectLocalMode": "ClusterCIDR",
        "clusterCIDR": cluster.network.block,
        "nodePortAddresses": ["primary"],
        "healthzBindAddress": f"0.0.0.0:{HEALTH_PORT}",
        "metricsBindAddress": f"0.0.0.0:{METRICS_PORT}",
        "conntrack": CONNTRACK,
    }


def kubeconfig(cluster: ClusterPlan) -> Object:
    """Return a kubeconfig with the load balancer's name, since the address of the kubernetes service works only with kube-proxy."""
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
    """Return a kube-proxy container without its security context."""
    return {
        "name": name,
        "image": images.kube_proxy(cluster.spec.kubernetes).reference,
        "command": ["/usr/local/bin/kube-proxy", f"--config={pods.CONFIG_PATH}/config.yaml", "--hostname-override=$(NODE_NAME)", *flags],
        "env": [pods.node_name()],
        "resources": pods.resources(cpu=("50m", "1"), memory=("64Mi", "256Mi")),
        "volumeMounts": [pods.config_mount()],
    }


def _daemon_set(cluster: ClusterPlan, config: str) -> Object:
    """Return the DaemonSet with two containers, of which the privileged one only sets up and exits."""
    # Only a privileged container can write the sysctls of conntrack; --init-only sets them and exits. The other container needs only
    # NET_ADMIN.
    privileged = {"privileged": True, "runAsNonRoot": False, "runAsUser": 0, "readOnlyRootFilesystem": True}
    init = _container(cluster, "init", ["--init-only"]) | {"securityContext": privileged}
    # User 0, because other users of a container have no effective capabilities, and netlink needs NET_ADMIN.
    main = _container(cluster, NAME, []) | {
        "securityContext": pods.root("NET_ADMIN"),
        "ports": pods.ports(("healthz", HEALTH_PORT, "TCP"), ("metrics", METRICS_PORT, "TCP")),
        "livenessProbe": pods.http_probe("/livez", HEALTH_PORT, initialDelaySeconds=30, periodSeconds=30, failureThreshold=4),
        "readinessProbe": pods.http_probe("/healthz", HEALTH_PORT, periodSeconds=10),
    }
    spec = pods.pod(NAME, NODE_CRITICAL, token=True, initContainers=[init], containers=[main], volumes=[pods.config_volume(config)])
    return pods.daemon_set(NAME, CONCERN, SYSTEM_NAMESPACE, spec)


def kube_proxy_objects(cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern."""
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
