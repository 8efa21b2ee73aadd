"""The azure-native provider: the engine's calls for each resource."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import grpc  # type: ignore[import-untyped]

from rehearsal.azure.azure_native_ids import RESOURCE_GROUP
from rehearsal.program.graph import reveal
from rehearsal.program.pulumi_values import UNKNOWN, Json, is_unknown, secret_like
from rehearsal.pulumi_cli.providers.azure_native.arm_client import ResourceManagerClient
from rehearsal.pulumi_cli.providers.azure_native.diff import difference
from rehearsal.pulumi_cli.providers.azure_native.input_check import input_failures, name_inputs
from rehearsal.pulumi_cli.providers.azure_native.inputs_and_outputs import imported_inputs, preview_outputs, refreshed_inputs
from rehearsal.pulumi_cli.providers.azure_native.resource_operations import ResourceOperations
from rehearsal.pulumi_cli.providers.azure_native.resource_types import RESOURCE_GROUP_PATH, resource_type_of
from rehearsal.pulumi_cli.providers.azure_native.sign_in import (
    AzureSettings,
    ServicePrincipal,
    call_function,
    discover_endpoints,
    read_settings,
)
from rehearsal.pulumi_cli.providers.engine_client import EngineClient
from rehearsal.pulumi_cli.providers.provider_interface import (
    CheckRequest,
    CheckResult,
    CreateRequest,
    CreateResult,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    Provider,
    ProviderError,
    ReadRequest,
    ReadResult,
    UpdateRequest,
)

CONNECTIONS = 64
"""Connections to Azure: as many as Pulumi needs with --parallel 64."""


class AzureNative(Provider):
    """azure-native 3.29 for one subscription of the embedded Azure."""

    package = "azure-native"
    version = "3.29.0"
    autonaming = True

    def __init__(self, engine: EngineClient) -> None:
        super().__init__(engine)
        self.settings = AzureSettings("", "", "", "", "", "")
        self.stopped = asyncio.Event()
        self.client: ResourceManagerClient | None = None
        self._group_locations: dict[str, str] = {}

    async def configure(self, config: Json) -> None:
        self.settings = read_settings(config)
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS))
        try:
            endpoints = await discover_endpoints(session, self.settings)
            account = ServicePrincipal(session, self.settings, endpoints)
            await account.token()
        except BaseException:
            await session.close()
            raise
        if self.client is not None:
            await self.client.session.close()
        self.client = ResourceManagerClient(session, account, endpoints.manager, self.stopped)

    async def check(self, request: CheckRequest) -> CheckResult:
        resource_type = resource_type_of(request.type)
        inputs = dict(request.new)
        if resource_type.names[-1] not in inputs:
            inputs |= name_inputs(resource_type, request)
        if resource_type.takes_location and "location" not in inputs:
            location = await self._default_location(inputs, request.old or {})
            inputs |= {"location": location} if location else {}
        return CheckResult(inputs, input_failures(resource_type, inputs))

    async def diff(self, request: DiffRequest) -> DiffResult:
        return difference(resource_type_of(request.type), request.old_inputs, request.new)

    async def create(self, request: CreateRequest) -> CreateResult:
        resource_type = resource_type_of(request.type)
        if request.preview:
            return CreateResult("", secret_like(preview_outputs(resource_type, request.inputs), request.inputs))
        resource_id = resource_type.id_of(reveal(request.inputs), self.settings.subscription)
        if not resource_type.singleton and await self._resources.read_body(resource_type, resource_id) is not None:
            raise ProviderError(
                f"cannot create already existing resource '{resource_id}'; to add it to the stack, import it: "
                f"pulumi import {request.type} {request.name} '{resource_id}'"
            )
        return CreateResult(resource_id, await self._resources.write(resource_type, resource_id, request.inputs, request.timeout))

    async def update(self, request: UpdateRequest) -> Mapping[str, Any]:
        resource_type = resource_type_of(request.type)
        if request.preview:
            outputs: Json = secret_like(preview_outputs(resource_type, request.new, request.old_outputs), request.new)
            return outputs
        return await self._resources.write(resource_type, request.id, request.new, request.timeout, exists=True)

    async def read(self, request: ReadRequest) -> ReadResult | None:
        resource_type = resource_type_of(request.type)
        known = resource_type.inputs_of(request.id)
        outputs = await self._resources.outputs(resource_type, request.id)
        if outputs is None:
            return None
        inputs = (
            imported_inputs(resource_type, known, outputs)
            if request.inputs is None
            else refreshed_inputs(resource_type, request.inputs, request.outputs, outputs)
        )
        return ReadResult(request.id, secret_like(outputs, inputs), inputs)

    async def delete(self, request: DeleteRequest) -> None:
        resource_type = resource_type_of(request.type)
        resource_type.inputs_of(request.id)
        if not resource_type.singleton:
            await self._resources.remove(resource_type, request.id, request.timeout)

    async def invoke(self, token: str, arguments: Json) -> Mapping[str, Any]:
        return await call_function(token, arguments, self.settings, self._client.account)

    async def cancel(self) -> None:
        self.stopped.set()

    async def close(self) -> None:
        if self.client is not None:
            await self.client.session.close()
        await super().close()

    @property
    def _resources(self) -> ResourceOperations:
        return ResourceOperations(self._client)

    @property
    def _client(self) -> ResourceManagerClient:
        if self.client is None:
            raise ProviderError("azure-native was called before it was configured", grpc.StatusCode.FAILED_PRECONDITION)
        return self.client

    async def _default_location(self, inputs: Json, old: Json) -> Any:
        """Return the location of a resource that names none: its present one, the provider's, or its group's; ProviderError."""
        group = inputs.get("resourceGroupName")
        if "location" in old or self.settings.location or group is None:
            return old.get("location") or self.settings.location
        if is_unknown(group):
            return UNKNOWN
        name = reveal(group)
        if self.client is None or not isinstance(name, str):
            return ""
        if name not in self._group_locations:
            group_id = RESOURCE_GROUP_PATH.format(subscriptionId=self.settings.subscription, resourceGroupName=name)
            found = await self._resources.read_body(resource_type_of(RESOURCE_GROUP), group_id)
            if found is None:
                return ""
            self._group_locations[name] = str(found.get("location", ""))
        return self._group_locations[name]
