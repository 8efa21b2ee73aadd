"""Decides what a resource is called where the program gives it no name, as azure-native does.

https://github.com/pulumi/pulumi-azure-native/blob/006a62afe453b416e5d5c98d2d91c4c7281f52f9/provider/pkg/provider/provider.go
"""

from __future__ import annotations

import hashlib
import secrets
import uuid

from rehearsal.pulumi_cli.providers.azure_native.resource_types import Kind
from rehearsal.pulumi_cli.providers.requests import CheckAsked

CREATE_FIRST = "__createBeforeDelete"
"""Input that azure-native keeps beside a random name: the replacement, having another name, can be made first."""
RANDOM_DIGITS = 8


def named(kind: Kind, asked: CheckAsked) -> dict[str, object]:
    """The inputs that name a resource which the program left nameless: none where the engine's configuration forbids it."""
    key = kind.names[-1]
    old = asked.old or {}
    if key in old:
        return {key: old[key], **({CREATE_FIRST: True} if old.get(CREATE_FIRST) is True else {})}
    proposed = asked.naming
    if proposed is not None and proposed.mode == "DISABLE":
        return {}
    if proposed is not None and (proposed.mode == "ENFORCE" or kind.auto_name != "uuid"):
        return {key: proposed.proposed, CREATE_FIRST: True}
    if kind.auto_name == "copy":
        return {key: asked.name}
    if kind.auto_name == "uuid":
        return {key: str(uuid.UUID(_digits(asked.seed, "", 32))), CREATE_FIRST: True}
    return {key: asked.name + _digits(asked.seed, asked.name, RANDOM_DIGITS), CREATE_FIRST: True}


def _digits(seed: bytes, text: str, count: int) -> str:
    """Hexadecimal digits, the same for the same seed and text."""
    if not seed:
        return secrets.token_hex(count)[:count]
    return hashlib.sha512(text.encode() + seed).hexdigest()[:count]
