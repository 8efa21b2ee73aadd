"""Decides what a program's wish means to Azure: nothing, a PUT, a replacement, or something that only a person can allow."""

from __future__ import annotations

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
from rehearsal.local_up.update import BlockedDeletion, Update, WorkSpan
from rehearsal.program.registration import Registration, RegistrationResponse, RegistrationResult

FIXED = ("PropertyChangeNotAllowed", "InvalidResourceLocation")
"""Codes with which Azure says that something is decided at creation."""


class AzureResources:
    """The resources of azure-native in one update."""

    def __init__(self, update: Update) -> None:
        self.update = update
        self.cloud = update.caller.cloud

    def put(self, asked: Registration) -> Future[RegistrationResponse]:
        """Make Azure what the program wants; MissingInput and its like raise, everything that Azure says is in the answer."""
        wanted = arm_id(asked.type, asked.name, asked.inputs, asked.provider.get("subscriptionId"))
        record, existing = self.update.stack.records.get(asked.urn), self.cloud.find(wanted)
        work = _ResourceUpdate(self, asked, wanted)
        moved = self.cloud.find(record.id) if record is not None and record.id.lower() != wanted.lower() else None
        if record is not None and moved is not None:
            work.replace(record, moved, f"its id becomes {wanted}")
        elif existing is None:
            work.write()
        elif record is None and existing.owner != self.update.principal and asked.type.removeprefix(AZURE) not in SINGLETONS:
            work.end(Failure("AlreadyExists", f"{wanted} exists already and is not this stack's (made by {existing.owner})"))
        elif self.unchanged(existing, work):
            work.end(None)
        else:
            work.change(record, existing)
        return work.future

    def unchanged(self, existing: Resource, work: _ResourceUpdate) -> bool:
        """Whether Azure was asked for just this before, reached it, and still has the machines."""
        if existing.body.get("properties", {}).get("provisioningState") in ("Failed", "Canceled"):
            return False
        if is_scale_set(existing) and capacity_of_body(work.said) != requested_count(existing):
            return False
        request = Request("PUT", existing.id, body=work.said, principal=self.update.principal)
        try:
            checked = (
                self.cloud.body_reader.checked(self.cloud.resource_type_of(existing.id), request) if self.cloud.body_reader else work.said
            )
        except AzureError:
            return False
        properties = {key: value for key, value in existing.sent.get("properties", {}).items() if key not in work.maintained}
        return checked == ({**existing.sent, "properties": properties} if properties else existing.sent)


class _ResourceUpdate:
    """What is done for one registration; future is its answer."""

    def __init__(self, resources: AzureResources, asked: Registration, wanted: str) -> None:
        self.update, self.cloud = resources.update, resources.cloud
        self.asked, self.id = asked, wanted
        self.future: Future[RegistrationResponse] = Future()
        self.began = self.cloud.now
        self.maintained = tuple(name for name in MAINTAINED.get(asked.type.removeprefix(AZURE), ()) if name not in asked.inputs)
        self.said: Json = {}
        """The body that the program's inputs come to."""
        self._say(self.cloud.find(wanted))

    def write(self) -> None:
        """Put it, whatever is there."""
        self.update.caller.send(self._request(None), self.end)

    def change(self, record: StackRecord | None, existing: Resource) -> None:
        """Put it over what is there; where Azure fixed something at creation, replace it."""
        before = machine_count(existing)
        if is_scale_set(existing) and capacity_of_body(self.said) < before:
            self.update.losses[existing.id.name] = before - capacity_of_body(self.said)

        def ended(failure: Failure | None) -> None:
            if failure is not None and failure.code in FIXED and record is not None:
                self.replace(record, existing, failure.message)
            else:
                self.end(failure)

        self.update.caller.send(self._request(existing), ended)

    def replace(self, record: StackRecord, old: Resource, why: str) -> None:
        """Delete and make anew, as azure-native does, because the name is the same; refused for what is protected."""
        going = machine_count(old)
        if record.protect and not self.update.allowed.opens(record):
            reason = f"would be deleted and made anew, because {why.rstrip('.')}"
            word = self.asked.type.rpartition(":")[2]
            self.update.guarded.append(BlockedDeletion(word, old.id.name, going, reason, "take the change back"))
            self.end(Failure("Protected", reason))
            return
        if going:
            self.update.losses[old.id.name] = going

        def deleted(failure: Failure | None) -> None:
            if failure is None or failure.code in ("ResourceNotFound", "NotFound"):
                self._say(None)
                self.write()
            else:
                self.end(Failure(failure.code, f"it must be made anew ({why}), and cannot be deleted: {failure.message}", failure.details))

        self.update.caller.send(Request("DELETE", old.id, principal=self.update.principal), deleted)

    def end(self, failure: Failure | None) -> None:
        """Record what has become of it, and answer the program."""
        found = self.cloud.find(self.id)
        self.update.spans[self.asked.urn] = WorkSpan(self.began, self.cloud.now)
        if found is not None and (failure is None or found.owner == self.update.principal):
            self.update.record(self.asked, found.id.text)
        if failure is not None or found is None:
            self.update.failures[self.asked.urn] = failure or Failure("ResourceNotFound", f"{self.id} is gone")
            self.future.set_result(RegistrationResponse("", {}, RegistrationResult.FAIL))
            return
        view = self.cloud.resource_type_of(found.id).view(self.cloud, found, {})
        outputs = {"name": found.id.name, **from_arm(self.asked.type, view)}
        self.future.set_result(RegistrationResponse(found.id.text, outputs))

    def _say(self, existing: Resource | None) -> None:
        """Make a body of the inputs; what the program ignores stays as it was asked for."""
        inputs: Mapping[str, Any] = self.asked.inputs
        if existing is not None and self.asked.ignore_changes:
            inputs = with_old_values(inputs, from_arm(self.asked.type, existing.sent), self.asked.ignore_changes)
        self.said = to_arm(self.asked.type, inputs)

    def _request(self, existing: Resource | None) -> Request:
        """The PUT: what other resources write is sent as Azure has it."""
        kept = {} if existing is None else {name: existing.properties[name] for name in self.maintained if name in existing.properties}
        body = {**self.said, "properties": {**self.said.get("properties", {}), **deepcopy(kept)}} if kept else self.said
        return Request("PUT", parse(self.id), body=body, principal=self.update.principal)
