"""Update of azure-native resources in the model: no request, a PUT, or a replacement that may need approval."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from copy import deepcopy
from typing import Any

from rehearsal.azure.arm_id import parse
from rehearsal.azure.azure_native_bodies import from_arm, to_arm
from rehearsal.azure.azure_native_ids import AZURE, arm_id
from rehearsal.azure.azure_native_requests import MAINTAINED, SINGLETONS
from rehearsal.azure.errors import AzureError
from rehearsal.azure.resource import Json, Request, Resource
from rehearsal.azure.stack_records import StackRecord
from rehearsal.local_up.ignore_changes import with_old_values
from rehearsal.local_up.machine_counts import capacity_of_body, is_scale_set, machine_count, requested_count
from rehearsal.local_up.request_scheduler import Failure
from rehearsal.local_up.retained_values import retained_values
from rehearsal.local_up.update_state import BlockedDeletion, Update, WorkSpan
from rehearsal.program.registration import PriorResource, Registration, RegistrationResponse, RegistrationResult

FIXED = ("PropertyChangeNotAllowed", "InvalidResourceLocation")
"""Error codes of Azure for properties that are fixed at creation."""


class AzureResources:
    """The resources of azure-native in one update."""

    def __init__(self, update: Update) -> None:
        self.update = update
        self.cloud = update.scheduler.cloud

    def put(self, registration: Registration) -> Future[RegistrationResponse]:
        """Create, update or replace a resource. Errors of Azure are in the response; an invalid input raises, such as MissingInputError."""
        resource_id = arm_id(registration.type, registration.name, registration.inputs, registration.provider.get("subscriptionId"))
        record, existing = self.update.stack.records.get(registration.urn), self.cloud.find(resource_id)
        work = _ResourceUpdate(self, registration, resource_id)
        moved = self.cloud.find(record.id) if record is not None and record.id.lower() != resource_id.lower() else None
        if record is not None and moved is not None:
            work.replace(record, moved, f"its id becomes {resource_id}")
        elif existing is None:
            work.write()
        elif record is None and existing.owner != self.update.principal and registration.type.removeprefix(AZURE) not in SINGLETONS:
            work.finish(Failure("AlreadyExists", f"{resource_id} exists and does not belong to this stack (created by {existing.owner})"))
        elif self.unchanged(existing, work):
            work.finish(None)
        else:
            work.change(record, existing)
        return work.future

    def unchanged(self, existing: Resource, work: _ResourceUpdate) -> bool:
        """Return whether the resource has the same request as before, succeeded, and still has its machines."""
        if existing.body.get("properties", {}).get("provisioningState") in ("Failed", "Canceled"):
            return False
        if is_scale_set(existing) and capacity_of_body(work.body) != requested_count(existing):
            return False
        request = Request("PUT", existing.id, body=work.body, principal=self.update.principal)
        try:
            checked = (
                self.cloud.body_reader.checked(self.cloud.resource_type_of(existing.id), request) if self.cloud.body_reader else work.body
            )
        except AzureError:
            return False
        properties = {key: value for key, value in existing.sent.get("properties", {}).items() if key not in work.maintained}
        return checked == ({**existing.sent, "properties": properties} if properties else existing.sent)


class _ResourceUpdate:
    """Requests for one registration; future is its response."""

    def __init__(self, resources: AzureResources, registration: Registration, resource_id: str) -> None:
        self.update, self.cloud = resources.update, resources.cloud
        self.registration, self.id = registration, resource_id
        self.future: Future[RegistrationResponse] = Future()
        self.began = self.cloud.now
        self.maintained = tuple(
            name for name in MAINTAINED.get(registration.type.removeprefix(AZURE), ()) if name not in registration.inputs
        )
        self.body: Json = {}
        """The request body of the program's inputs."""
        self._set_body(self.cloud.find(resource_id))

    def write(self) -> None:
        """Send a PUT without regard to the existing resource."""
        self.update.scheduler.send(self._request(None), self.finish)

    def change(self, record: StackRecord | None, existing: Resource) -> None:
        """Run the program's hooks, then send a PUT for an existing resource; replace it where a property is fixed at creation.

        Pulumi's engine learns from the provider, before any hook, that a replacement is necessary, and then does not run these hooks.
        """
        if self.registration.before_update is not None:
            hooks = asyncio.ensure_future(self.registration.before_update(self._prior(existing)))
            hooks.add_done_callback(lambda done: self._after_hooks(done, record, existing))
        else:
            self._send_change(record, existing)

    def _after_hooks(self, hooks: asyncio.Future[str | None], record: StackRecord | None, existing: Resource) -> None:
        """Record a refusal, and continue: the update ends as refused, its model is dropped, and later hooks give their reasons, too."""
        if hooks.exception() is not None:
            self.future.set_exception(hooks.exception())
            return
        if reason := hooks.result():
            self.update.refused.append(reason)
        self._send_change(record, existing)

    def _send_change(self, record: StackRecord | None, existing: Resource) -> None:
        def ended(failure: Failure | None) -> None:
            if failure is not None and failure.code in FIXED and record is not None:
                self.replace(record, existing, failure.message)
            else:
                self.finish(failure)

        self.update.scheduler.send(self._request(existing), ended)

    def replace(self, record: StackRecord, old: Resource, why: str) -> None:
        """Delete the resource and create it again, as azure-native does for an unchanged name; refuse a protected resource."""
        lost = machine_count(old)
        if record.protect and not self.update.allowed.opens(record):
            reason = f"would be deleted and created again, because {why.rstrip('.')}"
            word = self.registration.type.rpartition(":")[2]
            self.update.guarded.append(BlockedDeletion(word, old.id.name, lost, reason, "revert the change"))
            self.finish(Failure("Protected", reason))
            return
        if lost:
            self.update.losses[old.id.name] = lost

        def deleted(failure: Failure | None) -> None:
            if failure is None or failure.code in ("ResourceNotFound", "NotFound"):
                self._set_body(None)
                self.write()
            else:
                self.finish(
                    Failure(failure.code, f"it must be replaced ({why}), and cannot be deleted: {failure.message}", failure.details)
                )

        self.update.scheduler.send(Request("DELETE", old.id, principal=self.update.principal), deleted)

    def finish(self, failure: Failure | None) -> None:
        """Record the result, and respond to the program."""
        found = self.cloud.find(self.id)
        self.update.spans[self.registration.urn] = WorkSpan(self.began, self.cloud.now)
        if found is not None and (failure is None or found.owner == self.update.principal):
            self.update.record(self.registration, found.id.text)
        if failure is not None or found is None:
            self.update.failures[self.registration.urn] = failure or Failure("ResourceNotFound", f"{self.id} does not exist any more")
            self.future.set_result(RegistrationResponse("", {}, RegistrationResult.FAIL))
            return
        self.future.set_result(RegistrationResponse(found.id.text, self._outputs(found)))

    def _set_body(self, existing: Resource | None) -> None:
        """Build the request body from the inputs; properties in ignore_changes retain their old values."""
        inputs: Mapping[str, Any] = self.registration.inputs
        paths, retained = self.registration.ignore_changes, self.update.retained
        retained.pop(self.registration.urn, None)
        if existing is not None and paths:
            inputs = with_old_values(inputs, from_arm(self.registration.type, existing.sent), paths)
            retained[self.registration.urn] = retained_values(self.registration.inputs, inputs, paths)
        self.body = to_arm(self.registration.type, inputs)

    def _prior(self, existing: Resource) -> PriorResource:
        """Return the resource before its update, as Pulumi's state has it."""
        inputs, outputs = from_arm(self.registration.type, existing.sent), self._outputs(existing)
        return PriorResource(existing.id.text, inputs, outputs)

    def _outputs(self, found: Resource) -> dict[str, Any]:
        view = self.cloud.resource_type_of(found.id).view(self.cloud, found, {})
        return {"name": found.id.name, **from_arm(self.registration.type, view)}

    def _request(self, existing: Resource | None) -> Request:
        """Return the PUT request; properties that other resources write have their current values."""
        current = {} if existing is None else {name: existing.properties[name] for name in self.maintained if name in existing.properties}
        body = {**self.body, "properties": {**self.body.get("properties", {}), **deepcopy(current)}} if current else self.body
        return Request("PUT", parse(self.id), body=body, principal=self.update.principal)
