"""Decides how one resource is looked up, written and removed, and what is told where that does not end well."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from rehearsal.azure.azure_native import NOT_IN_BODY, from_arm, to_arm
from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.azure_native.arm_client import (
    AzureResponseError,
    OperationCancelledError,
    OperationStartedError,
    ResourceManagerClient,
)
from rehearsal.pulumi_cli.providers.azure_native.input_check import OWN
from rehearsal.pulumi_cli.providers.azure_native.resource_types import ResourceType
from rehearsal.pulumi_cli.providers.provider_interface import InitializationError, ProviderError
from rehearsal.pulumi_cli.providers.pulumi_values import Json, secret_like

TIMEOUT_SECONDS = 7_200.0
"""What a resource is given where the program says nothing of it, as by azure-native."""


class ResourceOperations:
    """The resources behind one resource manager. What fails raises Failed, or InitFailed where the resource is there all the same."""

    def __init__(self, manager: ResourceManagerClient) -> None:
        self._manager = manager

    async def look(self, kind: ResourceType, resource_id: str, *, even_stopped: bool = False) -> Json | None:
        """The body that Azure answers; None where there is no such resource."""
        with _translated_errors(f"reading {resource_id}"):
            return await self._manager.get(resource_id, kind.api_version, even_stopped=even_stopped)

    async def outputs(self, kind: ResourceType, resource_id: str, *, even_stopped: bool = False) -> Json | None:
        """The outputs of a resource; None where there is none."""
        body = await self.look(kind, resource_id, even_stopped=even_stopped)
        return None if body is None else {**from_arm(kind.type, body), "azureApiVersion": kind.api_version}

    async def write(
        self, kind: ResourceType, resource_id: str, inputs: Mapping[str, Any], timeout: float, *, exists: bool = False
    ) -> Mapping[str, Any]:
        """Make a resource what the inputs say, and answer its outputs; what other resources write of one that exists stays."""
        plain: Json = reveal(inputs)
        body: Json = to_arm(kind.type, {key: value for key, value in plain.items() if key not in OWN})
        if exists:
            body = await self._with_others(kind, resource_id, body, plain)
        doing = f"{'updating' if exists else 'creating'} {resource_id}"
        query = NOT_IN_BODY.get(kind.token, "")
        reason = ""
        with _translated_errors(doing):
            try:
                async with asyncio.timeout(timeout or TIMEOUT_SECONDS):
                    await self._manager.put(
                        resource_id, kind.api_version, body, f"&{query}={plain[query]}" if query and query in plain else ""
                    )
            except TimeoutError:
                reason = f"{doing} timed out after {timeout or TIMEOUT_SECONDS:g} s"
            except OperationStartedError as began:
                reason = _reason(doing, began.error)
        if reason:
            await self._half_made(kind, resource_id, inputs, reason)
        try:
            outputs = await self.outputs(kind, resource_id)
        except ProviderError as unread:
            raise InitializationError(
                resource_id, {}, inputs, [f"{doing} ended well, and what came of it cannot be read: {unread}"]
            ) from None
        if outputs is None:
            raise ProviderError(f"{doing} ended well, and then it was not there; somebody else deleted it, or the group it is in")
        return dict(secret_like(outputs, inputs))

    async def remove(self, kind: ResourceType, resource_id: str, timeout: float) -> None:
        """Delete a resource, and wait until it is gone."""
        doing = f"deleting {resource_id}"
        with _translated_errors(doing):
            try:
                async with asyncio.timeout(timeout or TIMEOUT_SECONDS):
                    await self._manager.delete(resource_id, kind.api_version)
            except TimeoutError:
                raise ProviderError(f"{doing} timed out after {timeout or TIMEOUT_SECONDS:g} s") from None

    async def _with_others(self, kind: ResourceType, resource_id: str, body: Json, inputs: Json) -> Json:
        others = [name for name in kind.maintained if name not in inputs]
        now = await self.look(kind, resource_id) if others else None
        if now is None:
            return body
        held = now.get("properties") or {}
        kept = {name: deepcopy(held[name]) for name in others if name in held}
        return {**body, "properties": {**(body.get("properties") or {}), **kept}} if kept else body

    async def _half_made(self, kind: ResourceType, resource_id: str, inputs: Mapping[str, Any], reason: str) -> None:
        """Raise what a PUT came to that Azure took and that did not end well."""
        try:
            outputs = await self.outputs(kind, resource_id, even_stopped=True)
        except ProviderError as unread:
            raise InitializationError(resource_id, {}, inputs, [f"{reason}; and what there is now cannot be read: {unread}"]) from None
        if outputs is None:
            raise ProviderError(reason)
        raise InitializationError(resource_id, secret_like(outputs, inputs), inputs, [reason])


@contextmanager
def _translated_errors(doing: str) -> Iterator[None]:
    """Turns what Azure refuses, and the engine's wish to end, into the sentence that a person reads."""
    try:
        yield
    except (AzureResponseError, OperationCancelledError) as error:
        raise ProviderError(_reason(doing, error)) from None


def _reason(doing: str, error: Exception) -> str:
    if isinstance(error, OperationCancelledError):
        return f"{doing} was cancelled; Azure may go on with it, and `pulumi refresh` tells what became of it"
    return f"{doing}: {error}"
