"""The embedded Azure: it handles every request as Azure would."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import Protocol

from rehearsal.azure.arm_id import GROUP_TYPE, SUBSCRIPTION_TYPE, ArmId, parse
from rehearsal.azure.client_operations import NO_CONTENT, accepted_status, client_operation, described, request_key
from rehearsal.azure.clock import REFERENCE_START
from rehearsal.azure.errors import AzureError, not_modelled
from rehearsal.azure.identity_body import identity_body
from rehearsal.azure.locations import check_location
from rehearsal.azure.preconditions import (
    being_deleted,
    busy,
    check_etag,
    check_identity,
    etag,
    merge_patch,
    reference_being_deleted,
    resource_not_found,
)
from rehearsal.azure.references import references
from rehearsal.azure.resource import SUCCEEDED, Json, Operation, Request, Resource, Response
from rehearsal.azure.resource_type import READS, ResourceType
from rehearsal.azure.store import FINISH, Store


class AdmissionCheck(Protocol):
    """Check of requests before the model handles them, such as throttling, an outage or a lock."""

    def admit(self, cloud: Cloud, request: Request, kind: ResourceType, /) -> Mapping[str, str]:
        """Return headers of the response. Raises AzureError to reject the request."""


class BodyReader(Protocol):
    """Reader of a body before its resource type sees it."""

    def checked(self, kind: ResourceType, request: Request, /) -> Json:
        """Return the body to store. Raises AzureError for a property that is unknown, of the wrong type, or read-only."""


class RequestCheck(Protocol):
    """Check of a PUT's body, before its resource type sees it."""

    def check(self, cloud: Cloud, arm_id: ArmId, body: Json, previous: Resource | None, /) -> None:
        """Raise AzureError for a value that Azure refuses."""


def _status(kind: ResourceType, request: Request, answer: Response) -> int:
    """Return the status for an answer that the official client of the request accepts."""
    running = answer.operation is not None and answer.operation.running
    return accepted_status(client_operation(request.method, kind.type, request.action), answer.status, running=running)


