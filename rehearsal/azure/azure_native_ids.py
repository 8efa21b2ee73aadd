"""Decides which id Azure gives a resource of the program: from its type, the names among its inputs, and its provider's subscription."""

import re
import uuid
from collections.abc import Mapping
from typing import Any

from components.errors import GpufleetError
from rehearsal.azure.azure_native_paths import GROUP_PATHS, SCOPE_PATHS

AZURE = "azure-native:"
RESOURCE_GROUP = "resources:ResourceGroup"
PLACEHOLDER = re.compile(r"\{(\w+)\}")


class UnknownTypeError(GpufleetError):
    """The type has no rule for its id."""

    def __init__(self, resource_type: str) -> None:
        self.resource_type = resource_type
        remedy = (
            "add its path to rehearsal/azure/azure_native_paths.py" if resource_type.startswith(AZURE) else "use a backend that supports it"
        )
        super().__init__(f"no rule says what id {resource_type} gets; {remedy}")


class MissingInputError(GpufleetError):
    """An input that is part of the resource's id is absent."""

    def __init__(self, name: str, remedy: str) -> None:
        self.name = name
        super().__init__(f"{name} is missing, so the resource has no id; {remedy}")


def arm_id(resource_type: str, name: str, inputs: Mapping[str, Any], subscription: str | None) -> str:
    """Id of a resource of azure-native; name is Pulumi's logical one. UnknownType or MissingInput where there is no telling."""
    module_type = resource_type.removeprefix(AZURE)
    if module_type in SCOPE_PATHS:
        scope, path = SCOPE_PATHS[module_type]
        return f"{_required(inputs, scope)}/providers/{_filled(path, name, inputs)}"
    if not subscription:
        raise MissingInputError("subscriptionId", "give the resource a provider that names its subscription")
    groups = f"/subscriptions/{subscription}/resourceGroups"
    if module_type == RESOURCE_GROUP:
        return f"{groups}/{_filled('{resourceGroupName}', name, inputs)}"
    if module_type not in GROUP_PATHS:
        raise UnknownTypeError(resource_type)
    return f"{groups}/{_required(inputs, 'resourceGroupName')}/providers/{_filled(GROUP_PATHS[module_type], name, inputs)}"


def stable_uuid(*parts: str) -> str:
    """A UUID that depends on what it stands for alone."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(parts)))


def _filled(path: str, name: str, inputs: Mapping[str, Any]) -> str:
    """The path with its names put in; the resource's own, the last, may be left to the provider, which makes one of the logical name."""
    names = PLACEHOLDER.findall(path)
    values = {key: _required(inputs, key) for key in names[:-1]}
    values[names[-1]] = inputs.get(names[-1]) or f"{name}{stable_uuid(path, name)[:8]}"
    return path.format_map(values)


def _required(inputs: Mapping[str, Any], key: str) -> str:
    if not inputs.get(key):
        raise MissingInputError(key, "give it a value")
    return str(inputs[key])
