"""Names, namespaces and annotations in an object's metadata.

https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/metadata/annotations.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.program.graph import reveal
from rehearsal.program.pulumi_values import Json

AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
PATCH_FORCE = "pulumi.com/patchForce"
PATCH_FIELD_MANAGER = "pulumi.com/patchFieldManager"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Annotation with kubectl's copy of the object: https://kubernetes.io/docs/reference/labels-annotations-taints/"""
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
UNSUPPORTED_ANNOTATIONS = frozenset({"pulumi.com/waitFor", "pulumi.com/replaceUnready"})
"""Annotations of the real provider that a rehearsal does not support."""
SERVER_FIELDS = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
)
"""Fields of metadata that only the API server writes."""
DEFAULT_SECONDS = 600.0
"""Default timeout of a resource in seconds."""


def metadata_of(item: Mapping[str, Any]) -> Json:
    """Return an object's metadata without secrets; empty where it is unknown."""
    found = reveal(item.get("metadata"))
    return found if isinstance(found, dict) else {}


def annotation(item: Mapping[str, Any], key: str) -> str:
    """Return the value of an annotation, "" where there is none."""
    annotations = metadata_of(item).get("annotations")
    return str(annotations.get(key, "")) if isinstance(annotations, dict) else ""


def is_true(item: Mapping[str, Any], key: str) -> bool:
    """Return whether an annotation is true."""
    return annotation(item, key) == "true"


def name_of(item: Mapping[str, Any]) -> str:
    """Return the name of an object, "" where it has none."""
    return str(metadata_of(item).get("name", ""))


def namespace_of(item: Mapping[str, Any]) -> str:
    """Return the namespace of an object, "" where it has none."""
    return str(metadata_of(item).get("namespace", ""))


def id_of(item: Mapping[str, Any]) -> str:
    """Return the id of an object in Pulumi's state: NAMESPACE/NAME, or NAME."""
    return "/".join(part for part in (namespace_of(item), name_of(item)) if part)


def parse_id(text: str) -> tuple[str, str]:
    """Return the namespace, "" for none, and the name in an id."""
    namespace, _, name = text.rpartition("/")
    return namespace, name


def timeout_of(item: Mapping[str, Any], option: float) -> float | None:
    """Return the timeout of an object in seconds: from the options (0: none), or its annotation; None without either."""
    if option:
        return option
    value = annotation(item, TIMEOUT_SECONDS)
    return float(value) if value.isdigit() and int(value) else None
