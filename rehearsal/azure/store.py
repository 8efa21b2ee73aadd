"""Store of the model: resources, operations and planned events."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from rehearsal.azure.arm_id import GROUP_TYPE, SUBSCRIPTION_TYPE, ArmId, parse
from rehearsal.azure.clock import REFERENCE_START, Event, Events
from rehearsal.azure.errors import AzureError, not_modelled
from rehearsal.azure.preconditions import resource_not_found
from rehearsal.azure.references import Index, references
from rehearsal.azure.resource import FAILED, SUCCEEDED, Json, Operation, Resource
from rehearsal.azure.resource_type import ResourceType

if TYPE_CHECKING:
    from rehearsal.azure.cloud import Cloud

FINISH = "finish"
"""Name of the event at which an operation of known length ends."""


@lru_cache(maxsize=32_768)
def _uuid_of(text: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, text))


class Store:
    """Resources by key, operations by id, and planned events. Nothing in it waits, reads or writes.

    subscriptions are the existing ones; tenant is their Entra ID tenant. Draws depend only on the seed and their arguments, so that no
    request changes the luck of another.
    """

    def __init__(
        self,
        resource_types: Iterable[ResourceType],
        *,
        subscriptions: Iterable[str],
        tenant: str,
        seed: int = 0,
        now: float = REFERENCE_START,
    ) -> None:
        self.resource_types = {kind.type.lower(): kind for kind in resource_types}
        self.subscriptions = {one.lower() for one in subscriptions}
        self.tenant, self.seed = tenant, seed
        self.events = Events(now)
        self.resources: dict[str, Resource] = {}
        self.operations: dict[str, Operation] = {}
        self.index = Index()
        self.services: dict[str, Any] = {}
        """State that several resource types share, by name: address pools, capacity, scheduled events. It receives events whose key is
        its name."""
        self.watchers: dict[str, list[Callable[[Operation], None]]] = {}
        self.numbers = 0

    def resource_type_of(self, arm_id: ArmId) -> ResourceType:
        """Return a resource type by its name. Raises AzureError."""
        return self.resource_type_named(arm_id.type)

    def resource_type_named(self, resource_type: str) -> ResourceType:
        """Return a resource type by its name. Raises AzureError."""
        kind = self.resource_types.get(resource_type.lower())
        if kind is None:
            raise not_modelled(f"the resource type '{resource_type}'", resource_type)
        return kind

    def canonical(self, arm_id: ArmId) -> ArmId:
        """Return an id in Azure's spelling: published types, and names as first written. Raises AzureError."""
        found = self.resources.get(arm_id.key)
        if found is not None:
            return found.id
        kind = self.resource_type_of(arm_id)
        if kind.type == GROUP_TYPE:
            if not arm_id.group:
                raise resource_not_found(arm_id)
            return parse(f"/subscriptions/{arm_id.subscription}/resourceGroups/{arm_id.group}")
        last = kind.type.rpartition("/")[2] if arm_id.parent else f"providers/{kind.type}"
        return parse(f"{self._canonical_text(arm_id.parent or arm_id.scope)}/{last}/{arm_id.name}")

    def _canonical_text(self, text: str) -> str:
        """Return the canonical text of a parent, which need not be in the model."""
        arm_id = parse(text)
        if arm_id.type == SUBSCRIPTION_TYPE:
            return f"/subscriptions/{arm_id.subscription}"
        return self.canonical(arm_id).text if arm_id.type.lower() in self.resource_types else text

    def find(self, text: str) -> Resource | None:
        """Return the resource with an id in any case."""
        key = text.lower()
        return self.resources.get(key) or self._find_virtual(key)

    def _find_virtual(self, key: str) -> Resource | None:
        """Return a virtual resource, which is part of another one's state."""
        try:
            arm_id = parse(key)
        except AzureError:
            return None
        kind = self.resource_types.get(arm_id.type)
        return kind.find_virtual(cast("Cloud", self), arm_id) if kind is not None else None

    def get(self, text: str) -> Resource:
        """Return the resource with an id. Raises AzureError ResourceNotFound."""
        found = self.find(text)
        if found is None:
            raise resource_not_found(parse(text))
        return found

    def children(self, resource: Resource) -> Iterator[Resource]:
        """Yield the descendants of a resource, outer ones first."""
        for key in list(self.index.children(resource.key)):
            child = self.resources[key]
            yield child
            yield from self.children(child)

    def insert(self, arm_id: ArmId, body: Json, owner: str, *, sent: Json | None = None, state: Any = None) -> Resource:
        """Insert a resource that Azure creates itself (a deleted vault, an account's blob service), without checks."""
        known = {"id": arm_id.text, "name": arm_id.name, "type": arm_id.type}
        resource = Resource(arm_id, {**body, **known}, sent or {}, owner, self.now, self.now, state=state)
        self.resources[resource.key] = resource
        self.index.add(arm_id, references(resource.body, resource.key))
        return resource

    def remove(self, resource: Resource) -> None:
        """Remove a resource and its descendants, as Azure does itself, without checks."""
        self._remove(resource)

    @property
    def now(self) -> float:
        return self.events.now

    def relative(self, moment: float) -> float:
        """Return a moment as it would be had the model started at REFERENCE_START: draws and ids do not depend on the start."""
        return moment - self.events.start + REFERENCE_START

    def draw(self, *parts: object) -> float:
        """Return a number in [0, 1) that depends only on the seed and the arguments."""
        text = "/".join(map(str, (self.seed, *parts)))
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest()) / 2**56

    def stable_uuid(self, *parts: object) -> str:
        """Return a UUID that depends only on the arguments: principals, clients."""
        return _uuid_of("/".join(map(str, parts)))

    def begin_operation(self, key: str, name: str, location: str = "") -> Operation:
        """Start an operation on a resource; its resource type decides whether it locks the resource."""
        self.numbers += 1
        operation = Operation(self.stable_uuid("operation", self.seed, self.numbers), key, name, location, self.now)
        self.operations[operation.id] = operation
        return operation

    def finish_operation(self, operation: Operation, error: AzureError | None = None, result: Json | None = None) -> None:
        """End an operation and call its watchers."""
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
                self.set_provisioning_state(resource, operation.status)
        group = self.resources.get(parse(operation.key).group_id.lower())
        if group is not None and group.operation:
            self.resource_types[GROUP_TYPE.lower()].member_operation_ended(cast("Cloud", self), group)
        for callback in self.watchers.pop(operation.id, []):
            callback(operation)

    def set_provisioning_state(self, resource: Resource, state: str) -> None:
        """Write the provisioning state of a resource into its body."""
        has_state = resource.id.type != GROUP_TYPE and self.resource_types[resource.id.type.lower()].has_provisioning_state
        if has_state and "properties" in resource.body:
            resource.body["properties"]["provisioningState"] = state

    def watch(self, operation: Operation, callback: Callable[[Operation], None]) -> None:
        """Call a function when an operation ends; at once if it has ended."""
        if operation.running:
            self.watchers.setdefault(operation.id, []).append(callback)
        else:
            callback(operation)

    def step(self, until: float) -> bool:
        """Process the next event up to a time. Without one, advance to that time and return False."""
        event = self.events.pop_due(until)
        if event is None:
            return False
        self._happen(event)
        return True

    def advance(self, until: float) -> None:
        """Process all events up to a time in seconds since 1970."""
        while self.step(until):
            pass

    def run_until_idle(self, limit: float = 7 * 86_400) -> None:
        """Advance the time until no operation runs, at most limit seconds."""
        end = self.now + limit
        while (waiting := next((one for one in self.operations.values() if one.running), None)) is not None:
            while waiting.running:
                due = self.events.next_at()
                if due is None or due > end:
                    raise RuntimeError("operations run that nothing will end")
                self.step(due)

    def _happen(self, event: Event) -> None:
        if event.name == FINISH:
            self.finish_planned(self.operations[event.args[0]])
            return
        if event.key in self.services:
            self.services[event.key].event(cast("Cloud", self), event.name, event.args)
            return
        resource = self.resources.get(event.key)
        if resource is not None:
            self.resource_types[resource.id.type.lower()].event(cast("Cloud", self), resource, event.name, event.args)

    def finish_planned(self, operation: Operation) -> None:
        """End an operation of known length, at its planned end or earlier."""
        resource = self.resources.get(operation.key)
        if not operation.running:
            return
        if resource is None:
            # Its parent was deleted in the meantime, and the resource with it.
            self.finish_operation(operation, None if operation.name == "delete" else resource_not_found(parse(operation.key)))
            return
        error = None
        if operation.name != "delete":
            try:
                self.resource_types[resource.id.type.lower()].finished(cast("Cloud", self), resource, operation)
            except AzureError as failed:
                error = failed
        self.finish_operation(operation, error)

    def _remove(self, resource: Resource) -> None:
        for child in reversed(list(self.children(resource))):
            self._remove_one(child)
        self._remove_one(resource)

    def _remove_one(self, resource: Resource) -> None:
        del self.resources[resource.key]
        self.index.remove(resource.id)
        self.resource_types[resource.id.type.lower()].removed(cast("Cloud", self), resource)
