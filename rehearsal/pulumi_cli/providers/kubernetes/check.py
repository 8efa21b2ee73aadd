"""What an object's inputs are to be kept as: kind, name and namespace filled in, and what is wrong with them, in sentences."""

from __future__ import annotations

import base64
import binascii
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.program.graph import Secret, reveal
from rehearsal.pulumi_cli.providers.errors import CheckFailure
from rehearsal.pulumi_cli.providers.kubernetes.metadata import AUTONAMED, NOT_REHEARSED, SERVERS_OWN, SKIP_AWAIT, name_of, says
from rehearsal.pulumi_cli.providers.kubernetes.names import AutonamingDisabledError, label_faults, made_up, name_faults
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind
from rehearsal.pulumi_cli.providers.pulumi_values import Json, has_secret, has_unknown, is_unknown
from rehearsal.pulumi_cli.providers.requests import CheckAsked, Checked

DEFAULT_NAMESPACE = "default"
COMMON = frozenset({"apiVersion", "kind", "metadata"})
SECRET = Kind("v1", "Secret")
SECRET_FIELDS = ("data", "stringData")


def checked(asked: CheckAsked, kind: Kind, namespace: str, *, namespaced: bool) -> Checked:
    """The inputs as they are to be kept, with what is wrong with them; namespace is the provider's own."""
    inputs = dict(asked.new)
    failures = [*_kind_faults(inputs, kind), *_field_faults(inputs, kind)]
    inputs |= {"apiVersion": kind.api_version, "kind": kind.kind}
    metadata = inputs.get("metadata", {})
    if is_unknown(metadata):
        return Checked(inputs, failures)
    if not isinstance(reveal(metadata), dict):
        return Checked(inputs, [*failures, CheckFailure("metadata", "metadata is no object with a name, labels and so on")])
    filled, said = _named(dict(reveal(metadata) if isinstance(metadata, Secret) else metadata), asked)
    if namespaced and not filled.get("namespace"):
        filled["namespace"] = namespace or DEFAULT_NAMESPACE
    inputs["metadata"] = Secret(filled) if isinstance(metadata, Secret) else filled
    wrong = [*name_faults(kind, filled), *label_faults(filled)]
    failures += [*said, *(map(_covered, wrong) if has_secret(metadata) else wrong), *_annotation_faults(filled)]
    if kind == SECRET:
        failures += _base64_faults(inputs)
        inputs = stored_secret(inputs)
    return Checked(inputs, failures)


def stored_secret(item: Mapping[str, Any]) -> Json:
    """A Secret with its stringData as data, which is what the server keeps, and with both secret as a whole.

    What is not known yet stays where it is.
    """
    found = dict(item)
    if not has_unknown([found.get(field) for field in SECRET_FIELDS]) and isinstance(texts := reveal(found.get("stringData")), dict):
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in texts.items() if isinstance(text, str)}
        if len(encoded) == len(texts):
            del found["stringData"]
            found["data"] = {**(reveal(found.get("data")) or {}), **encoded}
    for field in SECRET_FIELDS:
        if field in found:
            found[field] = Secret(reveal(found[field]))
    return found


def _covered(failure: CheckFailure) -> CheckFailure:
    """A failure of metadata that holds a secret, which the sentence may quote in part."""
    field = failure.property.partition("[")[0]
    return CheckFailure(field, f"{field} breaks Kubernetes' rules for names and labels; it may be secret, so that it is not shown")


def _kind_faults(inputs: Json, kind: Kind) -> Iterator[CheckFailure]:
    for field, right in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = reveal(inputs.get(field, right))
        if given != right and not has_unknown(given):
            yield CheckFailure(field, f"{field} is {given!r}, but the resource's type is of {right}: write that, or leave it out")


def _field_faults(inputs: Json, kind: Kind) -> Iterator[CheckFailure]:
    if kind.fields is None:
        return
    known = COMMON | kind.fields
    for field in inputs.keys() - known:
        near = difflib.get_close_matches(field, known, 1)
        yield CheckFailure(field, f"{kind} has no field {field}{f'; did you mean {near[0]}?' if near else ''}")


def _named(metadata: Json, asked: CheckAsked) -> tuple[Json, list[CheckFailure]]:
    """Metadata with a name and without what only the server writes."""
    kept = {key: value for key, value in metadata.items() if key not in SERVERS_OWN}
    if kept.get("name"):
        return kept, []
    if kept.get("generateName"):
        said = "generateName makes another name with every apply; leave it out, and the provider makes one up that stays"
        return kept, [CheckFailure("metadata.generateName", said)]
    before = asked.old or {}
    try:
        kept["name"] = name_of(before) if says(before, AUTONAMED) else made_up(asked.name, asked.seed, asked.naming)
    except AutonamingDisabledError:
        said = "the stack's configuration makes up no names (pulumi:autonaming); give the object one"
        return kept, [CheckFailure("metadata.name", said)]
    annotations = kept.get("annotations", {})
    if isinstance(annotations, Mapping):
        kept["annotations"] = {**annotations, AUTONAMED: "true"}
    return kept, []


def _annotation_faults(metadata: Json) -> Iterator[CheckFailure]:
    annotations = reveal(metadata.get("annotations"))
    for key in sorted(NOT_REHEARSED.intersection(annotations if isinstance(annotations, Mapping) else ())):
        said = f'{key} is not rehearsed; leave it out, or mark the object with {SKIP_AWAIT}: "true"'
        yield CheckFailure(f'metadata.annotations["{key}"]', said)


def _base64_faults(inputs: Json) -> Iterator[CheckFailure]:
    """Data that is none, told without showing it."""
    data = reveal(inputs.get("data", {}))
    for key, text in data.items() if isinstance(data, Mapping) else ():
        if has_unknown(text):
            continue
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError):
            yield CheckFailure(f"data.{key}", f"value of {key} is no base64; give it as stringData, or encode it")
