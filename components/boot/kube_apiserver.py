"""Flags of kube-apiserver 1.36 and the reason for each."""

from __future__ import annotations

from components.boot import control_keys
from components.boot.control_keys import KUBERNETES, path
from components.boot.shared_settings import FEATURE_GATES, RUNTIME_CONFIG, TLS_CIPHER_SUITES, TLS_MIN_VERSION
from components.plan.model import API_SERVER_PORT, ClusterPlan

PROGRAM = "/usr/local/bin/kube-apiserver"
AUTHENTICATION = f"{KUBERNETES}/authentication.yaml"
AUDIT_POLICY = f"{KUBERNETES}/audit.yaml"
AUDIT_LOG = "/var/log/kubernetes/audit.log"
SHUTDOWN_DELAY_SECONDS = 20
"""Twice the time in which the load balancer detects a stopping server: two probes, 5 s apart."""
WATCH_DRAIN_SECONDS = 15
"""Seconds over which a stopping server closes its watches, so that thousands of clients do not list at the same time."""
REQUEST_TIMEOUT_SECONDS = 60
GOAWAY_CHANCE = "0.001"
"""Share of requests after which the client must reconnect, so that connections spread over restarted servers; needs two servers or more."""


def _etcd(cluster: ClusterPlan) -> dict[str, str | tuple[str, ...]]:
    """Return the flags for etcd; events have their own etcd cluster, so that a burst of events delays nothing else."""
    return {
        "etcd-servers": cluster.etcd.client_urls,
        # Commas separate overrides, semicolons the servers of one.
        "etcd-servers-overrides": f"/events#{';'.join(cluster.events_etcd.client_urls)}",
        "etcd-cafile": control_keys.ETCD_AUTHORITIES,
        "etcd-certfile": path("etcd-client-cert"),
        "etcd-keyfile": path("etcd-client-key"),
        # etcd itself does not compact.
        "etcd-compaction-interval": "5m",
        "event-ttl": "1h",
        "encryption-provider-config": control_keys.ENCRYPTION,
    }


def _authentication(cluster: ClusterPlan) -> dict[str, str | tuple[str, ...]]:
    """Return the flags for authentication and authorization."""
    return {
        "client-ca-file": path("cluster-ca-cert"),
        "authentication-config": AUTHENTICATION,
        "authorization-mode": ("Node", "RBAC"),
        # With an external address of a service, a tenant could intercept traffic of other tenants: CVE-2020-8554.
        "enable-admission-plugins": ("NodeRestriction", "DenyServiceExternalIPs"),
        "enable-bootstrap-token-auth": "true",
        "service-account-issuer": cluster.api_servers.url,
        "service-account-key-file": path("service-account-public-key"),
        "service-account-signing-key-file": path("service-account-key"),
        # Otherwise a pod's token is valid for a year.
        "service-account-extend-token-expiration": "false",
        "requestheader-client-ca-file": path("front-proxy-ca-cert"),
        "requestheader-allowed-names": ("front-proxy-client",),
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-username-headers": "X-Remote-User",
        "proxy-client-cert-file": path("front-proxy-client-cert"),
        "proxy-client-key-file": path("front-proxy-client-key"),
    }


def _node_access() -> dict[str, str | tuple[str, ...]]:
    """Return the flags for connections to nodes and pods."""
    return {
        # Names of nodes are not in DNS.
        "kubelet-preferred-address-types": ("InternalIP",),
        "kubelet-certificate-authority": path("cluster-ca-cert"),
        "kubelet-client-certificate": path("apiserver-kubelet-client-cert"),
        "kubelet-client-key": path("apiserver-kubelet-client-key"),
        # This machine is outside the cluster and has no kube-proxy, so webhooks and aggregated servers are called at pod addresses.
        "enable-aggregator-routing": "true",
        "allow-privileged": "true",
    }


def _load(cluster: ClusterPlan) -> dict[str, str | tuple[str, ...]]:
    """Return the flags for concurrency and shutdown."""
    servers = cluster.api_servers
    return {
        "max-requests-inflight": str(servers.max_requests_inflight),
        "max-mutating-requests-inflight": str(servers.max_mutating_requests_inflight),
        "request-timeout": f"{REQUEST_TIMEOUT_SECONDS}s",
        "goaway-chance": GOAWAY_CHANCE if servers.count > 1 else "0",
        "shutdown-delay-duration": f"{SHUTDOWN_DELAY_SECONDS}s",
        "shutdown-send-retry-after": "true",
        "shutdown-watch-termination-grace-period": f"{WATCH_DRAIN_SECONDS}s",
        # A stopped server disappears from the endpoints of the kubernetes service without an action.
        "endpoint-reconciler-type": "lease",
        "profiling": "false",
    }


def _audit() -> dict[str, str | tuple[str, ...]]:
    """Return the flags for the audit log: at most 20 files of 200 MB for 30 days, in batches, so that requests do not wait for the disk."""
    return {
        "audit-policy-file": AUDIT_POLICY,
        "audit-log-path": AUDIT_LOG,
        "audit-log-mode": "batch",
        "audit-log-maxsize": "200",
        "audit-log-maxbackup": "20",
        "audit-log-maxage": "30",
        "audit-log-compress": "true",
    }


def flags(cluster: ClusterPlan) -> dict[str, str | tuple[str, ...]]:
    """Return the flags of the API server, the same on all machines of a cluster; kube-apiserver finds its own address."""
    return {
        "secure-port": str(API_SERVER_PORT),
        "external-hostname": cluster.api_servers.dns_name,
        "service-cluster-ip-range": cluster.network.service_cidr,
        "tls-cert-file": path("apiserver-cert"),
        "tls-private-key-file": path("apiserver-key"),
        "tls-min-version": TLS_MIN_VERSION,
        "tls-cipher-suites": TLS_CIPHER_SUITES,
        "feature-gates": FEATURE_GATES,
        "runtime-config": RUNTIME_CONFIG,
        **_etcd(cluster),
        **_authentication(cluster),
        **_node_access(),
        **_load(cluster),
        **_audit(),
    }
