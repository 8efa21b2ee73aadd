"""Resources outside Azure in a local up: keys and certificates, Kubernetes objects, and resources that wait for machines."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from rehearsal.azure.azure_native_ids import stable_uuid
from rehearsal.azure.scenario import operation_seconds
from rehearsal.azure.stack_records import StackRecord
from rehearsal.local_up.request_scheduler import Failure
from rehearsal.local_up.update_state import BlockedDeletion, Update, WorkSpan
from rehearsal.program.accepting_cloud import KUBERNETES, create_kubernetes_object
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.registration import Registration, RegistrationResponse, RegistrationResult, one_line


class LocalResources:
    """The resources of one update that exist only as records.

    A dynamic provider's own code runs here, with its old inputs and outputs, as the engine runs it. A provider that waits for the cloud
    takes as long as a machine takes to boot.
    """

    def __init__(self, update: Update, dynamic: DynamicProviders) -> None:
        self.update, self.dynamic = update, dynamic

    def put(self, registration: Registration) -> Future[RegistrationResponse]:
        """Create or update a resource; an error of its provider is in the response."""
        future: Future[RegistrationResponse] = Future()
        inputs = {key: value for key, value in registration.inputs.items() if key != DynamicProviders.KEY}
        record, began = self.update.stack.records.get(registration.urn), self.update.scheduler.cloud.now

        def end(answered: RegistrationResponse | Failure) -> None:
            self.update.spans[registration.urn] = WorkSpan(began, self.update.scheduler.cloud.now)
            if isinstance(answered, Failure):
                self.update.failures[registration.urn] = answered
                future.set_result(RegistrationResponse("", {}, RegistrationResult.FAIL))
                return
            self.update.record(registration, answered.id, {"inputs": inputs, "outputs": dict(answered.outputs)})
            future.set_result(answered)

        if registration.type.startswith(KUBERNETES):
            end(self._object(registration, inputs, record))
        elif self.dynamic.answers(registration.type, registration.inputs):
            end(self._provided(registration, record))
        else:
            answered = RegistrationResponse(record.id if record else stable_uuid(registration.type, registration.name), {})
            changed = record is None or record.kept is None or record.kept["inputs"] != inputs
            cloud = self.update.scheduler.cloud
            after_machines = registration.waits_for - {registration.parent}
            self.update.scheduler.after(
                operation_seconds(cloud, "vm.boot", registration.urn) if changed and after_machines else 0.0, lambda: end(answered)
            )
        return future

    def _object(self, registration: Registration, inputs: Mapping[str, Any], record: StackRecord | None) -> RegistrationResponse | Failure:
        """Return a Kubernetes object; a change of its name or namespace replaces it."""
        object_id, outputs = create_kubernetes_object(registration.name, inputs)
        if record is not None and record.id != object_id and record.protect and not self.update.allowed.opens(record):
            why = f"would be deleted and created again as {object_id}"
            self.update.guarded.append(
                BlockedDeletion(registration.type.rpartition(":")[2], registration.name, 0, why, "revert the change")
            )
            return Failure("Protected", why)
        return RegistrationResponse(object_id, outputs)

    def _provided(self, registration: Registration, record: StackRecord | None) -> RegistrationResponse | Failure:
        """Return a dynamic resource as its provider's code creates or updates it."""
        try:
            if record is None or record.kept is None:
                return RegistrationResponse(*self.dynamic.create(registration.inputs))
            updated = self.dynamic.update(record.id, record.kept["inputs"], record.kept["outputs"], registration.inputs)
        except Exception as error:  # noqa: BLE001 a provider may raise anything
            return Failure(type(error).__name__, one_line(error))
        return RegistrationResponse(updated.id, updated.outputs)
