"""Reads, writes and deletions of one resource, with the errors that the user sees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from rehearsal.azure.azure_native_bodies import NOT_IN_BODY, from_arm, to_arm
from rehearsal.program.graph import reveal
from rehearsal.program.pulumi_values import Json, secret_like
from rehearsal.pulumi_cli.providers.azure_native.arm_client import (
    AzureResponseError,
    OperationCancelledError,
    OperationStartedError,
    ResourceManagerClient,
)
from rehearsal.pulumi_cli.providers.azure_native.input_check import PROVIDER_INPUTS
from rehearsal.pulumi_cli.providers.azure_native.resource_types import ResourceType
from rehearsal.pulumi_cli.providers.provider_interface import InitializationError, ProviderError

TIMEOUT_SECONDS = 7_200.0
"""Default timeout of a resource, as in azure-native."""


class ResourceOperations:
    """Operations through one resource manager; ProviderError for a failure, InitializationError where the resource exists nevertheless."""

    def __init__(self, client: ResourceManagerClient) -> None:
        self._client = client

    async def read_body(self, resource_type: ResourceType, resource_id: str, *, ignore_stop: bool = False) -> Json | None:
        """Return the resource's body in Azure; None where it does not exist."""
        with _translated_errors(f"reading {resource_id}"):
            return await self._client.get(resource_id, resource_type.api_version, ignore_stop=ignore_stop)

    async def outputs(self, resource_type: ResourceType, resource_id: str, *, ignore_stop: bool = False) -> Json | None:
        """Return the outputs of a resource; None where it does not exist."""
        body = await self.read_body(resource_type, resource_id, ignore_stop=ignore_stop)
        return None if body is None else {**from_arm(resource_type.type, body), "azureApiVersion": resource_type.api_version}

    async def write(
        self, resource_type: ResourceType, resource_id: str, inputs: Mapping[str, Any], timeout: float, *, exists: bool = False
    ) -> Mapping[str, Any]:
        """Create or update a resource and return its outputs; in an update, properties that other resources write remain."""
        plain: Json = reveal(inputs)
        body: Json = to_arm(resource_type.type, {key: value for key, value in plain.items() if key not in PROVIDER_INPUTS})
        if exists:
            body = await self._with_foreign_properties(resource_type, resource_id, body, plain)
        doing = f"{'updating' if exists else 'creating'} {resource_id}"
        query = NOT_IN_BODY.get(resource_type.token, "")
        reason = ""
        with _translated_errors(doing):
            try:
                async with asyncio.timeout(timeout or TIMEOUT_SECONDS):
                    await self._client.put(
                        resource_id, resource_type.api_version, body, f"&{query}={plain[query]}" if query and query in plain else ""
                    )
            except TimeoutError:
                reason = f"{doing} timed out after {timeout or TIMEOUT_SECONDS:g} s"
            except OperationStartedError as started:
                reason = _reason(doing, started.error)
        if reason:
            await self._raise_incomplete(resource_type, resource_id, inputs, reason)
        try:
            outputs = await self.outputs(resource_type, resource_id)
        except ProviderError as unread:
            raise InitializationError(resource_id, {}, inputs, [f"{doing} succeeded, but the result cannot be read: {unread}"]) from None
        if outputs is None:
            raise ProviderError(f"{doing} succeeded, but the resource does not exist; another client deleted it or its resource group")
        return dict(secret_like(outputs, inputs))

    async def remove(self, resource_type: ResourceType, resource_id: str, timeout: float) -> None:
        """Delete a resource and wait for the end."""
        doing = f"deleting {resource_id}"
        with _translated_errors(doing):
            try:
                async with asyncio.timeout(timeout or TIMEOUT_SECONDS):
                    await self._client.delete(resource_id, resource_type.api_version)
            except TimeoutError:
                raise ProviderError(f"{doing} timed out after {timeout or TIMEOUT_SECONDS:g} s") from None

    async def _with_foreign_properties(self, resource_type: ResourceType, resource_id: str, body: Json, inputs: Json) -> Json:
        foreign = [name for name in resource_type.foreign_properties if name not in inputs]
        body_now = await self.read_body(resource_type, resource_id) if foreign else None
        if body_now is None:
            return body
        properties = body_now.get("properties") or {}
        retained = {name: deepcopy(properties[name]) for name in foreign if name in properties}
        return {**body, "properties": {**(body.get("properties") or {}), **retained}} if retained else body

    async def _raise_incomplete(self, resource_type: ResourceType, resource_id: str, inputs: Mapping[str, Any], reason: str) -> None:
        """Raise the error of a PUT that Azure accepted and that failed."""
        try:
            outputs = await self.outputs(resource_type, resource_id, ignore_stop=True)
        except ProviderError as unread:
            raise InitializationError(resource_id, {}, inputs, [f"{reason}; and the current state cannot be read: {unread}"]) from None
        if outputs is None:
            raise ProviderError(reason)
        raise InitializationError(resource_id, secret_like(outputs, inputs), inputs, [reason])


@contextmanager
def _translated_errors(doing: str) -> Iterator[None]:
    """Translate errors of Azure and cancellations to the error that the user sees."""
    try:
        yield
    except (AzureResponseError, OperationCancelledError) as error:
        raise ProviderError(_reason(doing, error)) from None


def _reason(doing: str, error: Exception) -> str:
    if isinstance(error, OperationCancelledError):
        return f"{doing} was cancelled; Azure may still finish it, and `pulumi refresh` reads the result"
    return f"{doing}: {error}"
