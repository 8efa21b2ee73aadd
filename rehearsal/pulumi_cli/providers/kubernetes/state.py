"""Object in Pulumi's state (live object, inputs, field manager), and the transfer of field ownership.

https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/provider/provider.go (checkpointObject)
The real provider records metadata.managedFields too. Nothing reads them, and they would be half of an object's size in every checkpoint.

An object is created like by any client, so that an existing one is rejected. Updates are applied, and an apply removes only fields of its
own manager. The first update therefore takes over the fields of the creation and of kubectl.
https://kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership
https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/await/await.go (fixCSAFieldManagers)
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.program.graph import Secret, reveal
from rehearsal.program.pulumi_values import Json, has_secret, secret_like
from rehearsal.pulumi_cli.providers.kubernetes.input_check import SECRET, SECRET_FIELDS
from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import LAST_APPLIED, PATCH_FIELD_MANAGER, annotation
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind

INPUTS, INITIAL_VERSION, FIELD_MANAGER = "__inputs", "__initialApiVersion", "__fieldManager"
MANAGER_PREFIX = "pulumi-kubernetes-"
DEFINITION = "CustomResourceDefinition"
DASHED = "x-kubernetes-"
UNDERSCORED = "x_kubernetes_"


@dataclass(frozen=True)
class ObjectState:
    """Parts of the outputs with secrets revealed: live object, inputs, and field manager, "" where none is recorded."""

    live: Json
    inputs: Json
    manager: str


def state_of(outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> ObjectState:
    """Return the state in a resource's outputs; inputs are the engine's, used where the outputs contain none."""
    plain = reveal(outputs)
    live = {key: value for key, value in plain.items() if key not in (INPUTS, INITIAL_VERSION, FIELD_MANAGER)}
    from_api = plain.get(INPUTS)
    return ObjectState(to_api(live), to_api(from_api if isinstance(from_api, dict) else reveal(inputs)), str(plain.get(FIELD_MANAGER, "")))


def outputs_of(live: Mapping[str, Any], inputs: Mapping[str, Any], manager: str) -> Json:
    """Return a live object as outputs of its resource, secret wherever the inputs are; a Secret's data always is."""
    bare = {key: value for key, value in live.items() if key != "metadata"}
    bare["metadata"] = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    shown = mark_secrets(from_api(bare), inputs)
    return {**shown, INPUTS: mark_secrets(inputs, inputs), INITIAL_VERSION: live["apiVersion"], FIELD_MANAGER: manager}


def mark_secrets(item: Mapping[str, Any], inputs: Mapping[str, Any]) -> Json:
    """Return an object with secrets where the inputs have them, in a Secret's data, and in kubectl's copy of either."""
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
    """Return the field manager: from the object's annotation, the recorded one, or a new random one."""
    return annotation(inputs, PATCH_FIELD_MANAGER) or before or f"{MANAGER_PREFIX}{secrets.token_hex(4)}"


def to_api(item: Any) -> Any:
    """Return a definition in the API's form: with dashes in names that a program writes with underscores."""
    return _rename_keys(item, lambda key: key.replace("_", "-") if key.startswith(UNDERSCORED) else key) if _is_definition(item) else item


def from_api(item: Any) -> Any:
    """Return a definition in the programs' form, with underscores."""
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
"""Field manager of created objects."""
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
"""Managers, with their operations, whose fields an update takes over."""
CREATORS = frozenset({(CREATOR, "Update"), ("pulumi-kubernetes.exe", "Update"), ("pulumi-resource-kubernetes", "Update")})


def ownership_patch(live: Mapping[str, Any], manager: str, before: str) -> list[Json]:
    """Return a JSON patch that moves the fields of TAKEN_OVER and of the former name to a manager; empty for none."""
    entries: list[Json] = live["metadata"].get("managedFields", [])
    owners = TAKEN_OVER | ({(before, "Apply")} if before and before != manager else frozenset())
    transferred = [one for one in entries if not one.get("subresource") and (one.get("manager"), one.get("operation")) in owners]
    if not transferred:
        return []
    own = [one for one in entries if (one.get("manager"), one.get("operation")) == (manager, "Apply") and not one.get("subresource")]
    fields: Json = {}
    for one in (*own, *transferred):
        fields = _both(fields, one.get("fieldsV1", {}))
    merged = {**transferred[-1], "manager": manager, "operation": "Apply", "fieldsV1": fields}
    others = [one for one in entries if one not in transferred and one not in own]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [merged, *others]},
        # The server rejects the patch if another client changed the object meanwhile.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]


def created_by_provider(live: Mapping[str, Any]) -> bool:
    """Return whether the creation still owns fields of an object."""
    entries = live["metadata"].get("managedFields", [])
    return any((one.get("manager"), one.get("operation")) in CREATORS for one in entries)


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> Json:
    """Return the fields of both."""
    shared = {key: _both(one[key], other[key]) for key in one.keys() & other.keys()}
    return {**one, **other, **shared}
