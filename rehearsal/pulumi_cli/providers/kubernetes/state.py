"""What of an object stands in Pulumi's state: the live object, with the inputs that made it and the name under which fields are ours.

https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/provider/provider.go (checkpointObject)
The real provider keeps metadata.managedFields too, which nothing reads: they would be half of an object's size in every checkpoint.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.program.graph import Secret, reveal
from rehearsal.pulumi_cli.providers.kubernetes.input_check import SECRET, SECRET_FIELDS
from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import LAST_APPLIED, PATCH_FIELD_MANAGER, annotation
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind
from rehearsal.pulumi_cli.providers.pulumi_values import Json, has_secret, secret_like

INPUTS, INITIAL_VERSION, FIELD_MANAGER = "__inputs", "__initialApiVersion", "__fieldManager"
MANAGER_PREFIX = "pulumi-kubernetes-"
DEFINITION = "CustomResourceDefinition"
DASHED = "x-kubernetes-"
UNDERSCORED = "x_kubernetes_"


@dataclass(frozen=True)
class ObjectState:
    """Outputs taken apart, secrets revealed: the live object, its inputs, the field manager, "" where none is kept."""

    live: Json
    inputs: Json
    manager: str


def state_of(outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> ObjectState:
    """The state in a resource's outputs; inputs are the engine's own, taken where the outputs hold none."""
    plain = reveal(outputs)
    live = {key: value for key, value in plain.items() if key not in (INPUTS, INITIAL_VERSION, FIELD_MANAGER)}
    from_api = plain.get(INPUTS)
    return ObjectState(to_api(live), to_api(from_api if isinstance(from_api, dict) else reveal(inputs)), str(plain.get(FIELD_MANAGER, "")))


def outputs_of(live: Mapping[str, Any], inputs: Mapping[str, Any], manager: str) -> Json:
    """A live object as the outputs of its resource, secret wherever the inputs are, and a Secret's data always."""
    bare = {key: value for key, value in live.items() if key != "metadata"}
    bare["metadata"] = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    shown = mark_secrets(from_api(bare), inputs)
    return {**shown, INPUTS: mark_secrets(inputs, inputs), INITIAL_VERSION: live["apiVersion"], FIELD_MANAGER: manager}


def mark_secrets(item: Mapping[str, Any], inputs: Mapping[str, Any]) -> Json:
    """An object with secrets where the inputs have them, in a Secret's data always, and in what kubectl copied of either."""
    marked: Json = dict(secret_like(item, inputs))
    is_secret = Kind(str(reveal(item.get("apiVersion"))), str(reveal(item.get("kind")))) == SECRET
    for field in SECRET_FIELDS if is_secret else ():
        if field in marked:
            marked[field] = Secret(reveal(marked[field]))
    if (is_secret or has_secret(inputs)) and (copied := annotation(item, LAST_APPLIED)) and isinstance(marked["metadata"], Mapping):
        annotations = {**reveal(marked["metadata"]["annotations"]), LAST_APPLIED: Secret(copied)}
        marked["metadata"] = {**marked["metadata"], "annotations": secret_like(annotations, marked["metadata"]["annotations"])}
    return marked


def field_manager(inputs: Mapping[str, Any], before: str) -> str:
    """The name under which fields are ours: as the object says, as it was, or made up once."""
    return annotation(inputs, PATCH_FIELD_MANAGER) or before or f"{MANAGER_PREFIX}{secrets.token_hex(4)}"


def to_api(item: Any) -> Any:
    """A definition as the API takes it: with dashes in the names that a program may only write with underscores."""
    return _rename_keys(item, lambda key: key.replace("_", "-") if key.startswith(UNDERSCORED) else key) if _is_definition(item) else item


def from_api(item: Any) -> Any:
    """A definition as programs read it."""
    return _rename_keys(item, lambda key: key.replace("-", "_") if key.startswith(DASHED) else key) if _is_definition(item) else item


def _is_definition(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("kind") == DEFINITION


def _rename_keys(value: Any, name: Callable[[str], str]) -> Any:
    match value:
        case Mapping():
            return {name(key): _rename_keys(item, name) for key, item in value.items()}
        case list():
            return [_rename_keys(item, name) for item in value]
        case _:
            return value


CREATOR = "pulumi-kubernetes"
"""The field manager of everything that is created."""
TAKEN_OVER = frozenset(
    {
        (CREATOR, "Update"),
        ("pulumi-kubernetes.exe", "Update"),
        ("pulumi-resource-kubernetes", "Update"),
        ("kubectl", "Apply"),
        ("kubectl", "Update"),
        ("before-first-apply", "Update"),
    }
)
"""Managers, with what they did, whose fields an update takes over."""
CREATORS = frozenset({(CREATOR, "Update"), ("pulumi-kubernetes.exe", "Update"), ("pulumi-resource-kubernetes", "Update")})


def ownership_patch(live: Mapping[str, Any], manager: str, before: str) -> list[Json]:
    """A JSON patch that gives a manager the fields of those in OURS and of its own former name; empty where there is nothing to take."""
    entries: list[Json] = live["metadata"].get("managedFields", [])
    taken = TAKEN_OVER | ({(before, "Apply")} if before and before != manager else frozenset())
    going = [one for one in entries if not one.get("subresource") and (one.get("manager"), one.get("operation")) in taken]
    if not going:
        return []
    own = [one for one in entries if (one.get("manager"), one.get("operation")) == (manager, "Apply") and not one.get("subresource")]
    fields: Json = {}
    for one in (*own, *going):
        fields = _both(fields, one.get("fieldsV1", {}))
    merged = {**going[-1], "manager": manager, "operation": "Apply", "fieldsV1": fields}
    kept = [one for one in entries if one not in going and one not in own]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [merged, *kept]},
        # Lets the server refuse it where somebody changed the object meanwhile.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]


def created_by_provider(live: Mapping[str, Any]) -> bool:
    """Whether fields of an object are still those of its creation."""
    entries = live["metadata"].get("managedFields", [])
    return any((one.get("manager"), one.get("operation")) in CREATORS for one in entries)


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json:
    """Fields of either."""
    shared = {key: _both(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **shared}
