"""What a person is told of an answer of the API server that is no success, and that no secret is in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.local_cluster.objects.connection import ApiResponse
from rehearsal.local_cluster.objects.results import FORBIDDEN, ObjectKey, conflicts_of, failures_of
from rehearsal.program.graph import MASK, Secret, reveal
from rehearsal.pulumi_cli.providers.errors import ProviderError
from rehearsal.pulumi_cli.providers.kubernetes.metadata import PATCH_FORCE

SHORTEST_SECRET = 4
"""Characters below which a text is no secret: masked, it would make a sentence unreadable."""
IMMUTABLE_WORDS = ("field is immutable", "may not be changed", "are forbidden", "cannot be changed", "updates to")
REPLACE = "the API server never changes it: have the resource replaced (replace_on_changes, or `pulumi up --replace`)"


def already_there(key: ObjectKey) -> ProviderError:
    """An object that was to be made and is there already: https://github.com/pulumi/pulumi-kubernetes/issues/2926"""
    return ProviderError(
        f"{key} is in the cluster already and not in this resource's state; take it in with `pulumi import`, "
        "give a renamed resource an alias, or set upsertExistingObjects on the provider to take over what is there"
    )


def refused(key: ObjectKey, answer: ApiResponse, inputs: Mapping[str, Any]) -> ProviderError:
    """Why an object was refused, and what to do about it."""
    if conflicts := conflicts_of(key, answer):
        owned = "; ".join(f"{one.field} is owned by {one.manager}" for one in conflicts)
        said = f'have the owner give it up, or mark the object with {PATCH_FORCE}: "true" to take it over'
        return ProviderError(masked(f"{key}: {owned}; {said}", inputs))
    if answer.status == FORBIDDEN:
        return ProviderError(
            masked(f"{key}: {answer.message}; give the kubeconfig's user the right, or ask the owner of the policy", inputs)
        )
    if any(words in answer.message for words in IMMUTABLE_WORDS):
        return ProviderError(masked(f"{key}: {answer.message}; {REPLACE}", inputs))
    return ProviderError(masked("\n".join(str(one) for one in failures_of(key, answer)), inputs))


def masked(text: str, inputs: Mapping[str, Any]) -> str:
    """A text with every secret of an object's inputs in it covered."""
    for secret in sorted(set(_secrets(inputs)), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _secrets(value: Any) -> Iterator[str]:
    match value:
        case Secret():
            yield from _texts(reveal(value))
        case Mapping():
            for item in value.values():
                yield from _secrets(item)
        case list():
            for item in value:
                yield from _secrets(item)


def _texts(value: Any) -> Iterator[str]:
    match value:
        case Mapping():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str() if len(value) >= SHORTEST_SECRET:
            yield value
