"""Decides what azure-native does with each resource that the engine asks it for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import grpc  # type: ignore[import-untyped]

from rehearsal.azure.azure_native_ids import RESOURCE_GROUP
from rehearsal.program.graph import reveal
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
from rehearsal.pulumi_cli.providers.pulumi_values import UNKNOWN, Json, is_unknown, secret_like

CONNECTIONS = 64
"""Connections held open to Azure: Pulumi asks for so much at once only where its --parallel says so."""


class AzureNative(Provider):
    """azure-native 3.29 for one subscription of the embedded Azure."""

    package = "azure-native"
    version = "3.29.0"
    autonaming = True

    def __init__(self, engine: EngineClient) -> None:
        super().__init__(engine)
        self.settings = AzureSettings("", "", "", "", "", "")
        self.stopped = asyncio.Event()
        self.manager: ResourceManagerClient | None = None
        self._group_locations: dict[str, str] = {}

    async def configure(self, config: Json) -> None:
        self.settings = read_settings(config)
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS))
        try:
            places = await discover_endpoints(session, self.settings)
            account = ServicePrincipal(session, self.settings, places)
            await account.token()
        except BaseException:
            await session.close()
            raise
        if self.manager is not None:
            await self.manager.session.close()
        self.manager = ResourceManagerClient(session, account, places.manager, self.stopped)

    async def check(self, asked: CheckRequest) -> CheckResult:
        kind = resource_type_of(asked.type)
        inputs = dict(asked.new)
        if kind.names[-1] not in inputs:
            inputs |= name_inputs(kind, asked)
        if kind.located and "location" not in inputs:
            location = await self._default_location(inputs, asked.old or {})
            inputs |= {"location": location} if location else {}
        return CheckResult(inputs, input_failures(kind, inputs))

    async def diff(self, asked: DiffRequest) -> DiffResult:
        return difference(resource_type_of(asked.type), asked.old_inputs, asked.new)

    async def create(self, asked: CreateRequest) -> CreateResult:
        kind = resource_type_of(asked.type)
        if asked.preview:
            return CreateResult("", secret_like(preview_outputs(kind, asked.inputs), asked.inputs))
        resource_id = kind.id_of(reveal(asked.inputs), self.settings.subscription)
        if not kind.singleton and await self._resources.look(kind, resource_id) is not None:
            raise ProviderError(
                f"cannot create already existing resource '{resource_id}'; to let the stack have it, import it: "
                f"pulumi import {asked.type} {asked.name} '{resource_id}'"
            )
        return CreateResult(resource_id, await self._resources.write(kind, resource_id, asked.inputs, asked.timeout))

    async def update(self, asked: UpdateRequest) -> Mapping[str, Any]:
        kind = resource_type_of(asked.type)
        if asked.preview:
            outputs: Json = secret_like(preview_outputs(kind, asked.new, asked.old_outputs), asked.new)
            return outputs
        return await self._resources.write(kind, asked.id, asked.new, asked.timeout, exists=True)

    async def read(self, asked: ReadRequest) -> ReadResult | None:
        kind = resource_type_of(asked.type)
        known = kind.inputs_of(asked.id)
        outputs = await self._resources.outputs(kind, asked.id)
        if outputs is None:
            return None
        inputs = (
            imported_inputs(kind, known, outputs) if asked.inputs is None else refreshed_inputs(kind, asked.inputs, asked.outputs, outputs)
        )
        return ReadResult(asked.id, secret_like(outputs, inputs), inputs)

    async def delete(self, asked: DeleteRequest) -> None:
        kind = resource_type_of(asked.type)
        kind.inputs_of(asked.id)
        if not kind.singleton:
            await self._resources.remove(kind, asked.id, asked.timeout)

    async def invoke(self, token: str, arguments: Json) -> Mapping[str, Any]:
        return await call_function(token, arguments, self.settings, self._manager.account)

    async def cancel(self) -> None:
        self.stopped.set()

    async def close(self) -> None:
        if self.manager is not None:
            await self.manager.session.close()
        await super().close()

    @property
    def _resources(self) -> ResourceOperations:
        return ResourceOperations(self._manager)

    @property
    def _manager(self) -> ResourceManagerClient:
        if self.manager is None:
            raise ProviderError("azure-native was asked for something before it was configured", grpc.StatusCode.FAILED_PRECONDITION)
        return self.manager

    async def _default_location(self, inputs: Json, old: Json) -> Any:
        """Where a resource goes that names no location: where it is, where the provider says, or where its group is; Failed."""
        group = inputs.get("resourceGroupName")
        if "location" in old or self.settings.location or group is None:
            return old.get("location") or self.settings.location
        if is_unknown(group):
            return UNKNOWN
        name = reveal(group)
        if self.manager is None or not isinstance(name, str):
            return ""
        if name not in self._group_locations:
            group_id = RESOURCE_GROUP_PATH.format(subscriptionId=self.settings.subscription, resourceGroupName=name)
            found = await self._resources.look(resource_type_of(RESOURCE_GROUP), group_id)
            if found is None:
                return ""
            self._group_locations[name] = str(found.get("location", ""))
        return self._group_locations[name]
