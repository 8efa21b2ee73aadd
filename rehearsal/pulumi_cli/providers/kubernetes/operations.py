"""Creation, update, reading and deletion of objects in a reachable cluster.

https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/await/await.go
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lifecycle.kubernetes_api.connection import ApiResponse, ApiServerUnreachableError
from rehearsal.local_cluster.objects.kinds import ServedKind
from rehearsal.local_cluster.objects.results import CONFLICT, FORBIDDEN, NOT_FOUND, ObjectKey
from rehearsal.program.graph import reveal
from rehearsal.program.pulumi_values import Json, has_unknown
from rehearsal.pulumi_cli.providers.kubernetes.api_client import Report
from rehearsal.pulumi_cli.providers.kubernetes.cluster import SERVED_SECONDS, Cluster, kind_not_served, object_key
from rehearsal.pulumi_cli.providers.kubernetes.diff import declared_part
from rehearsal.pulumi_cli.providers.kubernetes.error_text import already_exists, masked, rejected
from rehearsal.pulumi_cli.providers.kubernetes.input_check import LABEL, PATH_SEGMENT
from rehearsal.pulumi_cli.providers.kubernetes.object_metadata import (
    DEFAULT_SECONDS,
    LAST_APPLIED,
    PATCH_FORCE,
    PROPAGATION,
    SERVER_FIELDS,
    annotation,
    id_of,
    is_true,
    parse_id,
    timeout_of,
)
from rehearsal.pulumi_cli.providers.kubernetes.settings import ProviderSettings
from rehearsal.pulumi_cli.providers.kubernetes.state import (
    CREATOR,
    DEFINITION,
    created_by_provider,
    field_manager,
    from_api,
    mark_secrets,
    outputs_of,
    ownership_patch,
    state_of,
    to_api,
)
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind, kind_of
from rehearsal.pulumi_cli.providers.kubernetes.wait import (
    ObjectNotDeletedError,
    ObjectNotReadyError,
    not_ready_now,
    until_gone,
    until_ready,
)
from rehearsal.pulumi_cli.providers.provider_interface import (
    CreateRequest,
    CreateResult,
    DeleteRequest,
    InitializationError,
    ProviderError,
    ReadRequest,
    ReadResult,
    UpdateRequest,
)

JSON_PATCH = "application/json-patch+json"
CONFLICT_RETRIES = 5
"""Attempts for a change that conflicts with another client's."""
POLICIES: Mapping[str, str] = {"orphan": "Orphan", "background": "Background"}
"""Policies for the objects that a deleted object owns; the default deletes them first:
https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion"""
WRITTEN_BY_OTHERS = ("deployment.kubernetes.io/revision", LAST_APPLIED)
"""Annotations that are never inputs."""
SERVER_ONLY = frozenset({"status"})

