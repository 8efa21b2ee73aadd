"""Which flags kube-controller-manager 1.36 is started with, and why."""

from __future__ import annotations

from components.boot.control_keys import KUBERNETES, path
from components.boot.shared_settings import FEATURE_GATES, GRACE_SECONDS, TLS_CIPHER_SUITES, TLS_MIN_VERSION
from components.plan.model import ClusterPlan

PROGRAM = "/usr/local/bin/kube-controller-manager"
KUBECONFIG = f"{KUBERNETES}/controller-manager.kubeconfig"
SIGNING_DURATION = "2160h"
"""Life of kubelets' certificates, 90 days: they renew in its last tenth to third, so an approver that is down for a week harms nobody."""
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
"""Concurrent syncs by kind: a job of thousands of pods ends all at once, and each rollout of a DaemonSet touches every node."""
FINISHED_PODS = 12_500
"""Finished pods that are kept, those of one job on all 7,500 nodes and of smaller ones: whoever looks into a failed job finds its pods, and
the API servers' memory does not grow with every job that ever ran."""


def _workers() -> dict[str, str]:
    return {f"concurrent-{kind}-syncs": str(count) for kind, count in WORKERS.items()}


def _signing() -> dict[str, str]:
    """Which certificates are signed: kubelets' for talking to the API servers and for serving them; no other kind."""
    signers = ("kubelet-client", "kubelet-serving")
    cert, key = path("cluster-ca-cert"), path("cluster-ca-key")
    files = {f"cluster-signing-{signer}-{part}-file": file for signer in signers for part, file in (("cert", cert), ("key", key))}
    return files | {"cluster-signing-duration": SIGNING_DURATION}


def flags(cluster: ClusterPlan) -> dict[str, str | tuple[str, ...]]:
    """Flags of the controller manager, one of which leads at a time."""
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
        # Pods have addresses of Azure's, which the plan gives to machines.
        "allocate-node-cidrs": "false",
        "node-monitor-grace-period": f"{GRACE_SECONDS}s",
        # Changes of a service within a second reach the nodes as one: each goes to every kube-proxy.
        "endpointslice-updates-batch-period": "1s",
        # The default of 20 requests a second would take six minutes to mark 7,500 nodes.
        "kube-api-qps": "200",
        "kube-api-burst": "400",
        # The program makes this directory, in which nobody here puts anything; its own default lies where it may not write.
        "flex-volume-plugin-dir": "/tmp/flex-volumes",  # noqa: S108 (systemd gives the service a /tmp of its own)
        **_signing(),
        **_workers(),
        "feature-gates": FEATURE_GATES,
        "tls-min-version": TLS_MIN_VERSION,
        "tls-cipher-suites": TLS_CIPHER_SUITES,
        "profiling": "false",
    }
