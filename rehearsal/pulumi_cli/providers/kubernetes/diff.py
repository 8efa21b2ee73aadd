"""Comparison of an object's recorded state with new inputs, and the fields whose change forces a replacement.

The comparison needs no server: https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/provider/provider.go (Diff). Changes by
other clients are found after a refresh has read them into the state. The fields are those of
https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/provider/diff.go. Changes of other immutable fields (a PriorityClass's
value) fail in the update, as with the real provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any

from rehearsal.program.graph import reveal
from rehearsal.program.pulumi_values import Json, has_unknown
from rehearsal.pulumi_cli.providers.kubernetes.input_check import DEFAULT_NAMESPACE
from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import AUTONAMED, SERVER_FIELDS, is_true, name_of, namespace_of
from rehearsal.pulumi_cli.providers.kubernetes.state import ObjectState, to_api
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind
from rehearsal.pulumi_cli.providers.provider_interface import ChangeKind, DiffResult, PropertyChange

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


IMMUTABLE_PATHS: Mapping[Kind, tuple[Path, ...]] = {
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
CONTENT_PATHS: Mapping[Kind, tuple[Path, ...]] = {
    Kind("v1", "ConfigMap"): (("binaryData",), ("data",)),
    Kind("v1", "Secret"): (("type",), ("stringData",), ("data",)),
}
"""Kinds whose content is replaced, unless the provider is configured to change it in place and the object is not marked immutable.

Pods read new content only when they are replaced themselves.
"""


def replacing_paths(kind: Kind, *, in_place: bool) -> tuple[Path, ...]:
    """Return the paths whose change replaces an object of a kind; in_place is True where its content may change."""
    content = CONTENT_PATHS.get(kind)
    return IDENTITY + (content if content and not in_place else IMMUTABLE_PATHS.get(kind, ()))


def forces_replacement(path: Path, value: object, paths: Iterable[Path]) -> bool:
    """Return whether a change at a path concerns one of the paths: it is equal to one, below one, or contains one."""
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


QUANTITY_FIELDS = frozenset(
    {"capacity", "default", "defaultRequest", "divisor", "hard", "limits", "max", "min", "overhead", "requests", "sizeLimit"}
)
"""Fields that are quantities, or contain them by resource."""
FACTORS: Mapping[str, Decimal] = MappingProxyType(
    {
        **{unit: Decimal(1024) ** (power + 1) for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
        **{unit: Decimal(1000) ** (power - 3) for power, unit in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"))},
    }
)
_QUANTITY = re.compile(r"([+-]?[0-9]*\.?[0-9]+)(?:([eE][+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE]?))")


def same_quantity(path: Path, one: object, other: object) -> bool:
    """Return whether two values of a quantity field are equal: the API server writes 1000m as 1, and 1024Mi as 1Gi.

    https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ (kubernetes.utils.parse_quantity would cost each
    provider process 0.9 s of CPU and 49 MB for its import.)
    """
    if QUANTITY_FIELDS.isdisjoint(part for part in path if isinstance(part, str)):
        return False
    amount = _quantity_value(one)
    return amount is not None and amount == _quantity_value(other)


def _quantity_value(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if not (match := _QUANTITY.fullmatch(str(value))):
        return None
    number, exponent, unit = match.groups()
    try:
        return Decimal(number + exponent) if exponent else Decimal(number) * FACTORS[unit]
    except InvalidOperation:
        return None


ABSENT = object()
DEFAULTS: tuple[Any, ...] = (None, "", 0, False, {}, [])
"""Values that the API server omits from an object where they are the field's default."""


@dataclass(frozen=True)
class _Change:
    path: Path
    old: Any
    new: Any

    @property
    def kind(self) -> ChangeKind:
        if self.old is ABSENT:
            return ChangeKind.ADD
        return ChangeKind.DELETE if self.new is ABSENT else ChangeKind.UPDATE