class Cloud(Store):
    """The model as its clients use it: the same requests at the same times give the same history.

    body_reader validates a body before its resource type sees it, and restrictions check the documented limits of its values.
    admission_checks run before everything else, in their order.
    """

    def __init__(
        self,
        resource_types: Iterable[ResourceType],
        *,
        subscriptions: Iterable[str],
        tenant: str,
        seed: int = 0,
        body_reader: BodyReader | None = None,
        restrictions: RequestCheck | None = None,
        admission_checks: Iterable[AdmissionCheck] = (),
        now: float = REFERENCE_START,
    ) -> None:
        super().__init__(resource_types, subscriptions=subscriptions, tenant=tenant, seed=seed, now=now)
        self.body_reader, self.restrictions, self.admission_checks = body_reader, restrictions, list(admission_checks)

    def handle(self, request: Request) -> Response:
        """Handle one request. Raises AzureError where Azure would reject it, and then nothing has changed."""
        kind = self.modelled_type(request.method, request.id.type, request.action)
        request = replace(request, id=self.canonical(request.id))
        headers: dict[str, str] = {}
        for check in self.admission_checks:
            headers |= check.admit(self, request, kind)
        self._look_up_scope(request.id)
        answer = kind.respond(self, request) if kind.virtual else self._answer(kind, request)
        status = answer.status if request.method in READS else _status(kind, request, answer)
        if status == answer.status and not headers:
            return answer
        return Response(status, answer.body, {**headers, **answer.headers}, answer.operation)

    def modelled_type(self, method: str, resource_type: str, action: str = "") -> ResourceType:
        """Return the type of a request. Raises AzureError NotModelled for an unknown type, or an unknown action of it."""
        kind = self.resource_types.get(resource_type.lower())
        unknown = kind is not None and (action or method == "POST") and action.lower() not in kind.paths_below(method)
        if kind is None or unknown:
            text = f"{method} {resource_type}/{action}" if action else f"{method} {resource_type}"
            raise not_modelled(described(text, request_key(method, resource_type, action)), action or resource_type)
        return kind

    def _answer(self, kind: ResourceType, request: Request) -> Response:
        match request.method:
            case "PUT":
                return self._put(kind, request)
            case "PATCH":
                return self._patch(kind, request)
            case "DELETE":
                return self._delete(kind, request)
            case "GET" | "HEAD":
                return self._get(kind, request)
            case "POST":
                return self._act(kind, request)
            case _:
                raise AzureError(405, "MethodNotAllowed", f"The HTTP method '{request.method}' is not supported at this location.")

    def handle_list(self, request: Request, resource_type: str) -> Iterator[Resource]:
        """Return a client's list of a type below the scope of the request. Raises AzureError for a missing scope.

        A scope of a type outside the model is assumed to exist, as in references.
        """
        kind = self.resource_type_named(resource_type)
        for check in self.admission_checks:
            check.admit(self, replace(request, action="list"), kind)
        self._look_up_scope(request.id)
        if request.id.type.lower() in self.resource_types:
            self.get(request.id.text)
        return self.list(request.id.text, resource_type)

    def list(self, scope: str, resource_type: str) -> Iterator[Resource]:
        """Return resources of a type below a scope (a subscription, a group, a parent), in creation order."""
        kind = self.resource_types.get(resource_type.lower())
        if kind is not None and kind.virtual:
            return kind.list_virtual(self, scope)
        below = scope.lower().rstrip("/") + "/"
        found = (self.resources[key] for key in list(self.index.of_type(resource_type.lower())) if key.startswith(below))
        return found if kind is None else chain(found, kind.list_virtual(self, scope))

    def _look_up_scope(self, arm_id: ArmId) -> None:
        if arm_id.subscription.lower() not in self.subscriptions:
            raise AzureError(404, "SubscriptionNotFound", f"The subscription '{arm_id.subscription}' could not be found.")
        if arm_id.type in (GROUP_TYPE, SUBSCRIPTION_TYPE):
            return
        if arm_id.group and self.find(arm_id.group_id) is None:
            raise AzureError(404, "ResourceGroupNotFound", f"Resource group '{arm_id.group}' could not be found.", target=arm_id.group)
        parent = arm_id.parent or (arm_id.scope if "/providers/" in arm_id.scope.lower() else None)
        if parent and parse(parent).type.lower() in self.resource_types and self.find(parent) is None:
            code = "ParentResourceNotFound"
            raise AzureError(404, code, f"Can not perform requested operation on nested resource. Parent resource '{parent}' not found.")

    def _put(self, kind: ResourceType, request: Request) -> Response:
        previous = self.resources.get(request.id.key)
        check_etag(request, previous)
        body = self.body_reader.checked(kind, request) if self.body_reader else dict(request.body or {})
        if not kind.always_global:
            check_location(kind.type, body)
        check_identity(request.id, body, previous)
        self._check_locks(kind, request.id, previous)
        if self.restrictions is not None:
            self.restrictions.check(self, request.id, body, previous)
        kind.check(self, request.id, body, previous)
        complete = self._completed(kind, request.id, body, previous)
        targets = references(complete, request.id.key)
        for target in targets:
            if not self._exists(target):
                raise kind.missing_reference_error(request.id, target)
            if self._leaving(target.lower()) is not None:
                raise reference_being_deleted(request.id, target)
        return self._store(kind, request, body, complete, targets)

    def _completed(self, kind: ResourceType, arm_id: ArmId, body: Json, previous: Resource | None) -> Json:
        name = "/".join(arm_id.names) if arm_id.type.startswith("Microsoft.Compute/virtualMachineScaleSets/") else arm_id.name
        known = {"id": arm_id.text, "name": name, "type": arm_id.type}
        complete = {**kind.complete(self, arm_id, body, previous), **known}
        if isinstance(identity := complete.get("identity"), dict):
            complete["identity"] = identity_body(self, arm_id.key, identity)
        return complete

    def _store(self, kind: ResourceType, request: Request, body: Json, complete: Json, targets: Iterable[str]) -> Response:
        previous = self.resources.get(request.id.key)
        before = previous.body if previous else None
        if previous is None:
            resource = Resource(request.id, complete, body, request.principal, self.now, self.now)
        else:
            resource = previous
            saved = (previous.body, previous.sent, previous.changed, previous.version)
            resource.body, resource.sent, resource.changed = complete, body, self.now
            resource.version += 1
        self.resources[resource.key] = resource
        self.index.add(resource.id, targets)
        try:
            kind.accepted(self, resource, before)
        except AzureError:
            if previous is None:
                del self.resources[resource.key]
                self.index.remove(resource.id)
            else:
                resource.body, resource.sent, resource.changed, resource.version = saved
                self.index.add(resource.id, references(resource.body, resource.key))
            raise
        return self._begun(kind, resource, before)

    def _begun(self, kind: ResourceType, resource: Resource, before: Json | None) -> Response:
        """Start the operation of a stored PUT, or end it at once if it takes no time."""
        status = 201 if before is None else 200
        seconds = kind.put_seconds(self, resource, before)
        if seconds == 0:
            self.set_provisioning_state(resource, SUCCEEDED)
            operation = Operation("", resource.key, "put", resource.location, self.now, self.now)
            kind.finished(self, resource, operation)
            return Response(status, kind.view(self, resource, {}))
        operation = self.begin_operation(resource.key, "put", resource.location)
        resource.operation = operation.id
        self.set_provisioning_state(resource, "Creating" if before is None else "Updating")
        self.schedule_completion(operation, seconds)
        kind.begun(self, resource, operation)
        return Response(status, kind.view(self, resource, {}), operation=operation)

    def schedule_completion(self, operation: Operation, seconds: float | None) -> None:
        """Plan the end of an operation. None is for resource types that end their operations themselves."""
        if seconds is not None:
            self.events.after(seconds, operation.key, FINISH, operation.id)

    def _patch(self, kind: ResourceType, request: Request) -> Response:
        previous = self.get(request.id.text)
        body = merge_patch(kind.patch_base(self, previous), request.body or {})
        return self._put(
            kind,
            Request("PUT", request.id, "", request.api_version, body, request.query, request.if_match, "", request.principal),
        )

    def _delete(self, kind: ResourceType, request: Request) -> Response:
        resource = self.resources.get(request.id.key)
        if resource is None:
            if (part := self.find(request.id.text)) is not None:
                raise kind.in_use_error(part, [str(part.body.get("managedBy"))])
            known = client_operation("DELETE", kind.type)
            if known is None or NO_CONTENT in known.statuses:
                return Response(NO_CONTENT)
            raise resource_not_found(request.id)
        check_etag(request, resource)
        if resource.operation and self.operations[resource.operation].name == "delete":
            return Response(202, operation=self.operations[resource.operation])
        self._check_locks(kind, request.id, resource, deleting=True)
        answer = kind.delete_response(self, resource, request)
        if answer is not None:
            return answer
        shown = dict(kind.view(self, resource, {})) if kind.delete_returns_body else None
        operation = self.delete(resource)
        return Response(202, operation=operation) if operation else Response(200, shown)

    def delete(self, resource: Resource) -> Operation | None:
        """Start to delete a resource and return the operation; None if it is deleted at once. Raises AzureError if it must stay."""
        self.check_deletion(resource)
        kind = self.resource_types[resource.id.type.lower()]
        operation = self.begin_operation(resource.key, "delete", resource.location)
        resource.operation = operation.id
        self.set_provisioning_state(resource, "Deleting")
        kind.deleting(self, resource, operation)
        seconds = kind.delete_seconds(self, resource)
        if seconds == 0:
            self.finish_operation(operation)
            return None
        self.schedule_completion(operation, seconds)
        return operation

    def check_deletion(self, resource: Resource) -> None:
        """Raise AzureError if the resource type forbids the deletion, or a resource outside of it refers to it."""
        family = [resource, *self.children(resource)]
        keys = {one.key for one in family}
        for one in family:
            kind = self.resource_types[one.id.type.lower()]
            kind.check_deletable(self, one)
            if kind.deletable_in_use:
                continue
            users = [self.resources[user] for user in self.index.users(one.key) if user not in keys]
            holding = [user.id.text for user in users if self.resource_types[user.id.type.lower()].blocks_deletion(user, one)]
            if holding:
                raise kind.in_use_error(one, holding)

    def _get(self, kind: ResourceType, request: Request) -> Response:
        resource = self.get(request.id.text)
        if request.action:
            read = kind.gets[request.action.lower()]
            return read(self, resource, request)
        return Response(200, kind.view(self, resource, request.query), {"ETag": etag(resource)})

    def _act(self, kind: ResourceType, request: Request) -> Response:
        return kind.actions[request.action.lower()](self, self.get(request.id.text), request)

    def _check_locks(self, kind: ResourceType, arm_id: ArmId, resource: Resource | None, *, deleting: bool = False) -> None:
        """Raise AzureError if another operation locks the resource, or if it or what contains it is being deleted."""
        leaving = self._leaving(arm_id.key)
        if leaving is not None and not deleting:
            raise being_deleted(leaving.id)
        if resource is not None and resource.operation and not (deleting or kind.interruptible):
            raise busy(arm_id, self.operations[resource.operation])
        if kind.locks_with_parent and arm_id.parent:
            held = self.find(arm_id.parent)
            holders = [held, *(self.resources[key] for key in self.index.children(arm_id.parent.lower()))] if held else []
            for holder in holders:
                if holder is not None and holder.operation and holder.key != arm_id.key and self._same_lock(kind, holder):
                    raise busy(holder.id, self.operations[holder.operation])

    def _leaving(self, key: str) -> Resource | None:
        """Return the outermost resource that is being deleted of a key's resource and what contains it; None without one."""
        leaving = None
        while key:
            found = self.resources.get(key)
            if found is not None and found.operation and self.operations[found.operation].name == "delete":
                leaving = found
            key = key.rpartition("/")[0]
        return leaving

    def _same_lock(self, kind: ResourceType, holder: Resource) -> bool:
        other = self.resource_types[holder.id.type.lower()]
        return other is kind or other.locks_with_parent or holder.id.type.lower() == kind.type.lower().rpartition("/")[0]

    def _exists(self, target: str) -> bool:
        """Return whether an id names a resource, an item of one (a load balancer's backend pool), or a type outside the model."""
        try:
            arm_id = parse(target)
        except AzureError:
            return True
        if self.find(target) is not None:
            return True
        kind = self.resource_types.get(arm_id.type.lower())
        if kind is not None:
            return kind.is_built_in(self, arm_id)
        parent = arm_id.parent
        owner = self.find(parent) if parent else None
        if owner is None:
            return parent is None or parse(parent).type.lower() not in self.resource_types
        items = owner.properties.get(arm_id.type.rpartition("/")[2])
        if not isinstance(items, list):
            return False
        return any(isinstance(item, Mapping) and str(item.get("name", "")).lower() == arm_id.name.lower() for item in items)
