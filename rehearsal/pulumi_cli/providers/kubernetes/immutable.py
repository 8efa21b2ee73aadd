"""Which fields of which kinds make an object be made anew when they change.

https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/provider/diff.go
Fields that the API server refuses to change and that are not here (a PriorityClass's value) fail the update, as with the real provider.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind

Path = tuple[str | int, ...]
ANY_ITEM = "*"
IDENTITY: tuple[Path, ...] = (("metadata", "name"), ("metadata", "namespace"))
SELECTOR: tuple[Path, ...] = (("spec", "selector"),)
_CONTAINER_FIELDS = (
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
)
_POD_FIELDS = (
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostname",
    "imagePullSecrets",
    "nodeName",
    "nodeSelector",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "volumes",
)
_VOLUME_SOURCES = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
)


def _spec(names: Iterable[str]) -> tuple[Path, ...]:
    return tuple(("spec", name) for name in names)


IMMUTABLE: Mapping[Kind, tuple[Path, ...]] = {
    Kind("apps/v1", "DaemonSet"): SELECTOR,
    Kind("apps/v1", "Deployment"): SELECTOR,
    Kind("apps/v1", "StatefulSet"): _spec(
        ("podManagementPolicy", "revisionHistoryLimit", "selector", "serviceName", "volumeClaimTemplates")
    ),
    Kind("batch/v1", "Job"): _spec(("completions", "parallelism", "selector", "template")),
    Kind("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): (("roleRef",),),
    Kind("rbac.authorization.k8s.io/v1", "RoleBinding"): (("roleRef",),),
    Kind("storage.k8s.io/v1", "StorageClass"): (("parameters",), ("provisioner",)),
    Kind("v1", "PersistentVolume"): _spec(_VOLUME_SOURCES),
    Kind("v1", "PersistentVolumeClaim"): _spec(("accessModes", "selector", "storageClassName", "volumeName")),
    Kind("v1", "Pod"): (
        *_spec(_POD_FIELDS),
        *(("spec", list_, ANY_ITEM, field) for list_ in ("containers", "initContainers") for field in _CONTAINER_FIELDS),
    ),
    Kind("v1", "ResourceQuota"): _spec(("scopes",)),
    Kind("v1", "Secret"): (("type",),),
    Kind("v1", "Service"): _spec(("clusterIP",)),
}
CONTENT: Mapping[Kind, tuple[Path, ...]] = {
    Kind("v1", "ConfigMap"): (("binaryData",), ("data",)),
    Kind("v1", "Secret"): (("type",), ("stringData",), ("data",)),
}
"""Kinds whose content is made anew too, unless the provider is set to change it in place and the object is not marked immutable:
pods then see the new content only when they are made anew themselves."""


def replacing(kind: Kind, *, in_place: bool) -> tuple[Path, ...]:
    """Paths whose change makes an object of a kind be made anew; in_place where its content may change."""
    content = CONTENT.get(kind)
    return IDENTITY + (content if content and not in_place else IMMUTABLE.get(kind, ()))


def forces(path: Path, value: object, paths: Iterable[Path]) -> bool:
    """Whether a change at a path to a value touches one of the paths: it is one, is within one, or holds one."""
    return any(_touches(path, value, one) for one in paths)


def _touches(path: Path, value: object, forced: Path) -> bool:
    shared = min(len(path), len(forced))
    if any(theirs not in (ANY_ITEM, ours) for ours, theirs in zip(path[:shared], forced[:shared], strict=True)):
        return False
    return _holds(value, forced[shared:])


def _holds(value: object, rest: Path) -> bool:
    if not rest:
        return True
    if rest[0] == ANY_ITEM:
        return isinstance(value, list) and any(_holds(item, rest[1:]) for item in value)
    return isinstance(value, Mapping) and rest[0] in value and _holds(value[rest[0]], rest[1:])
