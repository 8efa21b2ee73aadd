"""Flags of kube-controller-manager 1.36 and the reason for each."""

from __future__ import annotations

from components.boot.control_keys import KUBERNETES, path
from components.boot.shared_settings import FEATURE_GATES, GRACE_SECONDS, TLS_CIPHER_SUITES, TLS_MIN_VERSION
from components.plan.model import ClusterPlan

PROGRAM = "/usr/local/bin/kube-controller-manager"
KUBECONFIG = f"{KUBERNETES}/controller-manager.kubeconfig"
SIGNING_DURATION = "2160h"
"""Lifetime of kubelets' certificates, 90 days. They renew in its last 10 to 30 %, so an outage of the approver for a week has no effect."""
WORKERS = {
    "gc": 50,
    "job": 20,
    "statefulset": 20,
    "replicaset": 20,
    "deployment": 20,
    "daemonset": 10,
    "namespace": 20,
    "resource-quota": 10,
    "service-endpoint": 10,
}
"""Concurrent syncs by controller: all pods of a large job end at the same time, and each rollout of a DaemonSet affects every node."""
FINISHED_PODS = 12_500
"""Maximum number of finished pods: those of one job on all 7,500 nodes and of smaller jobs. Pods of a failed job remain visible, and the
memory of the API servers does not grow with each job."""


def _workers() -> dict[str, str]:
    return {f"concurrent-{kind}-syncs": str(count) for kind, count in WORKERS.items()}


def _signing() -> dict[str, str]:
    """Return the flags for signing: client and serving certificates of kubelets only."""
    signers = ("kubelet-client", "kubelet-serving")
    cert, key = path("cluster-ca-cert"), path("cluster-ca-key")
    files = {f"cluster-signing-{signer}-{part}-file": file for signer in signers for part, file in (("cert", cert), ("key", key))}
    return files | {"cluster-signing-duration": SIGNING_DURATION}


def flags(cluster: ClusterPlan) -> dict[str, str | tuple[str, ...]]:
    """Return the flags of the controller manager, of which one instance is the leader."""
    return {
        "kubeconfig": KUBECONFIG,
        "authentication-kubeconfig": KUBECONFIG,
        "authorization-kubeconfig": KUBECONFIG,
        "bind-address": "127.0.0.1",
        "cluster-name": cluster.name,
        "leader-elect": "true",
        # The token cleaner, off by default, deletes bootstrap tokens that have expired.
        "controllers": ("*", "token-cleaner-controller"),
        "use-service-account-credentials": "true",
        "root-ca-file": path("cluster-ca-cert"),
        "service-account-private-key-file": path("service-account-key"),
        "terminated-pod-gc-threshold": str(FINISHED_PODS),
        # Pods have Azure addresses, which the plan assigns to machines.
        "allocate-node-cidrs": "false",
        "node-monitor-grace-period": f"{GRACE_SECONDS}s",
        # Changes of a service within a second are sent to the nodes as one, since each goes to every kube-proxy.
        "endpointslice-updates-batch-period": "1s",
        # The default of 20 requests a second would take six minutes to mark 7,500 nodes.
        "kube-api-qps": "200",
        "kube-api-burst": "400",
        # The program creates this unused directory; it may not write to its default path.
        "flex-volume-plugin-dir": "/tmp/flex-volumes",  # noqa: S108 (systemd gives the service a /tmp of its own)
        **_signing(),
        **_workers(),
        "feature-gates": FEATURE_GATES,
        "tls-min-version": TLS_MIN_VERSION,
        "tls-cipher-suites": TLS_CIPHER_SUITES,
        "profiling": "false",
    }
