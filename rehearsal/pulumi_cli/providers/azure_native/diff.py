"""Decides what of a resource's inputs has changed, path by path, and what cannot be changed in place.

https://github.com/pulumi/pulumi-azure-native/blob/03707ff7fc10b70f7dd23ec847a3ce1e9264c124/provider/pkg/provider/diff.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.azure_native import resource_types
from rehearsal.pulumi_cli.providers.azure_native.autonaming import CREATE_FIRST
from rehearsal.pulumi_cli.providers.azure_native.replacement import replacing
from rehearsal.pulumi_cli.providers.pulumi_values import Json
from rehearsal.pulumi_cli.providers.requests import Changed, Difference, Kind

_PLAIN_KEY = re.compile(r"\w+")
STABLES = ("id", "name", "type")
"""Outputs that no update changes."""


def difference(kind: resource_types.Kind, old: Json, new: Json) -> Difference:
    """What an update would have to change; a replacement stands beside the old one only under a random name."""
    fixed = replacing(kind)
    changed: dict[str, Changed] = {}
    for key in sorted({*old, *new} - {CREATE_FIRST}):
        if key in old and key in new and key == "location" and _place(old[key]) == _place(new[key]):
            continue
        for path, what in _value(reveal(old.get(key)), reveal(new.get(key)), key):
            changed[path] = Changed(what, replace=key in fixed)
    return Difference(changed, delete_first=old.get(CREATE_FIRST) is not True, stables=STABLES)


def _value(old: Any, new: Any, path: str) -> Iterator[tuple[str, Kind]]:
    if _same(old, new):
        return
    if old is None:
        yield path, Kind.ADD
    elif new is None:
        yield path, Kind.DELETE
    elif isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _value(old.get(key), new.get(key), f"{path}.{key}" if _PLAIN_KEY.fullmatch(key) else f'{path}["{key}"]')
    elif isinstance(old, list) and isinstance(new, list):
        for number in range(max(len(old), len(new))):
            one, other = (values[number] if number < len(values) else None for values in (old, new))
            yield from _value(one, other, f"{path}[{number}]")
    else:
        yield path, Kind.UPDATE


def _same(old: Any, new: Any) -> bool:
    """Whether Azure sees no difference: it compares resource ids in any capitals."""
    if isinstance(old, bool) != isinstance(new, bool):
        return False
    if isinstance(old, str) and isinstance(new, str) and old.startswith("/subscriptions/"):
        return old.lower() == new.lower()
    return bool(old == new)


def _place(location: Any) -> Any:
    """A location as Azure compares it: West US 2 is westus2."""
    plain = reveal(location)
    return plain.lower().replace(" ", "") if isinstance(plain, str) else plain
