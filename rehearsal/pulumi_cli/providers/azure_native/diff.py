"""Decides what of a resource's inputs has changed, path by path, and what cannot be changed in place.

https://github.com/pulumi/pulumi-azure-native/blob/03707ff7fc10b70f7dd23ec847a3ce1e9264c124/provider/pkg/provider/diff.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.azure_native import resource_types
from rehearsal.pulumi_cli.providers.azure_native.input_check import CREATE_FIRST
from rehearsal.pulumi_cli.providers.azure_native.resource_types import ResourceType
from rehearsal.pulumi_cli.providers.provider_interface import ChangeKind, DiffResult, PropertyChange
from rehearsal.pulumi_cli.providers.pulumi_values import Json

EVERYWHERE = frozenset({"location"})
"""Of every type: what is in a resource's path beside, and its location (`x-ms-mutability: create, read` of the types' specifications,
https://github.com/Azure/azure-rest-api-specs; the rest Azure refuses to move, InvalidResourceLocation)."""

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
`x-ms-mutability`. Whatever else Azure fixed at creation it refuses itself, and so does the update then, as with azure-native."""


def replacing_inputs(kind: ResourceType) -> frozenset[str]:
    """The top-level inputs whose change makes a resource anew."""
    return frozenset(kind.names) | EVERYWHERE | REPLACING.get(kind.token, frozenset())


_PLAIN_KEY = re.compile(r"\w+")
STABLES = ("id", "name", "type")
"""Outputs that no update changes."""


def difference(kind: resource_types.ResourceType, old: Json, new: Json) -> DiffResult:
    """What an update would have to change; a replacement stands beside the old one only under a random name."""
    fixed = replacing_inputs(kind)
    changed: dict[str, PropertyChange] = {}
    for key in sorted({*old, *new} - {CREATE_FIRST}):
        if key in old and key in new and key == "location" and _normalized_location(old[key]) == _normalized_location(new[key]):
            continue
        for path, what in _changes(reveal(old.get(key)), reveal(new.get(key)), key):
            changed[path] = PropertyChange(what, replace=key in fixed)
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
    """Whether Azure sees no difference: it compares resource ids in any capitals."""
    if isinstance(old, bool) != isinstance(new, bool):
        return False
    if isinstance(old, str) and isinstance(new, str) and old.startswith("/subscriptions/"):
        return old.lower() == new.lower()
    return bool(old == new)


def _normalized_location(location: Any) -> Any:
    """A location as Azure compares it: West US 2 is westus2."""
    plain = reveal(location)
    return plain.lower().replace(" ", "") if isinstance(plain, str) else plain
