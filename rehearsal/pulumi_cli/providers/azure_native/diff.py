"""Comparison of a resource's inputs, path by path, and the inputs whose change forces a replacement.

https://github.com/pulumi/pulumi-azure-native/blob/03707ff7fc10b70f7dd23ec847a3ce1e9264c124/provider/pkg/provider/diff.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from rehearsal.program.graph import reveal
from rehearsal.program.pulumi_values import Json
from rehearsal.pulumi_cli.providers.azure_native.input_check import CREATE_FIRST
from rehearsal.pulumi_cli.providers.azure_native.resource_types import ResourceType
from rehearsal.pulumi_cli.providers.provider_interface import ChangeKind, DiffResult, PropertyChange

REPLACING_EVERYWHERE = frozenset({"location"})
"""Inputs of every type that force a replacement, beside those in the resource's path: the location.

Azure rejects a move with InvalidResourceLocation. Source: `x-ms-mutability: create, read` of the types' specifications,
https://github.com/Azure/azure-rest-api-specs
"""

REPLACING: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "authorization:RoleAssignment": frozenset({"principalId"}),
        "network:LoadBalancer": frozenset({"mode"}),
        "network:PrivateEndpoint": frozenset({"subnet"}),
        "network:PublicIPAddress": frozenset({"publicIPAddressVersion", "publicIPPrefix", "sku"}),
        "storage:StorageAccount": frozenset({"isHnsEnabled"}),
        "virtualmachineimages:Trigger": frozenset({"kind"}),
    }
)
"""By type, from `forceNewMap` of https://github.com/pulumi/pulumi-azure-native/blob/master/provider/pkg/gen/replacement.go and from
`x-ms-mutability`.

Other properties that are fixed at creation Azure rejects itself; the update then fails, as with azure-native.
"""


def replacing_inputs(resource_type: ResourceType) -> frozenset[str]:
    """Return the top-level inputs whose change replaces a resource."""
    return frozenset(resource_type.names) | REPLACING_EVERYWHERE | REPLACING.get(resource_type.token, frozenset())


_PLAIN_KEY = re.compile(r"\w+")
STABLES = ("id", "name", "type")
"""Outputs that no update changes."""


def difference(resource_type: ResourceType, old: Json, new: Json) -> DiffResult:
    """Return the changes of an update; a replacement can exist beside the old resource only with a random name."""
    fixed = replacing_inputs(resource_type)
    changed: dict[str, PropertyChange] = {}
    for key in sorted({*old, *new} - {CREATE_FIRST}):
        if key in old and key in new and key == "location" and _normalized_location(old[key]) == _normalized_location(new[key]):
            continue
        for path, change in _changes(reveal(old.get(key)), reveal(new.get(key)), key):
            changed[path] = PropertyChange(change, replace=key in fixed)
    return DiffResult(changed, delete_first=old.get(CREATE_FIRST) is not True, stables=STABLES)


def _changes(old: Any, new: Any, path: str) -> Iterator[tuple[str, ChangeKind]]:
    if _same(old, new):
        return
    if old is None:
        yield path, ChangeKind.ADD
    elif new is None:
        yield path, ChangeKind.DELETE
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _changes(old.get(key), new.get(key), f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f'{path}["{key}"]')
    elif isinstance(old, list) and isinstance(new, list):
        for number in range(max(len(old), len(new))):
            one, other = (values[number] if number < len(values) else None for values in (old, new))
            yield from _changes(one, other, f"{path}[{number}]")
    else:
        yield path, ChangeKind.UPDATE


def _same(old: Any, new: Any) -> bool:
    """Return whether Azure considers two values equal: it compares resource ids without regard to case."""
    if isinstance(old, bool) != isinstance(new, bool):
        return False
    if isinstance(old, str) and isinstance(new, str) and old.startswith("/subscriptions/"):
        return old.lower() == new.lower()
    return bool(old == new)


def _normalized_location(location: Any) -> Any:
    """Return a location as Azure compares it: West US 2 is westus2."""
    plain = reveal(location)
    return plain.lower().replace(" ", "") if isinstance(plain, str) else plain
