"""Error messages for rejected requests to the API server, with secrets masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lifecycle.kubernetes_api.connection import ApiResponse
from rehearsal.local_cluster.objects.results import FORBIDDEN, ObjectKey, conflicts_of, failures_of
from rehearsal.program.graph import MASK, Secret, reveal
from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import PATCH_FORCE
from rehearsal.pulumi_cli.providers.provider_interface import ProviderError

SHORTEST_MASKED = 4
"""Characters of the shortest text that is masked: masking shorter ones would make a sentence unreadable."""
IMMUTABLE_WORDS = ("field is immutable", "may not be changed", "are forbidden", "cannot be changed", "updates to")
REPLACE = "the API server never changes it: have the resource replaced (replace_on_changes, or `pulumi up --replace`)"


def already_exists(key: ObjectKey) -> ProviderError:
    """Build the error for an object that is to be created and exists: https://github.com/pulumi/pulumi-kubernetes/issues/2926"""
    return ProviderError(
        f"{key} is already in the cluster and not in this resource's state; add it with `pulumi import`, "
        "give a renamed resource an alias, or set upsertExistingObjects on the provider to adopt existing objects"
    )


def rejected(key: ObjectKey, response: ApiResponse, inputs: Mapping[str, Any]) -> ProviderError:
    """Build the error for an object that the server rejected, with the reason and the remedy."""
    if conflicts := conflicts_of(key, response):
        owned = "; ".join(f"{one.field} is owned by {one.manager}" for one in conflicts)
        text = f'{key}: {owned}; have the owner release it, or mark the object with {PATCH_FORCE}: "true" to take it over'
    elif response.status == FORBIDDEN:
        text = f"{key}: {response.message}; give the kubeconfig's user the right, or ask the owner of the policy"
    elif any(words in response.message for words in IMMUTABLE_WORDS):
        text = f"{key}: {response.message}; {REPLACE}"
    else:
        text = "\n".join(str(one) for one in failures_of(key, response))
    return ProviderError(masked(text, inputs))


def masked(text: str, inputs: Mapping[str, Any]) -> str:
    """Return a text in which every secret of an object's inputs is masked."""
    for secret in sorted(set(_secrets(inputs)), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def _secrets(value: Any, *, secret: bool = False) -> Iterator[str]:
    match value:
        case Secret():
            yield from _secrets(reveal(value), secret=True)
        case Mapping():
            for item in value.values():
                yield from _secrets(item, secret=secret)
        case list():
            for item in value:
                yield from _secrets(item, secret=secret)
        case str() if secret and len(value) >= SHORTEST_MASKED:
            yield value
