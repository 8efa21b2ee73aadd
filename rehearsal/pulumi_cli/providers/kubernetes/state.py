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
from rehearsal.pulumi_cli.providers.kubernetes.check import SECRET, SECRET_FIELDS
from rehearsal.pulumi_cli.providers.kubernetes.metadata import LAST_APPLIED, PATCH_FIELD_MANAGER, annotation
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind
from rehearsal.pulumi_cli.providers.pulumi_values import Json, has_secret, secret_like

INPUTS, INITIAL_VERSION, FIELD_MANAGER = "__inputs", "__initialApiVersion", "__fieldManager"
MANAGER_PREFIX = "pulumi-kubernetes-"
DEFINITION = "CustomResourceDefinition"
DASHED = "x-kubernetes-"
UNDERSCORED = "x_kubernetes_"


@dataclass(frozen=True)
class State:
    """Outputs taken apart, secrets revealed: the live object, its inputs, the field manager, "" where none is kept."""

    live: Json
    inputs: Json
    manager: str


def state_of(outputs: Mapping[str, Any], inputs: Mapping[str, Any]) -> State:
    """The state in a resource's outputs; inputs are the engine's own, taken where the outputs hold none."""
    plain = reveal(outputs)
    live = {key: value for key, value in plain.items() if key not in (INPUTS, INITIAL_VERSION, FIELD_MANAGER)}
    kept = plain.get(INPUTS)
    return State(sent(live), sent(kept if isinstance(kept, dict) else reveal(inputs)), str(plain.get(FIELD_MANAGER, "")))


def outputs_of(live: Mapping[str, Any], inputs: Mapping[str, Any], manager: str) -> Json:
    """A live object as the outputs of its resource, secret wherever the inputs are, and a Secret's data always."""
    bare = {key: value for key, value in live.items() if key != "metadata"}
    bare["metadata"] = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
    shown = secretly(kept(bare), inputs)
    return {**shown, INPUTS: secretly(inputs, inputs), INITIAL_VERSION: live["apiVersion"], FIELD_MANAGER: manager}


def secretly(item: Mapping[str, Any], inputs: Mapping[str, Any]) -> Json:
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


def manager_of(inputs: Mapping[str, Any], before: str) -> str:
    """The name under which fields are ours: as the object says, as it was, or made up once."""
    return annotation(inputs, PATCH_FIELD_MANAGER) or before or f"{MANAGER_PREFIX}{secrets.token_hex(4)}"


def sent(item: Any) -> Any:
    """A definition as the API takes it: with dashes in the names that a program may only write with underscores."""
    return _renamed(item, lambda key: key.replace("_", "-") if key.startswith(UNDERSCORED) else key) if _defines(item) else item


def kept(item: Any) -> Any:
    """A definition as programs read it."""
    return _renamed(item, lambda key: key.replace("-", "_") if key.startswith(DASHED) else key) if _defines(item) else item


def _defines(item: Any) -> bool:
    return isinstance(item, Mapping) and item.get("kind") == DEFINITION


def _renamed(value: Any, name: Callable[[str], str]) -> Any:
    match value:
        case Mapping():
            return {name(key): _renamed(item, name) for key, item in value.items()}
        case list():
            return [_renamed(item, name) for item in value]
        case _:
            return value
