"""What an update would change of an object: its live state, as far as the program spoke of it, against the new inputs.

No server is asked: https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/provider/provider.go (Diff). What somebody else
changed in the cluster is seen once a refresh has read it into the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.kubernetes.check import DEFAULT_NAMESPACE
from rehearsal.pulumi_cli.providers.kubernetes.immutable import Path, forces, replacing
from rehearsal.pulumi_cli.providers.kubernetes.metadata import AUTONAMED, SERVERS_OWN, name_of, namespace_of, says
from rehearsal.pulumi_cli.providers.kubernetes.quantities import same_amount
from rehearsal.pulumi_cli.providers.kubernetes.state import State, sent
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind as ObjectKind
from rehearsal.pulumi_cli.providers.pulumi_values import Json, has_unknown
from rehearsal.pulumi_cli.providers.requests import Changed, Difference, Kind

MISSING = object()
DROPPED: tuple[Any, ...] = (None, "", 0, False, {}, [])
"""Values that the API server leaves out of an object where they are the field's own default."""


@dataclass(frozen=True)
class _Change:
    path: Path
    old: Any
    new: Any

    @property
    def kind(self) -> Kind:
        if self.old is MISSING:
            return Kind.ADD
        return Kind.DELETE if self.new is MISSING else Kind.UPDATE


def difference(state: State, new: Mapping[str, Any], kind: ObjectKind, mutable: frozenset[str], *, namespaced: bool) -> Difference:
    """What differs, by path; mutable holds the kinds whose content may change in place."""
    wanted: Json = sent(reveal(new))
    held = pruned(state.live, state.inputs)
    held.setdefault("apiVersion", kind.api_version)
    held.setdefault("kind", kind.kind)
    wanted, held = _located(wanted, namespaced=namespaced), _located(held, namespaced=namespaced)
    if name_of(wanted) and isinstance(held.get("metadata"), dict):
        held["metadata"]["name"] = name_of(state.live)
    # Marked immutable, in the cluster or from now on, an object cannot change whatever the settings say.
    in_place = kind.kind in mutable and not state.live.get("immutable") and not wanted.get("immutable")
    forced = replacing(kind, in_place=in_place)
    changed: dict[str, Changed] = {}
    for change in _changes((), held, wanted, state.live):
        touched = change.old if change.new is MISSING else change.new
        # Without metadata an object has no name either.
        replace = forces(change.path, touched, forced) or (change.kind is Kind.DELETE and change.path == ("metadata",))
        changed[written(change.path)] = Changed(change.kind, replace, input=change.kind is Kind.DELETE)
    return Difference(changed, delete_first=_same_name(state, wanted, namespaced=namespaced))


def _same_name(state: State, wanted: Json, *, namespaced: bool) -> bool:
    """Whether a replacement would have to carry the name of what it replaces."""
    live = _located(dict(state.live), namespaced=namespaced)
    same = (name_of(wanted), namespace_of(wanted)) == (name_of(live), namespace_of(live))
    return same and bool(name_of(wanted)) and not says(wanted, AUTONAMED) and not has_unknown(name_of(wanted))


def _located(item: Json, *, namespaced: bool) -> Json:
    """An object with the namespace in which it is, and without what only the server writes."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        return item
    found = {key: value for key, value in metadata.items() if key not in SERVERS_OWN and key != "namespace"}
    if namespaced:
        found["namespace"] = metadata.get("namespace") or DEFAULT_NAMESPACE
    return {**item, "metadata": found}


def pruned(live: Any, shape: Any) -> Any:
    """Of a live value what a declared one speaks of: of an object its fields, of a list as many items."""
    if isinstance(live, Mapping) and isinstance(shape, Mapping):
        return {key: pruned(live[key], value) for key, value in shape.items() if key in live}
    if isinstance(live, list) and isinstance(shape, list):
        return [pruned(one, other) for one, other in zip(live, shape, strict=False)] if shape else []
    return live


def _changes(path: Path, old: Any, new: Any, live: Any) -> Iterator[_Change]:
    """Changes below a path; live is what is there, whether the program spoke of it or not."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            inner = live.get(key, MISSING) if isinstance(live, Mapping) else MISSING
            yield from _changes((*path, key), old.get(key, MISSING), new.get(key, MISSING), inner)
    elif isinstance(old, list) and isinstance(new, list):
        for number in range(max(len(old), len(new))):
            yield from _changes((*path, number), _item(old, number), _item(new, number), _item(live, number))
    elif not _alike(path, old, new, live):
        yield _Change(path, old, new)


def _item(items: Any, number: int) -> Any:
    return items[number] if isinstance(items, list) and number < len(items) else MISSING


def _alike(path: Path, old: Any, new: Any, live: Any) -> bool:
    if old is MISSING:
        return live is MISSING and any(type(new) is type(one) and new == one for one in DROPPED)
    if new is MISSING:
        return False
    # True is 1 to Python, and not to Kubernetes.
    return (old == new and isinstance(old, bool) is isinstance(new, bool)) or same_amount(path, old, new)


def written(path: Path) -> str:
    """A path as the engine reads it: a.b[0]["c.d"]."""
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
