"""How objects are called: names that the provider makes up, and what Kubernetes takes as a name or a label.

https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from components.errors import GpufleetError
from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.errors import CheckFailure
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind
from rehearsal.pulumi_cli.providers.pulumi_values import has_unknown
from rehearsal.pulumi_cli.providers.requests import Naming

RANDOM_DIGITS = 8
"""Hexadecimal digits behind a made-up name: https://www.pulumi.com/docs/iac/concepts/resources/names/#autonaming"""
SHOWN = 80
"""Characters of a wrong value that a sentence shows."""
LABEL_BOUND = 63
SUBDOMAIN_BOUND = 253


@dataclass(frozen=True)
class Rule:
    """What a text must look like: pattern, most characters, and the same in words."""

    pattern: re.Pattern[str]
    bound: int
    words: str

    def breach(self, text: str) -> str:
        """What is wrong with a text, "" where nothing is."""
        if len(text) > self.bound:
            return f"{text[:SHOWN]!r} has {len(text)} characters; Kubernetes takes at most {self.bound}"
        return "" if self.pattern.fullmatch(text) else f"{text[:SHOWN]!r} is not taken by Kubernetes: write {self.words}"


SUBDOMAIN = Rule(
    re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"),
    SUBDOMAIN_BOUND,
    "small letters, digits, - and ., with a letter or digit at both ends of each part",
)
LABEL = Rule(re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"), LABEL_BOUND, "small letters, digits and -, with a letter or digit at both ends")
PATH_SEGMENT = Rule(re.compile(r"(?!\.\.?$)[^/%]+"), SUBDOMAIN_BOUND, "anything but / and %, and neither . nor ..")
LABEL_VALUE = Rule(
    re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?"),
    LABEL_BOUND,
    "letters, digits, -, _ and ., with a letter or digit at both ends",
)
RULES: Mapping[tuple[str, str], Rule] = {
    ("", "Namespace"): LABEL,
    ("", "Service"): LABEL,
    ("apiregistration.k8s.io", "APIService"): PATH_SEGMENT,
    ("networking.k8s.io", "IPAddress"): PATH_SEGMENT,
    ("rbac.authorization.k8s.io", "ClusterRole"): PATH_SEGMENT,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): PATH_SEGMENT,
    ("rbac.authorization.k8s.io", "Role"): PATH_SEGMENT,
    ("rbac.authorization.k8s.io", "RoleBinding"): PATH_SEGMENT,
}
"""Kinds, by API group, whose names are other than a DNS subdomain."""


class AutonamingDisabledError(GpufleetError):
    """The engine is configured to make up no names."""


def made_up(logical: str, seed: bytes, naming: Naming | None) -> str:
    """A name for an object that was given none: as the engine proposes it, or the logical name and digits, the same ones for the same
    seed. NamingDisabled."""
    if naming is not None and naming.mode == "DISABLE":
        raise AutonamingDisabledError
    if naming is not None and naming.proposed:
        return naming.proposed
    digits = hashlib.sha256(seed).hexdigest() if seed else secrets.token_hex(RANDOM_DIGITS)
    return f"{logical}-{digits[:RANDOM_DIGITS]}"


def name_faults(kind: Kind, metadata: Mapping[str, Any]) -> Iterator[CheckFailure]:
    """What is wrong with the name and the namespace of an object's metadata."""
    rules = (("name", RULES.get((kind.group, kind.kind), SUBDOMAIN)), ("namespace", LABEL))
    for field, rule in rules:
        text = reveal(metadata.get(field, ""))
        if field not in metadata or has_unknown(text):
            continue
        if not isinstance(text, str):
            yield CheckFailure(f"metadata.{field}", f"{field} is {text!r}, no text: quote it")
        elif breach := rule.breach(text):
            yield CheckFailure(f"metadata.{field}", f"{field} {breach}")


def label_faults(metadata: Mapping[str, Any]) -> Iterator[CheckFailure]:
    """What is wrong with the labels and annotations of an object's metadata."""
    for field in ("labels", "annotations"):
        entries = reveal(metadata.get(field, {}))
        if has_unknown(entries) and not isinstance(entries, Mapping):
            continue
        if not isinstance(entries, Mapping):
            yield CheckFailure(f"metadata.{field}", f"{field} are no mapping of texts")
            continue
        for key, value in entries.items():
            if said := _entry_breach(field, key, value):
                yield CheckFailure(f'metadata.{field}["{key}"]', said)


def _entry_breach(field: str, key: str, value: Any) -> str:
    prefix, slash, name = key.rpartition("/")
    if not name or (breach := LABEL_VALUE.breach(name)):
        return f"key {breach}" if name else f"key {key!r} has no name"
    # Keys of annotations have the names' rules, in any capitals before the /.
    if slash and (breach := SUBDOMAIN.breach(prefix.lower() if field == "annotations" else prefix)):
        return f"prefix of key {key!r}: {breach}"
    if has_unknown(value):
        return ""
    if not isinstance(value, str):
        return f"value {value!r} is no text: quote it"
    return f"value {breach}" if field == "labels" and (breach := LABEL_VALUE.breach(value)) else ""
