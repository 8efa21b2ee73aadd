"""Decides what azure-native does with each resource that the engine asks it for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import grpc  # type: ignore[import-untyped]

from rehearsal.azure.azure_native_ids import RESOURCE_GROUP
from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.azure_native.arm_client import Manager
from rehearsal.pulumi_cli.providers.azure_native.autonaming import named
from rehearsal.pulumi_cli.providers.azure_native.diff import difference
from rehearsal.pulumi_cli.providers.azure_native.functions import answered
from rehearsal.pulumi_cli.providers.azure_native.input_check import failures
from rehearsal.pulumi_cli.providers.azure_native.preview_outputs import previewed
from rehearsal.pulumi_cli.providers.azure_native.read_inputs import imported, refreshed
from rehearsal.pulumi_cli.providers.azure_native.resource_types import GROUP, kind_of
from rehearsal.pulumi_cli.providers.azure_native.resources import Resources
from rehearsal.pulumi_cli.providers.azure_native.settings import Settings, read_settings
from rehearsal.pulumi_cli.providers.azure_native.sign_in import Account, places_of
from rehearsal.pulumi_cli.providers.base import Provider
from rehearsal.pulumi_cli.providers.engine_client import Engine
from rehearsal.pulumi_cli.providers.errors import ProviderError
from rehearsal.pulumi_cli.providers.pulumi_values import UNKNOWN, Json, is_unknown, secret_like
from rehearsal.pulumi_cli.providers.requests import (
    CheckAsked,
    Checked,
    CreateAsked,
    DeleteAsked,
    DiffAsked,
    Difference,
    Found,
    Made,
    ReadAsked,
    UpdateAsked,
)

CONNECTIONS = 64
"""Connections held open to Azure: Pulumi asks for so much at once only where its --parallel says so."""


class AzureNative(Provider):
    """azure-native 3.29 for one subscription of the embedded Azure."""

    package = "azure-native"
    version = "3.29.0"
    autonaming = True

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.settings = Settings("", "", "", "", "", "")
        self.stopped = asyncio.Event()
        self.manager: Manager | None = None
        self._group_locations: dict[str, str] = {}

    async def configure(self, config: Json) -> None:
        self.settings = read_settings(config)
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS))
        try:
            places = await places_of(session, self.settings)
            account = Account(session, self.settings, places)
            await account.token()
        except BaseException:
            await session.close()
            raise
        if self.manager is not None:
            await self.manager.session.close()
        self.manager = Manager(session, account, places.manager, self.stopped)

    async def check(self, asked: CheckAsked) -> Checked:
        kind = kind_of(asked.type)
        inputs = dict(asked.new)
        if kind.names[-1] not in inputs:
            inputs |= named(kind, asked)
        if kind.located and "location" not in inputs:
            location = await self._default_location(inputs, asked.old or {})
            inputs |= {"location": location} if location else {}
        return Checked(inputs, failures(kind, inputs))

    async def diff(self, asked: DiffAsked) -> Difference:
        return difference(kind_of(asked.type), asked.old_inputs, asked.new)

    async def create(self, asked: CreateAsked) -> Made:
        kind = kind_of(asked.type)
        if asked.preview:
            return Made("", secret_like(previewed(kind, asked.inputs), asked.inputs))
        resource_id = kind.id_of(reveal(asked.inputs), self.settings.subscription)
        if not kind.singleton and await self._resources.look(kind, resource_id) is not None:
            raise ProviderError(
                f"cannot create already existing resource '{resource_id}'; to let the stack have it, import it: "
                f"pulumi import {asked.type} {asked.name} '{resource_id}'"
            )
        return Made(resource_id, await self._resources.write(kind, resource_id, asked.inputs, asked.timeout))

    async def update(self, asked: UpdateAsked) -> Mapping[str, Any]:
        kind = kind_of(asked.type)
        if asked.preview:
            outputs: Json = secret_like(previewed(kind, asked.new, asked.old_outputs), asked.new)
            return outputs
        return await self._resources.write(kind, asked.id, asked.new, asked.timeout, exists=True)

    async def read(self, asked: ReadAsked) -> Found | None:
        kind = kind_of(asked.type)
        known = kind.inputs_of(asked.id)
        outputs = await self._resources.outputs(kind, asked.id)
        if outputs is None:
            return None
        inputs = imported(kind, known, outputs) if asked.inputs is None else refreshed(kind, asked.inputs, asked.outputs, outputs)
        return Found(asked.id, secret_like(outputs, inputs), inputs)

    async def delete(self, asked: DeleteAsked) -> None:
        kind = kind_of(asked.type)
        kind.inputs_of(asked.id)
        if not kind.singleton:
            await self._resources.remove(kind, asked.id, asked.timeout)

    async def invoke(self, token: str, arguments: Json) -> Mapping[str, Any]:
        return await answered(token, arguments, self.settings, self._manager.account)

    async def cancel(self) -> None:
        self.stopped.set()

    async def close(self) -> None:
        if self.manager is not None:
            await self.manager.session.close()
        await super().close()

    @property
    def _resources(self) -> Resources:
        return Resources(self._manager)

    @property
    def _manager(self) -> Manager:
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
            group_id = GROUP.format(subscriptionId=self.settings.subscription, resourceGroupName=name)
            found = await self._resources.look(kind_of(RESOURCE_GROUP), group_id)
            if found is None:
                return ""
            self._group_locations[name] = str(found.get("location", ""))
        return self._group_locations[name]
