"""How objects are made, changed, read and deleted in a cluster that can be asked.

https://github.com/pulumi/pulumi-kubernetes/blob/master/provider/pkg/await/await.go
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.local_cluster.objects.connection import ApiResponse, ApiServerUnreachableError
from rehearsal.local_cluster.objects.kinds import ServedKind
from rehearsal.local_cluster.objects.results import CONFLICT, FORBIDDEN, ObjectKey
from rehearsal.program.graph import reveal
from rehearsal.pulumi_cli.providers.errors import InitializationError, ProviderError
from rehearsal.pulumi_cli.providers.kubernetes.api import Say
from rehearsal.pulumi_cli.providers.kubernetes.cluster import NOT_FOUND, SERVED_SECONDS, Cluster, key_for, unserved
from rehearsal.pulumi_cli.providers.kubernetes.diff import pruned
from rehearsal.pulumi_cli.providers.kubernetes.error_text import already_there, masked, refused
from rehearsal.pulumi_cli.providers.kubernetes.metadata import (
    DEFAULT_SECONDS,
    LAST_APPLIED,
    PATCH_FORCE,
    PROPAGATION,
    SERVERS_OWN,
    annotation,
    id_of,
    parse_id,
    says,
    seconds_for,
)
from rehearsal.pulumi_cli.providers.kubernetes.names import LABEL, PATH_SEGMENT
from rehearsal.pulumi_cli.providers.kubernetes.ownership import CREATOR, made_here, taking_over
from rehearsal.pulumi_cli.providers.kubernetes.settings import Settings
from rehearsal.pulumi_cli.providers.kubernetes.state import DEFINITION, kept, manager_of, outputs_of, secretly, sent, state_of
from rehearsal.pulumi_cli.providers.kubernetes.type_tokens import Kind, kind_of
from rehearsal.pulumi_cli.providers.kubernetes.wait import ObjectNotDeletedError, ObjectNotReadyError, readiness, until_gone, until_ready
from rehearsal.pulumi_cli.providers.pulumi_values import Json, has_unknown
from rehearsal.pulumi_cli.providers.requests import CreateAsked, DeleteAsked, Found, Made, ReadAsked, UpdateAsked

JSON_PATCH = "application/json-patch+json"
TRIES = 5
"""How often a change is tried anew that somebody else's change came before."""
POLICIES: Mapping[str, str] = {"orphan": "Orphan", "background": "Background"}
"""What becomes of the objects that a deleted one owns; deleted before it unless it says otherwise:
https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion"""
WRITTEN_BY_OTHERS = ("deployment.kubernetes.io/revision", LAST_APPLIED)
"""Annotations that are nobody's input."""
READ_OUT = frozenset({"status"})

