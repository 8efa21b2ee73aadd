"""Decides what a program's wish means where Azure has no part in it: keys and certificates, Kubernetes objects, and what is waited for."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from rehearsal.azure.azure_native_ids import stable_uuid
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.stack_records import StackRecord
from rehearsal.local_up.request_scheduler import Failure
from rehearsal.local_up.update import BlockedDeletion, Update, WorkSpan
from rehearsal.program.accepting_cloud import KUBERNETES, create_kubernetes_object
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.registration import Registration, RegistrationResponse, RegistrationResult, one_line


class LocalResources:
    """The resources of one update that are kept as records alone.

    A dynamic provider's own code runs here, with its old inputs and outputs, as the engine would run it; one that stands for something to
    wait for takes as long as a machine takes to boot.
    """

    def __init__(self, update: Update, dynamic: DynamicProviders) -> None:
        self.update, self.dynamic = update, dynamic

    def put(self, asked: Registration) -> Future[RegistrationResponse]:
        """Make or change it; what goes wrong in a provider is in the answer."""
        future: Future[RegistrationResponse] = Future()
        inputs = {key: value for key, value in asked.inputs.items() if key != DynamicProviders.KEY}
        record, began = self.update.stack.records.get(asked.urn), self.update.caller.cloud.now

        def end(answered: RegistrationResponse | Failure) -> None:
            self.update.spans[asked.urn] = WorkSpan(began, self.update.caller.cloud.now)
            if isinstance(answered, Failure):
                self.update.failures[asked.urn] = answered
                future.set_result(RegistrationResponse("", {}, RegistrationResult.FAIL))
                return
            self.update.record(asked, answered.id, {"inputs": inputs, "outputs": dict(answered.outputs)})
            future.set_result(answered)

        if asked.type.startswith(KUBERNETES):
            end(self._object(asked, inputs, record))
        elif self.dynamic.answers(asked.type, asked.inputs):
            end(self._provided(asked, record))
        else:
            answered = RegistrationResponse(record.id if record else stable_uuid(asked.type, asked.name), {})
            changed = record is None or record.kept is None or record.kept["inputs"] != inputs
            cloud = self.update.caller.cloud
            after_machines = asked.waits_for - {asked.parent}
            self.update.caller.after(
                operation_seconds(cloud, "vm.boot", asked.urn) if changed and after_machines else 0.0, lambda: end(answered)
            )
        return future

    def _object(self, asked: Registration, inputs: Mapping[str, Any], record: StackRecord | None) -> RegistrationResponse | Failure:
        """A Kubernetes object, which is another one when its name or namespace changes."""
        object_id, outputs = create_kubernetes_object(asked.name, inputs)
        if record is not None and record.id != object_id and record.protect and not self.update.allowed.opens(record):
            why = f"would be deleted and made anew as {object_id}"
            self.update.guarded.append(BlockedDeletion(asked.type.rpartition(":")[2], asked.name, 0, why, "take the change back"))
            return Failure("Protected", why)
        return RegistrationResponse(object_id, outputs)

    def _provided(self, asked: Registration, record: StackRecord | None) -> RegistrationResponse | Failure:
        """A dynamic resource, by its provider's own judgement."""
        try:
            if record is None or record.kept is None:
                return RegistrationResponse(*self.dynamic.create(asked.inputs))
            updated = self.dynamic.update(record.id, record.kept["inputs"], record.kept["outputs"], asked.inputs)
        except Exception as error:  # noqa: BLE001 a provider may raise anything
            return Failure(type(error).__name__, one_line(error))
        return RegistrationResponse(updated.id, updated.outputs)
