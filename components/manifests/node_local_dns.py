"""Who answers a pod's DNS query: a cache on its own node, which asks CoreDNS for the cluster's names and Azure for all others.

Each node asks Azure's resolver itself, so that no machine carries the queries of many: Azure limits them per machine
(https://openai.com/index/scaling-kubernetes-to-2500-nodes/ met about 200 per second). The cache listens on its own address only and sets no
rules in iptables: those that take over the kube-dns service's address are made for kube-proxy's iptables mode
(https://github.com/kubernetes/dns/issues/682), and that address stays a second way to CoreDNS, which does not end with the cache.
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
"""Directory in which the cache writes the configuration that it renders from the mounted one."""


def corefile(cluster: ClusterPlan) -> str:
    """Configuration of the cache.

    Stale answers are served for an hour, but only when asking again failed: names must work while the control plane does not, and a
    restarted gang must not meet its old addresses. force_tcp survives a lost packet, and the races of UDP in conntrack.
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
    """The cache on every node."""
    probe = {"host": NODE_LOCAL_DNS_ADDRESS, "path": "/health", "port": HEALTH_PORT}
    container = {
        "name": "node-cache",
        "image": images.NODE_LOCAL_DNS.reference,
        "args": ["-localip", NODE_LOCAL_DNS_ADDRESS, "-conf", f"{RENDERED}/Corefile", "-setupiptables=false"],
        "ports": pods.ports(
            ("dns", 53, "UDP"), ("dns-tcp", 53, "TCP"), ("metrics", METRICS_PORT, "TCP"), ("setup-metrics", SETUP_METRICS_PORT, "TCP")
        ),
        "resources": pods.resources(cpu=("25m", "1"), memory=("32Mi", "128Mi")),
        # User 0, because a container's other users have no effective capabilities: NET_ADMIN makes the interface that carries the address,
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
    """All objects of this concern."""
    config = frozen_config(NAME, CONCERN, SYSTEM_NAMESPACE, {"Corefile": corefile(cluster)})
    return [service_account(NAME, CONCERN, SYSTEM_NAMESPACE), config, _daemon_set(name_of(config))]