def difference(state: ObjectState, new: Mapping[str, Any], kind: Kind, mutable: frozenset[str], *, namespaced: bool) -> DiffResult:
    """Return the differences by path; mutable contains the kinds whose content may change in place."""
    declared: Json = to_api(reveal(new))
    recorded = declared_part(state.live, state.inputs)
    recorded.setdefault("apiVersion", kind.api_version)
    recorded.setdefault("kind", kind.kind)
    declared, recorded = _normalized(declared, namespaced=namespaced), _normalized(recorded, namespaced=namespaced)
    if name_of(declared) and isinstance(recorded.get("metadata"), dict):
        recorded["metadata"]["name"] = name_of(state.live)
    # An object that is or becomes immutable cannot change in place, whatever the settings are.
    in_place = kind.kind in mutable and not state.live.get("immutable") and not declared.get("immutable")
    forced = replacing_paths(kind, in_place=in_place)
    changed: dict[str, PropertyChange] = {}
    for change in _changes((), recorded, declared, state.live):
        touched = change.old if change.new is ABSENT else change.new
        # An object without metadata has no name.
        replace = forces_replacement(change.path, touched, forced) or (change.kind is ChangeKind.DELETE and change.path == ("metadata",))
        changed[path_text(change.path)] = PropertyChange(change.kind, replace, input=change.kind is ChangeKind.DELETE)
    return DiffResult(changed, delete_first=_same_name(state, declared, namespaced=namespaced))


def _same_name(state: ObjectState, declared: Json, *, namespaced: bool) -> bool:
    """Return whether a replacement would have the name of the old object."""
    live = _normalized(dict(state.live), namespaced=namespaced)
    same = (name_of(declared), namespace_of(declared)) == (name_of(live), namespace_of(live))
    return same and bool(name_of(declared)) and not is_true(declared, AUTONAMED) and not has_unknown(name_of(declared))


def _normalized(item: Json, *, namespaced: bool) -> Json:
    """Return an object with its namespace, and without fields that only the server writes."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        return item
    found = {key: value for key, value in metadata.items() if key not in SERVER_FIELDS and key != "namespace"}
    if namespaced:
        found["namespace"] = metadata.get("namespace") or DEFAULT_NAMESPACE
    return {**item, "metadata": found}


def declared_part(live: Any, shape: Any) -> Any:
    """Return the part of a live value that the declared value contains: of an object its fields, of a list as many items."""
    if isinstance(live, Mapping) and isinstance(shape, Mapping):
        return {key: declared_part(live[key], value) for key, value in shape.items() if key in live}
    if isinstance(live, list) and isinstance(shape, list):
        return [declared_part(one, other) for one, other in zip(live, shape, strict=False)] if shape else []
    return live


def _changes(path: Path, old: Any, new: Any, live: Any) -> Iterator[_Change]:
    """Yield the changes below a path; live is the complete value in the cluster."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            inner = live.get(key, ABSENT) if isinstance(live, Mapping) else ABSENT
            yield from _changes((*path, key), old.get(key, ABSENT), new.get(key, ABSENT), inner)
    elif isinstance(old, list) and isinstance(new, list):
        for number in range(max(len(old), len(new))):
            yield from _changes((*path, number), _item(old, number), _item(new, number), _item(live, number))
    elif not _equal(path, old, new, live):
        yield _Change(path, old, new)


def _item(items: Any, number: int) -> Any:
    return items[number] if isinstance(items, list) and number < len(items) else ABSENT


def _equal(path: Path, old: Any, new: Any, live: Any) -> bool:
    if old is ABSENT:
        return live is ABSENT and any(type(new) is type(one) and new == one for one in DEFAULTS)
    if new is ABSENT:
        return False
    # In Python True equals 1, in Kubernetes it does not.
    return (old == new and isinstance(old, bool) is isinstance(new, bool)) or same_quantity(path, old, new)


def path_text(path: Path) -> str:
    """Return a path in the engine's format: a.b[0]["c.d"]."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif any(sign in part for sign in '."[]'):
            quoted = part.replace('"', '\\"')
            text += f'["{quoted}"]'
        else:
            text += f".{part}" if text else part
    return text
