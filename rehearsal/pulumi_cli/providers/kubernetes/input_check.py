"""Check of an object's inputs: kind, generated name, namespace, field names, labels, and base64 data.

https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
"""

from __future__ import annotations

import base64
import binascii
import difflib
import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.errors import GpufleetError
from rehearsal.program.graph import Secret, reveal
from rehearsal.program.pulumi_values import Json, has_secret, has_unknown, is_unknown
from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import (
    AUTONAMED,
    SERVER_FIELDS,
    SKIP_AWAIT,
    UNSUPPORTED_ANNOTATIONS,
    is_true,
    name_of,
)
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind
from rehearsal.pulumi_cli.providers.provider_interface import CheckFailure, CheckRequest, CheckResult, ProposedName

RANDOM_DIGITS = 8
"""Hexadecimal digits of a generated name: https://www.pulumi.com/docs/iac/concepts/resources/names/#autonaming"""
SHOWN_CHARACTERS = 80
"""Characters of a wrong value that a message shows."""
LABEL_BOUND = 63
SUBDOMAIN_BOUND = 253


@dataclass(frozen=True)
class NameRule:
    """Rule for a text: pattern, maximum length in characters, and description."""

    pattern: re.Pattern[str]
    bound: int
    words: str

    def violation(self, text: str) -> str:
        """Return the error in a text, "" for none."""
        if len(text) > self.bound:
            return f"{text[:SHOWN_CHARACTERS]!r} has {len(text)} characters; Kubernetes takes at most {self.bound}"
        return "" if self.pattern.fullmatch(text) else f"{text[:SHOWN_CHARACTERS]!r} is not taken by Kubernetes: write {self.words}"


SUBDOMAIN = NameRule(
    re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"),
    SUBDOMAIN_BOUND,
    "small letters, digits, - and ., with a letter or digit at both ends of each part",
)
LABEL = NameRule(
    re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"), LABEL_BOUND, "small letters, digits and -, with a letter or digit at both ends"
)
PATH_SEGMENT = NameRule(re.compile(r"(?!\.\.?$)[^/%]+"), SUBDOMAIN_BOUND, "anything but / and %, and neither . nor ..")
LABEL_VALUE = NameRule(
    re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?"),
    LABEL_BOUND,
    "letters, digits, -, _ and ., with a letter or digit at both ends",
)
NAME_RULES: Mapping[tuple[str, str], NameRule] = {
    ("", "Namespace"): LABEL,
    ("", "Service"): LABEL,
    ("apiregistration.k8s.io", "APIService"): PATH_SEGMENT,
    ("networking.k8s.io", "IPAddress"): PATH_SEGMENT,
    ("rbac.authorization.k8s.io", "ClusterRole"): PATH_SEGMENT,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): PATH_SEGMENT,
    ("rbac.authorization.k8s.io", "Role"): PATH_SEGMENT,
    ("rbac.authorization.k8s.io", "RoleBinding"): PATH_SEGMENT,
}
"""Kinds, by API group, whose names are not DNS subdomains."""


class AutonamingDisabledError(GpufleetError):
    """The engine's configuration disables generated names."""


def generated_name(logical: str, seed: bytes, naming: ProposedName | None) -> str:
    """Return a name for an object without one: the engine's proposal, or the logical name with digits from the seed.

    AutonamingDisabledError where generated names are disabled.
    """
    if naming is not None and naming.mode == "DISABLE":
        raise AutonamingDisabledError
    if naming is not None and naming.proposed:
        return naming.proposed
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(RANDOM_DIGITS)
    return f"{logical}-{digits[:RANDOM_DIGITS]}"


def name_failures(kind: Kind, metadata: Mapping[str, Any]) -> Iterator[CheckFailure]:
    """Yield the errors in the name and namespace of an object's metadata."""
    rules = (("name", NAME_RULES.get((kind.group, kind.kind), SUBDOMAIN)), ("namespace", LABEL))
    for field, rule in rules:
        text = reveal(metadata.get(field, ""))
        if field not in metadata or has_unknown(text):
            continue
        if not isinstance(text, str):
            yield CheckFailure(f"metadata.{field}", f"{field} is {text!r}, no text: quote it")
        elif violation := rule.violation(text):
            yield CheckFailure(f"metadata.{field}", f"{field} {violation}")


def label_failures(metadata: Mapping[str, Any]) -> Iterator[CheckFailure]:
    """Yield the errors in the labels and annotations of an object's metadata."""
    for field in ("labels", "annotations"):
        entries = reveal(metadata.get(field, {}))
        if has_unknown(entries) and not isinstance(entries, Mapping):
            continue
        if not isinstance(entries, Mapping):
            yield CheckFailure(f"metadata.{field}", f"{field} are not a mapping of texts")
            continue
        for key, value in entries.items():
            if reason := _entry_failure(field, key, value):
                yield CheckFailure(f'metadata.{field}["{key}"]', reason)


