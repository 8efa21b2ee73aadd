"""Exporter of internet traffic by pod, namespace and team, on every node.

The kernel counts bytes with rules that the node program maintains (cni/node/accounting.py), so that no bytes are lost while the exporter is
down. The exporter gets the pods from the kubelet of its node, when pods change and every half hour, never from an API server. The kubelet
checks the exporter's authorization with an API server and caches the result for minutes (cacheTTL of its configuration).
"""

from __future__ import annotations

from components.manifests import images, pods, rbac
from components.manifests.owned import FLEET_NAMESPACE, Object, service_account
from components.manifests.priorities import TELEMETRY
from components.plan.model import ClusterPlan
from components.spec.pod_network import Cni

CONCERN = "traffic"
NAME = "gpufleet-traffic"
PORT = 9119
RESERVATIONS = "/run/gpufleet/cni"
AUTHORITY = "/etc/kubernetes/pki/cluster-ca-cert.pem"
"""Copy on the node. In a service account's volume it would be a ConfigMap, which 7,500 kubelets would watch."""
TOKEN = "/var/run/secrets/gpufleet-traffic"  # noqa: S105 a folder
TOKEN_SECONDS = 43_200
"""Lifetime of the token, twelve hours; kubelets request a new one after 80 % of it."""
ASK_SECONDS = 15
"""Seconds between two requests to the kubelet, if nothing else shows that an address has moved to another pod."""
STATE = "/run/gpufleet/traffic"


def _arguments(cluster: ClusterPlan) -> list[str]:
    # With Microsoft's plugins, only the kubelet's response shows that an address has moved, so the exporter requests it more often.
    often = [f"--kubelet-seconds={ASK_SECONDS}"] if cluster.spec.pod_network.cni is Cni.AZURE_VNET else []
    teams = [f"--team={team.name}" for team in cluster.spec.tenancy.teams]
    # Only on the node's own address, which Prometheus scrapes, not on the DNS cache's link-local address or loopback.
    own = ["--address=$(NODE_IP)", f"--port={PORT}", "--node=$(NODE_NAME)"]
    return [*own, f"--token={TOKEN}/token", f"--authority={AUTHORITY}", *often, *teams]


def _daemon_set(cluster: ClusterPlan) -> Object:
    """Return the DaemonSet of the exporter."""
    container = {
        "name": "exporter",
        "image": images.TRAFFIC.reference,
        # The image is in the node's image, so that accounting works while the registry is down.
        "imagePullPolicy": "Never",
        "args": _arguments(cluster),
        "env": [pods.node_name(), {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "ports": pods.ports(("metrics", PORT, "TCP")),
        "resources": pods.resources(cpu=("20m", "1"), memory=("40Mi", "96Mi")),
        # User 0, because other users of a container have no effective capabilities. NET_ADMIN reads rules and sets; NET_RAW opens the
        # socket through which iptables reads the names of the sets in its rules.
        "securityContext": pods.root("NET_ADMIN", "NET_RAW"),
        # A TCP probe, since the exporter treats each request for metrics as Prometheus.
        "livenessProbe": {"tcpSocket": {"port": PORT}, "initialDelaySeconds": 30, "periodSeconds": 30},
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "reservations", "mountPath": RESERVATIONS, "readOnly": True},
            {"name": "state", "mountPath": STATE},
            {"name": "authority", "mountPath": AUTHORITY, "readOnly": True},
            {"name": "token", "mountPath": TOKEN, "readOnly": True},
        ],
    }
    volumes = [
        # Addresses by pod sandbox, to detect immediately that an address has moved.
        pods.host_path("reservations", RESERVATIONS, "DirectoryOrCreate"),
        # State that must survive the exporter, but not a boot, which resets all counters; and holders.json for shaping.
        pods.host_path("state", STATE, "DirectoryOrCreate"),
        # The authority that must have signed the kubelet's certificate.
        pods.host_path("authority", AUTHORITY, "File"),
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}}]}},
    ]
    spec = pods.pod(NAME, TELEMETRY, containers=[container], volumes=volumes)
    return pods.daemon_set(NAME, CONCERN, FLEET_NAMESPACE, spec)


def traffic_objects(cluster: ClusterPlan) -> list[Object]:
    """Return all objects of this concern."""
    # nodes/pods allows reading pods from the kubelet; nodes/proxy would also allow running commands in them.
    rights = [rbac.rule("", ["nodes/pods"], ["get"])]
    return [
        service_account(NAME, CONCERN, FLEET_NAMESPACE),
        rbac.cluster_role(NAME, CONCERN, rights),
        rbac.cluster_binding(NAME, CONCERN, NAME, rbac.account(NAME, FLEET_NAMESPACE)),
        _daemon_set(cluster),
    ]
