"""Backend of a local up: it passes each registration to the model or to local resources, and skips dependants of a failure."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from typing_extensions import override

from rehearsal.azure.azure_native_ids import AZURE
from rehearsal.local_up.azure_resource_updates import AzureResources
from rehearsal.local_up.local_resource_updates import LocalResources
from rehearsal.local_up.update_state import Update
from rehearsal.program.accepting_cloud import AcceptingCloud
from rehearsal.program.dispatch import LiveBackend
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.monitor import STACK_TYPE
from rehearsal.program.registration import Registration, RegistrationResponse, RegistrationResult


class ModelBackend(LiveBackend):
    """The model and the local resources, for one update of one stack.

    As with `pulumi up --continue-on-error`, a failure stops only the resources that depend on it.
    """

    def __init__(self, update: Update, *, tenant: str) -> None:
        self.update = update
        self._azure = AzureResources(update)
        self._signed_in = AcceptingCloud(tenant=tenant)

    @override
    def declare(self, registration: Registration, /) -> RegistrationResult:
        update = self.update
        update.declared.add(registration.urn)
        failed = sorted(urn for urn in registration.waits_for if urn in update.failures or urn in update.skipped)
        if failed:
            first = failed[0]
            update.skipped[registration.urn] = update.skipped.get(first, first)
            return RegistrationResult.SKIP
        if not registration.custom and registration.type != STACK_TYPE:
            update.record(registration, "")
        return RegistrationResult.SUCCESS

    @override
    def put(self, registration: Registration, dynamic: DynamicProviders, /) -> Future[RegistrationResponse]:
        if registration.type.startswith(AZURE):
            return self._azure.put(registration)
        return LocalResources(self.update, dynamic).put(registration)

    @override
    def invoke(self, token: str, args: Mapping[str, Any], provider: Mapping[str, Any], /) -> Mapping[str, Any]:
        return self._signed_in.invoke(token, args, provider)

    @override
    def advance(self) -> bool:
        return self.update.scheduler.advance()
