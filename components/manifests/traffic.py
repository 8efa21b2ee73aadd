"""What tells of every node which pod, namespace and team sends how much to the internet: the traffic exporter, and what it may touch.

It counts nothing itself: the kernel does, by rules that the machine keeps in place (cni/node/accounting.py), so that an exporter which is
away loses no byte. Whose pods they are it asks the kubelet of its own node, when pods change and every half an hour, and no API server; the
kubelet asks one whether the exporter may, and remembers the answer for minutes (cacheTTL of its configuration).
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
"""The node's own copy. In a service account's volume it is a ConfigMap's, which 7,500 kubelets would watch."""
TOKEN = "/var/run/secrets/gpufleet-traffic"  # noqa: S105 a folder
TOKEN_SECONDS = 43_200
"""Twelve hours: kubelets ask for a new one when 80 % have passed."""
ASK_SECONDS = 15
"""Between two questions to the kubelet where nothing else tells that an address changed hands."""
STATE = "/run/gpufleet/traffic"


def _arguments(cluster: ClusterPlan) -> list[str]:
    # Microsoft's plugins leave no sign of an address that changes hands but in the kubelet's answer, which is asked for the more often.
    often = [f"--kubelet-seconds={ASK_SECONDS}"] if cluster.spec.pod_network.cni is Cni.AZURE_VNET else []
    teams = [f"--team={team.name}" for team in cluster.spec.tenancy.teams]
    # On the node's own address alone, where Prometheus asks: not on the link-local one of the DNS cache, nor on loopback.
    own = ["--address=$(NODE_IP)", f"--port={PORT}", "--node=$(NODE_NAME)"]
    return [*own, f"--token={TOKEN}/token", f"--authority={AUTHORITY}", *often, *teams]


def _daemon_set(cluster: ClusterPlan) -> Object:
    """The exporter on every node."""
    container = {
        "name": "exporter",
        "image": images.TRAFFIC.reference,
        # It is in the node's image: a node whose registry does not answer is accounted for all the same.
        "imagePullPolicy": "Never",
        "args": _arguments(cluster),
        "env": [pods.node_name(), {"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "ports": pods.ports(("metrics", PORT, "TCP")),
        "resources": pods.resources(cpu=("20m", "1"), memory=("40Mi", "96Mi")),
        # User 0, because a container's other users have no effective capabilities. NET_ADMIN reads rules and sets; NET_RAW opens the socket
        # by which iptables asks for the names of the sets in its rules.
        "securityContext": pods.root("NET_ADMIN", "NET_RAW"),
        # Of TCP, for whoever asks for the metrics is taken for Prometheus.
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
        # Which pod's sandbox holds which address, to see at once when one changes hands.
        pods.host_path("reservations", RESERVATIONS, "DirectoryOrCreate"),
        # What must outlive the exporter, but not the next boot, with which all counters end; and holders.json, which shaping reads.
        pods.host_path("state", STATE, "DirectoryOrCreate"),
        # Whose signature the kubelet's certificate must bear.
        pods.host_path("authority", AUTHORITY, "File"),
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}}]}},
    ]
    spec = pods.pod(NAME, TELEMETRY, containers=[container], volumes=volumes)
    return pods.daemon_set(NAME, CONCERN, FLEET_NAMESPACE, spec)


def traffic_objects(cluster: ClusterPlan) -> list[Object]:
    """All objects of this concern."""
    # The kubelet shows pods to whoever may get nodes/pods; nodes/proxy would let the exporter run commands in them.
    rights = [rbac.rule("", ["nodes/pods"], ["get"])]
    return [
        service_account(NAME, CONCERN, FLEET_NAMESPACE),
        rbac.cluster_role(NAME, CONCERN, rights),
        rbac.cluster_binding(NAME, CONCERN, NAME, rbac.account(NAME, FLEET_NAMESPACE)),
        _daemon_set(cluster),
    ]
