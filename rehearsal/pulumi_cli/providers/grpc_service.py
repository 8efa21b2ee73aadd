"""Translation of the calls of Pulumi's provider protocol to calls of a Provider.

https://github.com/pulumi/pulumi/blob/master/proto/pulumi/provider.proto
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import plugin_pb2, provider_pb2

from rehearsal.program.pulumi_values import Json, decode, encode, has_unknown
from rehearsal.pulumi_cli.providers.provider_interface import (
    CheckRequest,
    CheckResult,
    CreateRequest,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    ProposedName,
    Provider,
    ProviderError,
    ReadRequest,
    UpdateRequest,
)

CallHandler = Callable[[Any], Awaitable[Any]]

UNSUPPORTED_CALLS: Mapping[str, str] = {
    "Call": "no resource here has methods",
    "Construct": "the program creates its components itself",
    "GetMapping": "there is no mapping from other tools' resources",
    "GetMappings": "there are no mappings from other tools' resources",
    "GetSchema": "the schema is the published package's; take it from the registry",
    "List": "resources are not listed here; list them in Azure or Kubernetes",
    "Parameterize": "the package has one version without parameters",
}
"""Calls that no provider here supports, and the reason."""


class ProviderService:
    """The calls of the protocol for one provider, by name."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._configured = False
        self._handlers: Mapping[str, CallHandler] = {
            "Attach": self._attach,
            "Cancel": self._cancel,
            "Check": self._check,
            "CheckConfig": self._check_config,
            "Configure": self._configure,
            "Create": self._create,
            "Delete": self._delete,
            "Diff": self._diff,
            "DiffConfig": self._diff_config,
            "GetPluginInfo": self._plugin_info,
            "Handshake": self._handshake,
            "Invoke": self._invoke,
            "Read": self._read,
            "Update": self._update,
        }

    async def answer(self, name: str, request: Any) -> Any:
        """Return the response to a call; ProviderError, InitializationError, ValueFormatError, and any exception of an internal error."""
        handler = self._handlers.get(name)
        if handler is None:
            raise ProviderError(f"{self.provider.package} does not serve {name}: {UNSUPPORTED_CALLS[name]}", grpc.StatusCode.UNIMPLEMENTED)
        return await handler(request)

    async def _handshake(self, request: Any) -> Any:
        self.provider.engine.connect(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(accept_secrets=True, supports_autonaming_configuration=self.provider.autonaming)

    async def _attach(self, request: Any) -> Any:
        self.provider.engine.connect(request.address)
        return empty_pb2.Empty()

    async def _plugin_info(self, _request: Any) -> Any:
        return plugin_pb2.PluginInfo(version=self.provider.version)

    async def _check_config(self, request: Any) -> Any:
        return _checked(await self.provider.check_config(decode(request.news)))

    async def _diff_config(self, request: Any) -> Any:
        old = decode(request.old_inputs if request.HasField("old_inputs") else request.olds)
        return _difference(self.provider.diff_config(old, decode(request.news)))

    async def _configure(self, request: Any) -> Any:
        config = decode(request.args) if request.HasField("args") else _variables(request)
        await self.provider.configure(config)
        self._configured = True
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=self.provider.autonaming
        )

    async def _cancel(self, _request: Any) -> Any:
        await self.provider.cancel()
        return empty_pb2.Empty()

    async def _check(self, request: Any) -> Any:
        call = CheckRequest(
            **_resource_of(request),
            old=decode(request.olds) if request.HasField("olds") else None,
            new=decode(request.news),
            seed=request.randomSeed,
            naming=_naming(request),
        )
        return _checked(await self.provider.check(call))

    async def _diff(self, request: Any) -> Any:
        call = DiffRequest(
            **_resource_of(request),
            id=request.id,
            old_inputs=decode(request.old_inputs),
            old_outputs=decode(request.olds),
            new=decode(request.news),
        )
        return _difference(await self.provider.diff(call))

    async def _create(self, request: Any) -> Any:
        self._needs_configuration(request)
        inputs = _require_known(decode(request.properties), preview=request.preview)
        made = await self.provider.create(
            CreateRequest(**_resource_of(request), inputs=inputs, timeout=request.timeout, preview=request.preview)
        )
        return provider_pb2.CreateResponse(id=made.id, properties=encode(made.outputs))

    async def _read(self, request: Any) -> Any:
        self._needs_configuration(request)
        inputs = decode(request.inputs) if request.HasField("inputs") else None
        call = ReadRequest(
            **_resource_of(request), id=_id(request), outputs=decode(request.properties), inputs=inputs, timeout=request.timeout
        )
        found = await self.provider.read(call)
        if found is None:
            return provider_pb2.ReadResponse()
        return provider_pb2.ReadResponse(id=found.id, properties=encode(found.outputs), inputs=encode(found.inputs))

    async def _update(self, request: Any) -> Any:
        self._needs_configuration(request)
        call = UpdateRequest(
            **_resource_of(request),
            id=_id(request),
            old_inputs=decode(request.old_inputs),
            old_outputs=decode(request.olds),
            new=_require_known(decode(request.news), preview=request.preview),
            timeout=request.timeout,
            preview=request.preview,
        )
        return provider_pb2.UpdateResponse(properties=encode(await self.provider.update(call)))

    async def _delete(self, request: Any) -> Any:
        self._needs_configuration(request)
        inputs, outputs = decode(request.old_inputs), decode(request.properties)
        await self.provider.delete(
            DeleteRequest(**_resource_of(request), id=_id(request), inputs=inputs, outputs=outputs, timeout=request.timeout)
        )
        return empty_pb2.Empty()

    async def _invoke(self, request: Any) -> Any:
        self._needs_configuration(request)
        response = provider_pb2.InvokeResponse()
        getattr(response, "return").CopyFrom(encode(await self.provider.invoke(request.tok, decode(request.args))))
        return response

    def _needs_configuration(self, request: Any) -> None:
        if not self._configured and not getattr(request, "preview", False):
            raise ProviderError(
                f"{self.provider.package} was called before it was configured; call Configure first",
                grpc.StatusCode.FAILED_PRECONDITION,
            )


