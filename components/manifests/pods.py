"""Parts of gpufleet's pods: security contexts, resources, tolerations and rollout of DaemonSets."""

from __future__ import annotations

from components.manifests.owned import NAME, Object, owned, owner_labels

EVERY_TAINT: list[Object] = [{"operator": "Exists"}]
"""Tolerations of pods that a node needs in every state: new, in preflight, cordoned, allocated to a team, spot."""
ROLLOUT_SHARE = "2%"
"""Share of a DaemonSet's pods that are replaced at the same time: 150 of 7,500. A bad version stops early, and API load is limited."""
CONFIG_PATH = "/etc/gpufleet"
"""Mount path of the configuration in gpufleet's containers."""


def security(**exceptions: object) -> Object:
    """Return the strictest security context of a container, with exceptions that the caller must justify."""
    strict: Object = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }
    return strict | exceptions


def root(*capabilities: str, **exceptions: object) -> Object:
    """Return the security context of a container that must be user 0, with only the given capabilities."""
    added: Object = {"add": list(capabilities)} if capabilities else {}
    return security(runAsNonRoot=False, runAsUser=0, capabilities={"drop": ["ALL"]} | added, **exceptions)


def resources(cpu: tuple[str, str], memory: tuple[str, str]) -> Object:
    """Return requests and limits, each given as (request, limit) quantities."""
    return {"requests": {"cpu": cpu[0], "memory": memory[0]}, "limits": {"cpu": cpu[1], "memory": memory[1]}}


def ports(*rows: tuple[str, int, str]) -> list[Object]:
    """Return container ports from rows of name, number and protocol."""
    return [{"name": name, "containerPort": number, "protocol": protocol} for name, number, protocol in rows]


def http_probe(path: str, port: int, **timing: object) -> Object:
    """Return a probe by HTTP GET; timing are fields of the probe, in seconds."""
    return {"httpGet": {"path": path, "port": port}} | timing


def config_volume(config_map: str) -> Object:
    """Return the volume named config, of a ConfigMap."""
    return {"name": "config", "configMap": {"name": config_map}}


def config_mount(path: str = CONFIG_PATH) -> Object:
    """Return the mount of the volume named config, read-only."""
    return {"name": "config", "mountPath": path, "readOnly": True}


def host_path(name: str, path: str, kind: str) -> Object:
    """Return a volume of a path of the host; kind as in hostPath.type."""
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def node_name() -> Object:
    """Return the environment variable NODE_NAME, the name of the pod's node."""
    return {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}


def pod(service_account: str, priority: str, *, token: bool = False, **spec: object) -> Object:
    """Return a pod spec; token is True for pods that call the API server."""
    return {
        "serviceAccountName": service_account,
        "automountServiceAccountToken": token,
        "enableServiceLinks": False,
        "priorityClassName": priority,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        **spec,
    }


def workload(
    kind: str, name: str, concern: str, namespace: str, pod_spec: Object, labels: dict[str, str] | None = None, **spec: object
) -> Object:
    """Return a Deployment or DaemonSet whose pods carry the owner's labels, its own name and the given labels."""
    own = {NAME: name}
    template = {"metadata": {"labels": owner_labels(concern) | own | (labels or {})}, "spec": pod_spec}
    return owned("apps/v1", kind, name, concern, namespace) | {"spec": {**spec, "selector": {"matchLabels": own}, "template": template}}


def daemon_set(name: str, concern: str, namespace: str, pod_spec: Object, labels: dict[str, str] | None = None) -> Object:
    """Return a DaemonSet on every node that the pod spec selects, with any taints.

    Its pods use the host's network: an address per node and daemon would use thousands of the virtual network's 65,536.
    """
    host: Object = {"hostNetwork": True, "tolerations": EVERY_TAINT, "terminationGracePeriodSeconds": 30}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": ROLLOUT_SHARE}}
    return workload("DaemonSet", name, concern, namespace, pod_spec | host, labels, updateStrategy=strategy, minReadySeconds=10)
