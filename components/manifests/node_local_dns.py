"""DNS cache on every node, which forwards queries of cluster names to CoreDNS and all others to Azure.

Each node queries Azure's resolver itself, because Azure limits queries per machine (about 200 per second in
https://openai.com/index/scaling-kubernetes-to-2500-nodes/). The cache listens only on its own address and sets no iptables rules: the rules
that redirect the address of the kube-dns service are for kube-proxy's iptables mode (https://github.com/kubernetes/dns/issues/682). That
address remains a second path to CoreDNS while the cache is down.
"""

from __future__ import annotations

from components.manifests import images, pods
from components.manifests.owned import SYSTEM_NAMESPACE, Object, frozen_config, name_of, service_account
from components.manifests.priorities import NODE_CRITICAL
from components.plan.addresses import AZURE_DNS_ADDRESS, NODE_LOCAL_DNS_ADDRESS
from components.plan.model import ClusterPlan
from components.plan.naming import CLUSTER_DOMAIN

CONCERN = "dns"
NAME = "node-local-dns"
HEALTH_PORT = 8080
METRICS_PORT = 9253
SETUP_METRICS_PORT = 9353
RENDERED = "/run/node-local-dns"
"""Directory of the configuration that the cache renders from the mounted one."""


def corefile(cluster: ClusterPlan) -> str:
    """Return the configuration of the cache.

    Stale answers are served for an hour, but only if a new query failed: names must work while the control plane is down, and a restarted
    gang must not get its old addresses. force_tcp avoids losses by dropped packets and by UDP races in conntrack.
    """
    return f"""\
{CLUSTER_DOMAIN}:53 in-addr.arpa:53 ip6.arpa:53 {{
    errors
    cache {{
        success 9984 30
        denial 9984 5
        serve_stale 1h verify
    }}
    bind {NODE_LOCAL_DNS_ADDRESS}
    forward . {cluster.network.dns_service_address} {{
        force_tcp
    }}
    prometheus :{METRICS_PORT}
    health {NODE_LOCAL_DNS_ADDRESS}:{HEALTH_PORT}
}}
.:53 {{
    errors
    cache {{
        success 9984 300
        denial 9984 5
        serve_stale 1h verify
    }}
    bind {NODE_LOCAL_DNS_ADDRESS}
    forward . {AZURE_DNS_ADDRESS}
    prometheus :{METRICS_PORT}
}}
"""


def _daemon_set(config: str) -> Object:
    """Return the DaemonSet of the cache."""
    probe = {"host": NODE_LOCAL_DNS_ADDRESS, "path": "/health", "port": HEALTH_PORT}
    container = {
        "name": "node-cache",
        "image": images.NODE_LOCAL_DNS.reference,
        "args": ["-localip", NODE_LOCAL_DNS_ADDRESS, "-conf", f"{RENDERED}/Corefile", "-setupiptables=false"],
        "ports": pods.ports(
            ("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", METRICS_PORT, "TCP"), ("setup-metrics", SETUP_METRICS_PORT, "TCP")
        ),
        "resources": pods.resources(cpu=("25m", "1"), memory=("32Mi", "128Mi")),
        # User 0, because other users of a container have no effective capabilities: NET_ADMIN creates the interface with the address,
        # NET_BIND_SERVICE opens port 53.
        "securityContext": pods.root("NET_ADMIN", "NET_BIND_SERVICE"),
        "livenessProbe": {"httpGet": probe, "initialDelaySeconds": 60, "timeoutSeconds": 5, "failureThreshold": 3},
        "readinessProbe": {"httpGet": probe, "timeoutSeconds": 5},
        "volumeMounts": [pods.config_mount("/etc/coredns"), {"name": "rendered", "mountPath": RENDERED}],
    }
    volumes = [
        {"name": "config", "configMap": {"name": config, "items": [{"key": "Corefile", "path": "Corefile.base"}]}},
        {"name": "rendered", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ]
    spec = pods.pod(NAME, NODE_CRITICAL, dnsPolicy="Default", containers=[container], volumes=volumes)
    return pods.daemon_set(NAME, CONCERN, SYSTEM_NAMESPACE, spec)


def node_local_dns_objects(cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern."""
    config = frozen_config(NAME, CONCERN, SYSTEM_NAMESPACE, {"Corefile": corefile(cluster)})
    return [service_account(NAME, CONCERN, SYSTEM_NAMESPACE), config, _daemon_set(name_of(config))]
