"""Keeps what there is and what goes on: resources, operations, and what will happen to them as time passes."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from rehearsal.azure.arm_id import GROUP_TYPE, ArmId, parse
from rehearsal.azure.clock import EPOCH, Event, Events
from rehearsal.azure.errors import AzureError
from rehearsal.azure.kind import Kind
from rehearsal.azure.preconditions import missing
from rehearsal.azure.references import Index
from rehearsal.azure.resource import FAILED, SUCCEEDED, Json, Operation, Resource

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

FINISH = "finish"
"""Name of the event at which an operation of known length ends."""


class Ledger:
    """Resources by key, operations by id, events to come. Nothing in it waits, reads or writes.

    subscriptions are those that exist; tenant is their Entra ID tenant. draws come from the seed and from what is asked for alone, so that
    no request changes another's luck.
    """

    def __init__(self, kinds: Iterable[Kind], *, subscriptions: Iterable[str], tenant: str, seed: int = 0, now: float = EPOCH) -> None:
        self.kinds = {kind.type.lower(): kind for kind in kinds}
        self.subscriptions = {one.lower() for one in subscriptions}
        self.tenant, self.seed = tenant, seed
        self.events = Events(now)
        self.resources: dict[str, Resource] = {}
        self.operations: dict[str, Operation] = {}
        self.index = Index()
        self.services: dict[str, Any] = {}
        """What several kinds share, by name: address pools, capacity, scheduled events."""
        self.watchers: dict[str, list[Callable[[Operation], None]]] = {}
        self._numbers = 0

    def kind_of(self, arm_id: ArmId) -> Kind:
        """The kind of an id's type; AzureError where the model has none."""
        kind = self.kinds.get(arm_id.type.lower())
        if kind is None:
            raise AzureError(
                404,
                "InvalidResourceType",
                f"The resource type '{arm_id.type}' could not be found in the embedded Azure; docs/embedded-azure.md lists those that are.",
                target=arm_id.type,
            )
        return kind

    def find(self, text: str) -> Resource | None:
        """The resource with an id, in whatever capitals."""
        return self.resources.get(text.lower())

    def get(self, text: str) -> Resource:
        """The resource with an id; AzureError ResourceNotFound."""
        found = self.find(text)
        if found is None:
            raise missing(parse(text))
        return found

    def children(self, resource: Resource) -> Iterator[Resource]:
        """Resources that are part of another, the inner ones after the outer."""
        for key in list(self.index.children(resource.key)):
            child = self.resources[key]
            yield child
            yield from self.children(child)

    @property
    def now(self) -> float:
        return self.events.now

    def draw(self, *parts: object) -> float:
        """A number in [0, 1) that depends on the seed and on what it is drawn for, and on nothing else."""
        text = "/".join(map(str, (self.seed, *parts)))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest()) / 2**56

    def stable_uuid(self, *parts: object) -> str:
        """A UUID that depends on what it stands for alone: principals, clients."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, parts))))

    def begin(self, key: str, name: str, location: str = "") -> Operation:
        """Begin an operation on a resource; the resource is held by it only where the kind says so."""
        self._numbers += 1
        operation = Operation(self.stable_uuid("operation", self.seed, self._numbers), key, name, location, self.now)
        self.operations[operation.id] = operation
        return operation

    def finish(self, operation: Operation, error: AzureError | None = None, result: Json | None = None) -> None:
        """End an operation, and tell those who wait for it."""
        operation.ended = self.now
        operation.status = FAILED if error else SUCCEEDED
        operation.error = error.body() if error else None
        operation.result = result
        resource = self.resources.get(operation.key)
        if resource is not None and resource.operation == operation.id:
            resource.operation = ""
            if operation.name == "delete" and error is None:
                self._remove(resource)
            else:
                self.settle(resource, operation.status)
        for tell in self.watchers.pop(operation.id, []):
            tell(operation)

    def settle(self, resource: Resource, state: str) -> None:
        """Write the provisioning state of a resource into its body."""
        if resource.id.type != GROUP_TYPE and "properties" in resource.body:
            resource.body["properties"]["provisioningState"] = state

    def watch(self, operation: Operation, tell: Callable[[Operation], None]) -> None:
        """Be told when an operation ends; at once where it has."""
        if operation.running:
            self.watchers.setdefault(operation.id, []).append(tell)
        else:
            tell(operation)

    def step(self, until: float) -> bool:
        """Let the next event up to a moment happen; False where none is due, and then it is that moment."""
        event = self.events.pop_due(until)
        if event is None:
            return False
        self._happen(event)
        return True

    def advance(self, until: float) -> None:
        """Let everything happen up to a moment, in seconds since 1970."""
        while self.step(until):
            pass

    def settle_all(self, limit: float = 7 * 86_400) -> None:
        """Let time go on until no operation runs, at most limit seconds."""
        end = self.now + limit
        while any(operation.running for operation in self.operations.values()):
            due = self.events.next_at()
            if due is None or due > end:
                raise RuntimeError("operations run that nothing will end")
            self.step(due)

    def _happen(self, event: Event) -> None:
        if event.name == FINISH:
            self._finish_planned(self.operations[event.args[0]])
            return
        resource = self.resources.get(event.key)
        if resource is not None:
            self.kinds[resource.id.type.lower()].event(cast("Cloud", self), resource, event.name, event.args)

    def _finish_planned(self, operation: Operation) -> None:
        resource = self.resources.get(operation.key)
        if not operation.running or resource is None:
            return
        error = None
        if operation.name != "delete":
            try:
                self.kinds[resource.id.type.lower()].finished(cast("Cloud", self), resource, operation)
            except AzureError as failed:
                error = failed
        self.finish(operation, error)

    def _remove(self, resource: Resource) -> None:
        for child in reversed(list(self.children(resource))):
            self._remove_one(child)
        self._remove_one(resource)

    def _remove_one(self, resource: Resource) -> None:
        del self.resources[resource.key]
        self.index.remove(resource.id)
        self.kinds[resource.id.type.lower()].removed(cast("Cloud", self), resource)