def _entry_failure(field: str, key: str, value: Any) -> str:
    prefix, slash, name = key.rpartition("/")
    if not name or (violation := LABEL_VALUE.violation(name)):
        return f"key {violation}" if name else f"key {key!r} has no name"
    # The prefix of an annotation's key may contain capitals.
    if slash and (violation := SUBDOMAIN.violation(prefix.lower() if field == "annotations" else prefix)):
        return f"prefix of key {key!r}: {violation}"
    if has_unknown(value):
        return ""
    if not isinstance(value, str):
        return f"value {value!r} is not a text: quote it"
    return f"value {violation}" if field == "labels" and (violation := LABEL_VALUE.violation(value)) else ""


DEFAULT_NAMESPACE = "default"
COMMON = frozenset({"apiVersion", "kind", "metadata"})
SECRET = Kind("v1", "Secret")
SECRET_FIELDS = ("data", "stringData")


def check_inputs(request: CheckRequest, kind: Kind, namespace: str, *, namespaced: bool) -> CheckResult:
    """Return the inputs with defaults, and the errors in them; namespace is the provider's own."""
    inputs = dict(request.new)
    failures = [*_kind_failures(inputs, kind), *_field_failures(inputs, kind)]
    inputs |= {"apiVersion": kind.api_version, "kind": kind.kind}
    metadata = inputs.get("metadata", {})
    if is_unknown(metadata):
        return CheckResult(inputs, failures)
    if not isinstance(reveal(metadata), dict):
        return CheckResult(inputs, [*failures, CheckFailure("metadata", "metadata is not an object with a name, labels and so on")])
    filled, reason = _name_metadata(dict(reveal(metadata) if isinstance(metadata, Secret) else metadata), request)
    if namespaced and not filled.get("namespace"):
        filled["namespace"] = namespace or DEFAULT_NAMESPACE
    inputs["metadata"] = Secret(filled) if isinstance(metadata, Secret) else filled
    wrong = [*name_failures(kind, filled), *label_failures(filled)]
    failures += [*reason, *(map(_without_value, wrong) if has_secret(metadata) else wrong), *_annotation_failures(filled)]
    if kind == SECRET:
        failures += _base64_failures(inputs)
        inputs = stored_secret(inputs)
    return CheckResult(inputs, failures)


def stored_secret(item: Mapping[str, Any]) -> Json:
    """Return a Secret with its stringData as data, as the server stores it, and with both marked secret. Unknown values remain."""
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


def _without_value(failure: CheckFailure) -> CheckFailure:
    """Return a failure of secret metadata without the value, which its message may quote."""
    field = failure.property.partition("[")[0]
    return CheckFailure(field, f"{field} breaks Kubernetes' rules for names and labels; it is not shown because it may be secret")


def _kind_failures(inputs: Json, kind: Kind) -> Iterator[CheckFailure]:
    for field, right in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        given = reveal(inputs.get(field, right))
        if given != right and not has_unknown(given):
            yield CheckFailure(field, f"{field} is {given!r}, but the resource's type is of {right}: write that, or leave it out")


def _field_failures(inputs: Json, kind: Kind) -> Iterator[CheckFailure]:
    if kind.fields is None:
        return
    known = COMMON | kind.fields
    for field in inputs.keys() - known:
        near = difflib.get_close_matches(field, known, 1)
        yield CheckFailure(field, f"{kind} has no field {field}{f'; did you mean {near[0]}?' if near else ''}")


def _name_metadata(metadata: Json, request: CheckRequest) -> tuple[Json, list[CheckFailure]]:
    """Return metadata with a name and without fields that only the server writes."""
    metadata_inputs = {key: value for key, value in metadata.items() if key not in SERVER_FIELDS}
    if metadata_inputs.get("name"):
        return metadata_inputs, []
    if metadata_inputs.get("generateName"):
        reason = "generateName creates another name with every apply; leave it out, and the provider generates a permanent one"
        return metadata_inputs, [CheckFailure("metadata.generateName", reason)]
    before = request.old or {}
    try:
        metadata_inputs["name"] = (
            name_of(before) if is_true(before, AUTONAMED) else generated_name(request.name, request.seed, request.naming)
        )
    except AutonamingDisabledError:
        reason = "the stack's configuration disables generated names (pulumi:autonaming); give the object one"
        return metadata_inputs, [CheckFailure("metadata.name", reason)]
    annotations = metadata_inputs.get("annotations", {})
    if isinstance(annotations, Mapping):
        metadata_inputs["annotations"] = {**annotations, AUTONAMED: "true"}
    return metadata_inputs, []


def _annotation_failures(metadata: Json) -> Iterator[CheckFailure]:
    annotations = reveal(metadata.get("annotations"))
    for key in sorted(UNSUPPORTED_ANNOTATIONS.intersection(annotations if isinstance(annotations, Mapping) else ())):
        reason = f'{key} is not supported in a rehearsal; leave it out, or mark the object with {SKIP_AWAIT}: "true"'
        yield CheckFailure(f'metadata.annotations["{key}"]', reason)


def _base64_failures(inputs: Json) -> Iterator[CheckFailure]:
    """Yield an error for each value that is not base64, without the value."""
    data = reveal(inputs.get("data", {}))
    for key, text in data.items() if isinstance(data, Mapping) else ():
        if has_unknown(text):
            continue
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, TypeError, ValueError):
            yield CheckFailure(f"data.{key}", f"value of {key} is not base64; give it as stringData, or encode it")