def _resource_of(request: Any) -> dict[str, str]:
    """Return URN, type and name; engines before 3.150 send only the URN."""
    urn = request.urn
    parts = urn.split("::", 3)
    if len(parts) != 4 or not parts[0].startswith("urn:pulumi:"):
        raise ProviderError(
            f"{urn[:200]!r} is not a URN; the format is urn:pulumi:<stack>::<project>::<types>::<name>", grpc.StatusCode.INVALID_ARGUMENT
        )
    return {"urn": urn, "type": request.type or parts[2].rpartition("$")[2], "name": request.name or parts[3]}


def _id(request: Any) -> str:
    if not request.id:
        raise ProviderError(f"{request.urn}: the call contains no id of the resource", grpc.StatusCode.INVALID_ARGUMENT)
    return str(request.id)


def _require_known(inputs: Json, *, preview: bool) -> Json:
    """Return the inputs; ProviderError where one is unknown outside a preview."""
    if not preview:
        for key, value in inputs.items():
            if has_unknown(value):
                raise ProviderError(f"{key} is unknown, which only a preview allows", grpc.StatusCode.INVALID_ARGUMENT)
    return inputs


def _variables(request: Any) -> Json:
    """Return the configuration in the format of engines before 3.0."""
    return {key.rpartition(":")[2]: value for key, value in request.variables.items()}


def _naming(request: Any) -> ProposedName | None:
    if not request.HasField("autonaming"):
        return None
    options = request.autonaming
    return ProposedName(options.proposed_name, type(options).Mode.Name(options.mode))


def _checked(checked: CheckResult) -> Any:
    failures = [provider_pb2.CheckFailure(property=one.property, reason=one.reason) for one in checked.failures]
    return provider_pb2.CheckResponse(inputs=encode(checked.inputs), failures=failures)


def _difference(diff: DiffResult) -> Any:
    response = provider_pb2.DiffResponse(hasDetailedDiff=True, stables=diff.stables)
    response.changes = provider_pb2.DiffResponse.DIFF_SOME if diff.changed else provider_pb2.DiffResponse.DIFF_NONE
    for path, changed in diff.changed.items():
        kind = f"{changed.kind.value}_REPLACE" if changed.replace else changed.kind.value
        response.detailedDiff[path].CopyFrom(
            provider_pb2.PropertyDiff(kind=provider_pb2.PropertyDiff.Kind.Value(kind), inputDiff=changed.input)
        )
        if changed.replace:
            response.replaces.append(path)
    response.diffs.extend(dict.fromkeys(path.partition(".")[0].partition("[")[0] for path in diff.changed))
    response.deleteBeforeReplace = diff.delete_first and bool(response.replaces)
    return response
