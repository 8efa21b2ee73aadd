"""Resource hooks of a program: their registration, and their runs before an update, in the order and with the values of Pulumi's engine.

https://github.com/pulumi/pulumi/blob/1b5949891b3cefcb9974752b24a5ecef0acc86c8/pkg/resource/deploy/step.go (UpdateStep.Apply)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pulumi.runtime._callbacks import _CallbackServicer
from pulumi.runtime.proto import resource_pb2

from rehearsal.program.pulumi_values import encode
from rehearsal.program.registration import BeforeUpdate, PriorResource, RegistrationError

HOOK_TYPES = ("before_create", "after_create", "before_update", "after_update", "before_delete", "after_delete", "on_error")
SUPPORTED = "before_update"


class InlineCallbacks(_CallbackServicer):
    """The SDK's callbacks without its server: they run on the program's own event loop, and no port is opened."""

    def __init__(self, monitor: Any) -> None:
        self._callbacks = {}
        self._monitor = monitor
        self._target = ""

    async def invoke(self, token: str, request: bytes) -> Any:
        """Return the response message of a registered callback."""
        return await self._callbacks[token](request)


class Hooks:
    """Hooks of one program, by name. An update of a rehearsal's preview is a real one of a copy, so hooks always run."""

    def __init__(self, callbacks: InlineCallbacks) -> None:
        self._callbacks = callbacks
        self._registered: dict[str, resource_pb2.RegisterResourceHookRequest] = {}

    def register(self, request: resource_pb2.RegisterResourceHookRequest) -> None:
        """Register a hook; RegistrationError for a name that is in use."""
        if request.name in self._registered:
            raise RegistrationError("resource hook", request.name, "is already registered; give one of the two another name")
        self._registered[request.name] = request

    def before_update(self, request: resource_pb2.RegisterResourceRequest, urn: str, inputs: Mapping[str, Any]) -> BeforeUpdate | None:
        """Return the function for a resource with new inputs; None without hooks. RegistrationError for hooks of another type."""
        unsupported = [name for name in HOOK_TYPES if name != SUPPORTED and getattr(request.hooks, name)]
        if unsupported:
            reason = f"has {unsupported[0]} hooks, which a rehearsal does not run; use {SUPPORTED}"
            raise RegistrationError(request.type, request.name, reason)
        names = tuple(request.hooks.before_update)
        if not names:
            return None

        async def run(prior: PriorResource) -> str | None:
            message = resource_pb2.ResourceHookRequest(urn=urn, id=prior.id, name=request.name, type=request.type)
            message.new_inputs.CopyFrom(encode(inputs))
            message.old_inputs.CopyFrom(encode(prior.inputs))
            message.old_outputs.CopyFrom(encode(prior.outputs))
            return await self._run(names, message.SerializeToString())

        return run

    async def _run(self, names: Iterable[str], request: bytes) -> str | None:
        for name in names:
            hook = self._registered[name]
            response = await self._callbacks.invoke(hook.callback.token, request)
            if response.error and not hook.ignore_errors:
                return str(response.error)
        return None
