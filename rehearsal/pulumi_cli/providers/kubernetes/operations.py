"""How objects are made, changed, read and deleted in a cluster that can be request.

https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/await/await.go
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.local_cluster.objects.connection import ApiResponse, ApiServerUnreachableError
from rehearsal.local_cluster.objects.kinds import ServedKind
from rehearsal.local_cluster.objects.results import CONFLICT, FORBIDDEN, NOT_FOUND, ObjectKey
from rehearsal.program.graph import reveal
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
from rehearsal.pulumi_cli.providers.pulumi_values import Json, has_unknown

JSON_PATCH = "application/json-patch+json"
CONFLICT_RETRIES = 5
"""How often a change is tried anew that somebody else's change came before."""
POLICIES: Mapping[str, str] = {"orphan": "Orphan", "background": "Background"}
"""What becomes of the objects that a deleted one owns; deleted before it unless it says otherwise:
https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion"""
WRITTEN_BY_OTHERS = ("deployment.kubernetes.io/revision", LAST_APPLIED)
"""Annotations that are nobody's input."""
SERVER_ONLY = frozenset({"status"})

Object = Mapping[str, Any]
Warn = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class ObjectOperations:
    """What is done with one object; report shows a line while it is under way, warn one that stays."""

    cluster: Cluster
    settings: ProviderSettings
    report: Report
    warn: Warn

    async def create(self, request: CreateRequest) -> CreateResult:
        """Make an object and wait until it is ready. In a preview the server says what would be made, where it can."""
        kind, inputs = kind_of(request.type), request.inputs
        if request.preview and (has_unknown(inputs) or await self.cluster.served(kind) is None):
            return CreateResult("", inputs)
        served = await self._served(kind)
        item = _without_foreign_namespace(to_api(reveal(inputs)), served)
        key, manager = object_key(kind, item, served), field_manager(inputs, "")
        response = await self._made(served, key, item, manager, preview=request.preview)
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
        """Change an object and wait until it is ready again."""
        kind, inputs = kind_of(request.type), request.new
        if request.preview and (has_unknown(inputs) or await self.cluster.served(kind) is None):
            return inputs
        served = await self._served(kind)
        state = state_of(request.old_outputs, request.old_inputs)
        item, manager = _without_foreign_namespace(to_api(reveal(inputs)), served), field_manager(inputs, state.manager)
        key = object_key(kind, item, served)
        response = await self._changed(served, key, item, (manager, state.manager), preview=request.preview)
        if request.preview and response.status == FORBIDDEN:
            return inputs
        live: Object = await self._accepted(key, response, inputs)
        if not request.preview:
            live = await self._ready(kind, live, inputs, manager, request.timeout)
        return outputs_of(live, inputs, manager)

    async def read(self, request: ReadRequest) -> ReadResult | None:
        """The object as it is, and what of it the program spoke of; all of it where the program did not yet. None where it is gone."""
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
            said = (f"{key} is not ready", *reasons)
            raise InitializationError(request.id, outputs, inputs, [masked(one, declared) for one in said])
        return ReadResult(request.id, outputs, inputs)

    async def delete(self, request: DeleteRequest) -> None:
        """Delete an object and wait until it is gone; one that is gone, or whose kind is, is deleted."""
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
        # A server that deleted it at once answers which one it was, and otherwise the object.
        uid = response.body.get("details", {}).get("uid")
        gone = response.body if response.body.get("kind") == kind.kind else {**state.live, "metadata": {"name": key.name, "uid": uid}}
        try:
            await until_gone(self.cluster, kind, key, gone, timeout_of(state.inputs, request.timeout) or DEFAULT_SECONDS, self.report)
        except ObjectNotDeletedError as still:
            raise ProviderError(masked(str(still), request.inputs)) from still

    async def _served(self, kind: Kind) -> ServedKind:
        if (kind.api_version, kind.kind) not in self.cluster.kinds:
            await self.report(f"waits for {kind} to be served")
        if (served := await self.cluster.served(kind, SERVED_SECONDS)) is None:
            raise kind_not_served(kind)
        return served

    async def _made(self, served: ServedKind, key: ObjectKey, item: Json, manager: str, *, preview: bool) -> ApiResponse:
        """The response to a creation, tried again while the object's namespace is not there yet."""
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
            await self.report(f"{response.message}; again in {wait:.1f} s")
            await asyncio.sleep(wait)
            wait = min(2 * wait, 1.0)

    async def _changed(self, served: ServedKind, key: ObjectKey, item: Json, managers: tuple[str, str], *, preview: bool) -> ApiResponse:
        """The response to a change, tried again where somebody else's came before it."""
        manager, before = managers
        for _ in range(CONFLICT_RETRIES):
            found = await self.cluster.get(served, key, self.report)
            if found.status == NOT_FOUND:
                raise ProviderError(
                    f"{key} is not in the cluster any more; `pulumi refresh` takes it out of the state, and the next update makes it"
                )
            if found.status >= 300:
                return found
            if item["kind"] == DEFINITION:
                response = await self._put(served, key, item, found.body, manager, preview=preview)
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

    async def _put(self, served: ServedKind, key: ObjectKey, item: Json, live: Object, manager: str, *, preview: bool) -> ApiResponse:
        """A definition is put whole: what it no longer says of its versions must go, and its objects must stay."""
        versioned = {**item, "metadata": {**item["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
        return await self.cluster.write("PUT", served.item(key), {"fieldManager": manager}, versioned, self.report, dry=preview)

    def _forced(self, item: Object) -> bool:
        return self.settings.patch_force or is_true(item, PATCH_FORCE)

    async def _accepted(self, key: ObjectKey, response: ApiResponse, inputs: Object) -> Json:
        """The object in a good response; what the server warned of is told."""
        for text in response.warnings:
            await self.warn(masked(text, inputs))
        if response.status >= 300:
            raise rejected(key, response, inputs)
        return dict(response.body)

    async def _ready(self, kind: Kind, live: Object, inputs: Object, manager: str, timeout: float) -> Object:
        """The object once it is ready. InitFailed keeps it in the state where that does not come."""
        try:
            return await until_ready(self.cluster, kind, live, timeout_of(inputs, timeout), self.report)
        except ObjectNotReadyError as failed:
            live, reasons = failed.live, failed.reasons
        except ApiServerUnreachableError as silent:
            reasons = (f"{kind.kind} {id_of(live)} was sent, and the server then fell silent: {silent}",)
        except asyncio.CancelledError:
            reasons = (f"{kind.kind} {id_of(live)} was cancelled while it was waited for; the next update goes on waiting",)
        raise InitializationError(id_of(live), outputs_of(live, inputs, manager), inputs, [masked(one, inputs) for one in reasons])


def importable(live: Object) -> Json:
    """What of a live object a program would write to have it so."""
    metadata = {name: value for name, value in live["metadata"].items() if name not in (*SERVER_FIELDS, "selfLink")}
    if annotations := {name: text for name, text in metadata.pop("annotations", {}).items() if name not in WRITTEN_BY_OTHERS}:
        metadata["annotations"] = annotations
    return {**{name: value for name, value in live.items() if name not in SERVER_ONLY}, "metadata": metadata}


def _key_from_id(text: str, kind: Kind, served: ServedKind) -> ObjectKey:
    """The object that an id names; Failed where it is none."""
    namespace, name = parse_id(text)
    if PATH_SEGMENT.breach(name) or (namespace and LABEL.breach(namespace)):
        raise ProviderError(f"{text[:200]!r} is no id of an object; one is namespace/name, or name where the kind has no namespaces")
    if served.namespaced and not namespace:
        raise ProviderError(f"{text!r} names no namespace, and a {kind.kind} is in one; give namespace/{name}")
    return ObjectKey(kind.kind, namespace if served.namespaced else "", name, kind.api_version)


def _without_foreign_namespace(item: Json, served: ServedKind) -> Json:
    """An object without the namespace that it was given while nobody knew that its kind has none."""
    if served.namespaced or "namespace" not in item["metadata"]:
        return item
    return {**item, "metadata": {name: value for name, value in item["metadata"].items() if name != "namespace"}}


def _already_exists(response: ApiResponse) -> bool:
    return response.status == CONFLICT and response.body.get("reason") == "AlreadyExists"