Object = Mapping[str, Any]
Warn = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Operations:
    """What is done with one object; say shows a line while it is under way, warn one that stays."""

    cluster: Cluster
    settings: Settings
    say: Say
    warn: Warn

    async def create(self, asked: CreateAsked) -> Made:
        """Make an object and wait until it is ready. In a preview the server says what would be made, where it can."""
        kind, inputs = kind_of(asked.type), asked.inputs
        if asked.preview and (has_unknown(inputs) or await self.cluster.served(kind) is None):
            return Made("", inputs)
        served = await self._served(kind)
        item = _placed(sent(reveal(inputs)), served)
        key, manager = key_for(kind, item, served), manager_of(inputs, "")
        answer = await self._made(served, key, item, manager, preview=asked.preview)
        if asked.preview and (answer.status in (FORBIDDEN, NOT_FOUND) or _is_there(answer)):
            return Made("", inputs)
        if _is_there(answer):
            raise already_there(key)
        live: Object = await self._accepted(key, answer, inputs)
        if asked.preview:
            return Made("", outputs_of({name: value for name, value in live.items() if name not in READ_OUT}, inputs, manager))
        live = await self._ready(kind, live, inputs, manager, asked.timeout)
        return Made(id_of(live), outputs_of(live, inputs, manager))

    async def update(self, asked: UpdateAsked) -> Mapping[str, Any]:
        """Change an object and wait until it is ready again."""
        kind, inputs = kind_of(asked.type), asked.new
        if asked.preview and (has_unknown(inputs) or await self.cluster.served(kind) is None):
            return inputs
        served = await self._served(kind)
        state = state_of(asked.old_outputs, asked.old_inputs)
        item, manager = _placed(sent(reveal(inputs)), served), manager_of(inputs, state.manager)
        key = key_for(kind, item, served)
        answer = await self._changed(served, key, item, (manager, state.manager), preview=asked.preview)
        if asked.preview and answer.status == FORBIDDEN:
            return inputs
        live: Object = await self._accepted(key, answer, inputs)
        if not asked.preview:
            live = await self._ready(kind, live, inputs, manager, asked.timeout)
        return outputs_of(live, inputs, manager)

    async def read(self, asked: ReadAsked) -> Found | None:
        """The object as it is, and what of it the program spoke of; all of it where the program did not yet. None where it is gone."""
        kind = kind_of(asked.type)
        if (served := await self.cluster.served(kind)) is None:
            return None
        key = _named_by(asked.id, kind, served)
        answer = await self.cluster.get(served, key, self.say)
        if answer.status == NOT_FOUND:
            return None
        declared = asked.inputs or {}
        live = await self._accepted(key, answer, declared)
        shape = reveal(declared)
        inputs = secretly(kept(pruned(live, sent(shape)) if shape else importable(live)), declared)
        outputs = outputs_of(live, inputs, manager_of(inputs, state_of(asked.outputs, declared).manager))
        if shape and (reasons := await readiness(self.cluster, kind, live)):
            said = (f"{key} is not ready", *reasons)
            raise InitializationError(asked.id, outputs, inputs, [masked(one, declared) for one in said])
        return Found(asked.id, outputs, inputs)

    async def delete(self, asked: DeleteAsked) -> None:
        """Delete an object and wait until it is gone; one that is gone, or whose kind is, is deleted."""
        kind = kind_of(asked.type)
        if (served := await self.cluster.served(kind)) is None:
            return
        state = state_of(asked.outputs, asked.inputs)
        key = _named_by(asked.id, kind, served)
        policy = POLICIES.get(annotation(state.inputs, PROPAGATION).lower(), "Foreground")
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy}
        answer = await self.cluster.write("DELETE", served.item(key), {}, body, self.say)
        if answer.status == NOT_FOUND:
            return
        if answer.status >= 300:
            raise refused(key, answer, asked.inputs)
        # A server that deleted it at once answers which one it was, and otherwise the object.
        uid = answer.body.get("details", {}).get("uid")
        gone = answer.body if answer.body.get("kind") == kind.kind else {**state.live, "metadata": {"name": key.name, "uid": uid}}
        try:
            await until_gone(self.cluster, kind, key, gone, seconds_for(state.inputs, asked.timeout) or DEFAULT_SECONDS, self.say)
        except ObjectNotDeletedError as still:
            raise ProviderError(masked(str(still), asked.inputs)) from still

    async def _served(self, kind: Kind) -> ServedKind:
        if (kind.api_version, kind.kind) not in self.cluster.kinds:
            await self.say(f"waits for {kind} to be served")
        if (served := await self.cluster.served(kind, SERVED_SECONDS)) is None:
            raise unserved(kind)
        return served

    async def _made(self, served: ServedKind, key: ObjectKey, item: Json, manager: str, *, preview: bool) -> ApiResponse:
        """The answer to a creation, tried again while the object's namespace is not there yet."""
        loop = asyncio.get_running_loop()
        end, wait = loop.time() + SERVED_SECONDS, 0.2
        while True:
            if self.settings.upsert:
                answer = await self.cluster.apply(served, key, item, manager, self.say, force=self._forced(item), dry=preview)
            else:
                query = {"fieldManager": CREATOR}
                answer = await self.cluster.write("POST", served.collection(key.namespace), query, item, self.say, dry=preview)
            if answer.status != NOT_FOUND or preview or loop.time() + wait > end:
                return answer
            await self.say(f"{answer.message}; again in {wait:.1f} s")
            await asyncio.sleep(wait)
            wait = min(2 * wait, 1.0)

    async def _changed(self, served: ServedKind, key: ObjectKey, item: Json, managers: tuple[str, str], *, preview: bool) -> ApiResponse:
        """The answer to a change, tried again where somebody else's came before it."""
        manager, before = managers
        for _ in range(TRIES):
            found = await self.cluster.get(served, key, self.say)
            if found.status == NOT_FOUND:
                raise ProviderError(
                    f"{key} is not in the cluster any more; `pulumi refresh` takes it out of the state, and the next update makes it"
                )
            if found.status >= 300:
                return found
            if item["kind"] == DEFINITION:
                answer = await self._put(served, key, item, found.body, manager, preview=preview)
            else:
                if not preview and (patch := taking_over(found.body, manager, before)):
                    taken = await self.cluster.write("PATCH", served.item(key), {}, patch, self.say, kind=JSON_PATCH)
                    if taken.status == CONFLICT:
                        answer = taken
                        continue
                    if taken.status >= 300:
                        return taken
                force = self._forced(item) or not found.body["metadata"].get("managedFields") or (preview and made_here(found.body))
                return await self.cluster.apply(served, key, item, manager, self.say, force=force, dry=preview)
            if answer.status != CONFLICT:
                return answer
        return answer

    async def _put(self, served: ServedKind, key: ObjectKey, item: Json, live: Object, manager: str, *, preview: bool) -> ApiResponse:
        """A definition is put whole: what it no longer says of its versions must go, and its objects must stay."""
        versioned = {**item, "metadata": {**item["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
        return await self.cluster.write("PUT", served.item(key), {"fieldManager": manager}, versioned, self.say, dry=preview)

    def _forced(self, item: Object) -> bool:
        return self.settings.patch_force or says(item, PATCH_FORCE)

    async def _accepted(self, key: ObjectKey, answer: ApiResponse, inputs: Object) -> Json:
        """The object in a good answer; what the server warned of is told."""
        for text in answer.warnings:
            await self.warn(masked(text, inputs))
        if answer.status >= 300:
            raise refused(key, answer, inputs)
        return dict(answer.body)

    async def _ready(self, kind: Kind, live: Object, inputs: Object, manager: str, timeout: float) -> Object:
        """The object once it is ready. InitFailed keeps it in the state where that does not come."""
        try:
            return await until_ready(self.cluster, kind, live, seconds_for(inputs, timeout), self.say)
        except ObjectNotReadyError as failed:
            live, reasons = failed.live, failed.reasons
        except ApiServerUnreachableError as silent:
            reasons = (f"{kind.kind} {id_of(live)} was sent, and the server then fell silent: {silent}",)
        except asyncio.CancelledError:
            reasons = (f"{kind.kind} {id_of(live)} was cancelled while it was waited for; the next update goes on waiting",)
        raise InitializationError(id_of(live), outputs_of(live, inputs, manager), inputs, [masked(one, inputs) for one in reasons])


def importable(live: Object) -> Json:
    """What of a live object a program would write to have it so."""
    metadata = {name: value for name, value in live["metadata"].items() if name not in (*SERVERS_OWN, "selfLink")}
    if annotations := {name: text for name, text in metadata.pop("annotations", {}).items() if name not in WRITTEN_BY_OTHERS}:
        metadata["annotations"] = annotations
    return {**{name: value for name, value in live.items() if name not in READ_OUT}, "metadata": metadata}


def _named_by(text: str, kind: Kind, served: ServedKind) -> ObjectKey:
    """The object that an id names; Failed where it is none."""
    namespace, name = parse_id(text)
    if PATH_SEGMENT.breach(name) or (namespace and LABEL.breach(namespace)):
        raise ProviderError(f"{text[:200]!r} is no id of an object; one is namespace/name, or name where the kind has no namespaces")
    if served.namespaced and not namespace:
        raise ProviderError(f"{text!r} names no namespace, and a {kind.kind} is in one; give namespace/{name}")
    return ObjectKey(kind.kind, namespace if served.namespaced else "", name, kind.api_version)


def _placed(item: Json, served: ServedKind) -> Json:
    """An object without the namespace that it was given while nobody knew that its kind has none."""
    if served.namespaced or "namespace" not in item["metadata"]:
        return item
    return {**item, "metadata": {name: value for name, value in item["metadata"].items() if name != "namespace"}}


def _is_there(answer: ApiResponse) -> bool:
    return answer.status == CONFLICT and answer.body.get("reason") == "AlreadyExists"
