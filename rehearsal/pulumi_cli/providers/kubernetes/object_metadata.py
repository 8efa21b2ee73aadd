"""Where an object says how the provider is to handle it: names, namespaces and the annotations that it acts on.

https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/metadata/annotations.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.pulumi_values import Json

AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
PATCH_FORCE = "pulumi.com/patchForce"
PATCH_FIELD_MANAGER = "pulumi.com/patchFieldManager"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""Where kubectl keeps a copy of the whole object: https://kubernetes.io/docs/reference/labels-annotations-taints/"""
PROPAGATION = "pulumi.com/deletionPropagationPolicy"
UNSUPPORTED_ANNOTATIONS = frozenset({"pulumi.com/waitFor", "pulumi.com/replaceUnready"})
"""Annotations that the real provider acts on and this one does not."""
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
"""How long a resource is waited for unless it says otherwise."""


def metadata_of(item: Mapping[str, Any]) -> Json:
    """An object's metadata without secrets; empty where it has none that is known."""
    found = reveal(item.get("metadata"))
    return found if isinstance(found, dict) else {}


def annotation(item: Mapping[str, Any], key: str) -> str:
    """Value of an annotation, "" where there is none."""
    annotations = metadata_of(item).get("annotations")
    return str(annotations.get(key, "")) if isinstance(annotations, dict) else ""


def is_true(item: Mapping[str, Any], key: str) -> bool:
    """Whether an annotation is true."""
    return annotation(item, key) == "true"


def name_of(item: Mapping[str, Any]) -> str:
    """Name of an object, "" where it has none."""
    return str(metadata_of(item).get("name", ""))


def namespace_of(item: Mapping[str, Any]) -> str:
    """Namespace of an object, "" where it says none."""
    return str(metadata_of(item).get("namespace", ""))


def id_of(item: Mapping[str, Any]) -> str:
    """Id of an object in Pulumi's state: its name, behind its namespace where it has one."""
    return "/".join(part for part in (namespace_of(item), name_of(item)) if part)


def parse_id(text: str) -> tuple[str, str]:
    """Namespace, "" where there is none, and name of an id."""
    namespace, _, name = text.rpartition("/")
    return namespace, name


def timeout_of(item: Mapping[str, Any], asked: float) -> float | None:
    """How long an object is waited for: as its options ask (0: they do not), or as it says itself; None where nobody says."""
    if asked:
        return asked
    said = annotation(item, TIMEOUT_SECONDS)
    return float(said) if said.isdigit() and int(said) else None