Object = Mapping[str, Any]
Warn = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class ObjectOperations:
    """Operations on one object; report shows a temporary line, warn a permanent one."""

    cluster: Cluster
    settings: ProviderSettings
    report: Report
    warn: Warn

    async def create(self, request: CreateRequest) -> CreateResult:
        """Create an object and wait until it is ready. In a preview the server computes the result, where it can."""
        kind, inputs = kind_of(request.type), request.inputs
        if request.preview and (has_unknown(inputs) or await self.cluster.served(kind) is None):
            return CreateResult("", inputs)
        served = await self._served(kind)
        item = _without_foreign_namespace(to_api(reveal(inputs)), served)
        key, manager = object_key(kind, item, served), field_manager(inputs, "")
        response = await self._post(served, key, item, manager, preview=request.preview)
        if request.preview and (response.status in (FORBIDDEN, NOT_FOUND) or _already_exists(response)):
            return CreateResult("", inputs)
        if _already_exists(response):
            raise already_exists(key)
        live: Object = await self._accepted(key, response, inputs)
        if request.preview:
            return CreateResult("", outputs_of({name: value for name, value in live.items() if name not in SERVER_ONLY}, inputs, manager))
        live = await self._ready(kind, live, inputs, manager, request.timeout)
        return CreateResult(id_of(live), outputs_of(live, inputs, manager))

    async def update(self, request: UpdateRequest) -> Mapping[str, Any]:
        """Update an object and wait until it is ready."""
        kind, inputs = kind_of(request.type), request.new
        if request.preview and (has_unknown(inputs) or await self.cluster.served(kind) is None):
            return inputs
        served = await self._served(kind)
        state = state_of(request.old_outputs, request.old_inputs)
        item, manager = _without_foreign_namespace(to_api(reveal(inputs)), served), field_manager(inputs, state.manager)
        key = object_key(kind, item, served)
        response = await self._put_or_apply(served, key, item, (manager, state.manager), preview=request.preview)
        if request.preview and response.status == FORBIDDEN:
            return inputs
        live: Object = await self._accepted(key, response, inputs)
        if not request.preview:
            live = await self._ready(kind, live, inputs, manager, request.timeout)
        return outputs_of(live, inputs, manager)

    async def read(self, request: ReadRequest) -> ReadResult | None:
        """Read an object: its state, and the part that the program declares, or all of it in an import. None where it does not exist."""
        kind = kind_of(request.type)
        if (served := await self.cluster.served(kind)) is None:
            return None
        key = _key_from_id(request.id, kind, served)
        response = await self.cluster.get(served, key, self.report)
        if response.status == NOT_FOUND:
            return None
        declared = request.inputs or {}
        live = await self._accepted(key, response, declared)
        shape = reveal(declared)
        inputs = mark_secrets(from_api(declared_part(live, to_api(shape)) if shape else importable(live)), declared)
        outputs = outputs_of(live, inputs, field_manager(inputs, state_of(request.outputs, declared).manager))
        if shape and (reasons := await not_ready_now(self.cluster, kind, live)):
            lines = (f"{key} is not ready", *reasons)
            raise InitializationError(request.id, outputs, inputs, [masked(one, declared) for one in lines])
        return ReadResult(request.id, outputs, inputs)

    async def delete(self, request: DeleteRequest) -> None:
        """Delete an object and wait for the end; an object that does not exist, or whose kind does not, counts as deleted."""
        kind = kind_of(request.type)
        if (served := await self.cluster.served(kind)) is None:
            return
        state = state_of(request.outputs, request.inputs)
        key = _key_from_id(request.id, kind, served)
        policy = POLICIES.get(annotation(state.inputs, PROPAGATION).lower(), "Foreground")
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy}
        response = await self.cluster.write("DELETE", served.item(key), {}, body, self.report)
        if response.status == NOT_FOUND:
            return
        if response.status >= 300:
            raise rejected(key, response, request.inputs)
        # After an immediate deletion the server returns the object's uid, otherwise the object.
        uid = response.body.get("details", {}).get("uid")
        gone = response.body if response.body.get("kind") == kind.kind else {**state.live, "metadata": {"name": key.name, "uid": uid}}
        try:
            await until_gone(self.cluster, kind, key, gone, timeout_of(state.inputs, request.timeout) or DEFAULT_SECONDS, self.report)
        except ObjectNotDeletedError as still:
            raise ProviderError(masked(str(still), request.inputs)) from still

    async def _served(self, kind: Kind) -> ServedKind:
        if (kind.api_version, kind.kind) not in self.cluster.kinds:
            await self.report(f"waiting until {kind} is served")
        if (served := await self.cluster.served(kind, SERVED_SECONDS)) is None:
            raise kind_not_served(kind)
        return served

    async def _post(self, served: ServedKind, key: ObjectKey, item: Json, manager: str, *, preview: bool) -> ApiResponse:
        """Create an object, again while its namespace does not exist yet; return the response."""
        loop = asyncio.get_running_loop()
        end, wait = loop.time() + SERVED_SECONDS, 0.2
        while True:
            if self.settings.upsert:
                response = await self.cluster.apply(served, key, item, manager, self.report, force=self._forced(item), dry=preview)
            else:
                query = {"fieldManager": CREATOR}
                response = await self.cluster.write("POST", served.collection(key.namespace), query, item, self.report, dry=preview)
            if response.status != NOT_FOUND or preview or loop.time() + wait > end:
                return response
            await self.report(f"{response.message}; retry in {wait:.1f} s")
            await asyncio.sleep(wait)
            wait = min(2 * wait, 1.0)

    async def _put_or_apply(
        self, served: ServedKind, key: ObjectKey, item: Json, managers: tuple[str, str], *, preview: bool
    ) -> ApiResponse:
        """Update an object, again after another client's change; return the response."""
        manager, before = managers
        for _ in range(CONFLICT_RETRIES):
            found = await self.cluster.get(served, key, self.report)
            if found.status == NOT_FOUND:
                raise ProviderError(
                    f"{key} no longer exists in the cluster; `pulumi refresh` removes it from the state, and the next update creates it"
                )
            if found.status >= 300:
                return found
            if item["kind"] == DEFINITION:
                response = await self._replace(served, key, item, found.body, manager, preview=preview)
            else:
                if not preview and (patch := ownership_patch(found.body, manager, before)):
                    taken = await self.cluster.write("PATCH", served.item(key), {}, patch, self.report, content_type=JSON_PATCH)
                    if taken.status == CONFLICT:
                        response = taken
                        continue
                    if taken.status >= 300:
                        return taken
                force = (
                    self._forced(item) or not found.body["metadata"].get("managedFields") or (preview and created_by_provider(found.body))
                )
                return await self.cluster.apply(served, key, item, manager, self.report, force=force, dry=preview)
            if response.status != CONFLICT:
                return response
        return response

    async def _replace(self, served: ServedKind, key: ObjectKey, item: Json, live: Object, manager: str, *, preview: bool) -> ApiResponse:
        """Replace a definition completely: an omitted version must disappear, and its objects must remain."""
        versioned = {**item, "metadata": {**item["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
        return await self.cluster.write("PUT", served.item(key), {"fieldManager": manager}, versioned, self.report, dry=preview)

    def _forced(self, item: Object) -> bool:
        return self.settings.patch_force or is_true(item, PATCH_FORCE)

    async def _accepted(self, key: ObjectKey, response: ApiResponse, inputs: Object) -> Json:
        """Return the object in a successful response, and report the server's warnings."""
        for text in response.warnings:
            await self.warn(masked(text, inputs))
        if response.status >= 300:
            raise rejected(key, response, inputs)
        return dict(response.body)

    async def _ready(self, kind: Kind, live: Object, inputs: Object, manager: str, timeout: float) -> Object:
        """Return the object once it is ready; InitializationError records it in the state where that does not happen."""
        try:
            return await until_ready(self.cluster, kind, live, timeout_of(inputs, timeout), self.report)
        except ObjectNotReadyError as failed:
            live, reasons = failed.live, failed.reasons
        except ApiServerUnreachableError as silent:
            reasons = (f"{kind.kind} {id_of(live)} was sent, but the server no longer answers: {silent}",)
        except asyncio.CancelledError:
            reasons = (f"{kind.kind} {id_of(live)} was cancelled during the wait; the next update continues it",)
        raise InitializationError(id_of(live), outputs_of(live, inputs, manager), inputs, [masked(one, inputs) for one in reasons])


def importable(live: Object) -> Json:
    """Return the part of a live object that a program would declare."""
    metadata = {name: value for name, value in live["metadata"].items() if name not in (*SERVER_FIELDS, "selfLink")}
    if annotations := {name: text for name, text in metadata.pop("annotations", {}).items() if name not in WRITTEN_BY_OTHERS}:
        metadata["annotations"] = annotations
    return {**{name: value for name, value in live.items() if name not in SERVER_ONLY}, "metadata": metadata}


def _key_from_id(text: str, kind: Kind, served: ServedKind) -> ObjectKey:
    """Return the key of an id; ProviderError for an invalid one."""
    namespace, name = parse_id(text)
    if PATH_SEGMENT.violation(name) or (namespace and LABEL.violation(namespace)):
        raise ProviderError(
            f"{text[:200]!r} is not an id of an object; the format is namespace/name, or name for a kind without namespaces"
        )
    if served.namespaced and not namespace:
        raise ProviderError(f"{text!r} has no namespace, which a {kind.kind} needs; give namespace/{name}")
    return ObjectKey(kind.kind, namespace if served.namespaced else "", name, kind.api_version)


def _without_foreign_namespace(item: Json, served: ServedKind) -> Json:
    """Return an object without a namespace that its kind does not have."""
    if served.namespaced or "namespace" not in item["metadata"]:
        return item
    return {**item, "metadata": {name: value for name, value in item["metadata"].items() if name != "namespace"}}


def _already_exists(response: ApiResponse) -> bool:
    return response.status == CONFLICT and response.body.get("reason") == "AlreadyExists"
