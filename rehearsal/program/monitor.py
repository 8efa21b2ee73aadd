"""Replacement of Pulumi's engine while a program runs: it assigns URNs, calls the backend, and records the graph."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from google.protobuf import empty_pb2  # type: ignore[import-untyped]
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs
from pulumi.runtime.proto import resource_pb2
from typing_extensions import override

from rehearsal.program.dispatch import BackendMocks
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.graph import Graph, Resource, Secret, reveal
from rehearsal.program.hooks import Hooks, InlineCallbacks
from rehearsal.program.pulumi_values import decode_as_sent, encode
from rehearsal.program.registration import Registration, RegistrationError, RegistrationResponse, RegistrationResult, one_line

T = TypeVar("T")
STACK_TYPE = "pulumi:pulumi:Stack"

FEATURES = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
)
"""Features that a program may use. Transforms, error hooks, remote components and state migrations run in the engine and its plugins. The
SDK refuses features that are not announced; otherwise the graph would silently lack their effect."""


class Monitor(MockMonitor):
    """Pulumi's test monitor with the engine's URNs, exports and refusals, and without threads.

    Each method answers one call of the monitor protocol
    (https://github.com/pulumi/pulumi/blob/master/proto/pulumi/resource.proto) and must be called on the event loop's own thread.
    """

    mocks: BackendMocks

    def __init__(
        self, answers: BackendMocks, dynamic: DynamicProviders, *, project: str, stack: str, progress: Callable[[int], None] | None
    ) -> None:
        super().__init__(answers)
        self._dynamic = dynamic
        self._urn_prefix = f"urn:pulumi:{stack}::{project}::"
        self._progress = progress
        self._recorded: dict[str, Resource | None] = {}
        """Resources in the order of registration; None until the response, and permanently after a failure."""
        self._registered_count = 0
        self._exports: Mapping[str, Any] = {}
        self.callbacks = InlineCallbacks(self)
        self._hooks = Hooks(self.callbacks)

    def take_graph(self) -> Graph:
        """Return and clear the recorded graph. Pulumi's settings keep the monitor alive after the run."""
        graph = Graph(tuple(filter(None, self._recorded.values())), self._exports)
        self._recorded, self._exports = {}, {}
        return graph

    def last_registered(self) -> str:
        """Return the URN of the latest resource, or an empty string before the first."""
        return next(reversed(self._recorded), "")

    @override
    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """Return the engine's URN: the chain of parent types without the stack's."""
        parent_types = parent.removeprefix(self._urn_prefix).partition("::")[0]
        chain = type_ if parent_types in ("", STACK_TYPE) else f"{parent_types}${type_}"
        return f"{self._urn_prefix}{chain}::{name}"

    @override
    def RegisterResource(
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse | Future[resource_pb2.RegisterResourceResponse]:
        """Return the response, or a future that the event loop awaits where the backend takes time."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if urn in self._recorded:
            raise RegistrationError(request.type, request.name, f"duplicate resource URN {urn}; give one of the two another name")
        if request.remote:
            raise RegistrationError(request.type, request.name, "is a remote component, which a rehearsal does not support; use its parts")
        self._recorded[urn] = None
        inputs = decode_as_sent(request.object)
        with _registration_errors(request):
            registered = self.mocks.answer(self._registration(request, urn, inputs))
        if not isinstance(registered, Future):
            return self._respond(request, urn, inputs, registered)
        response: Future[resource_pb2.RegisterResourceResponse] = Future()
        registered.add_done_callback(lambda done: _set_result(response, lambda: self._respond(request, urn, inputs, done.result())))
        return response

    def _respond(
        self, request: resource_pb2.RegisterResourceRequest, urn: str, inputs: dict[str, Any], registered: RegistrationResponse
    ) -> resource_pb2.RegisterResourceResponse:
        """Record a resource, and return the response for the program."""
        if registered.result is not RegistrationResult.SUCCESS:
            return resource_pb2.RegisterResourceResponse(urn=urn, result=registered.result.value)
        with _registration_errors(request):
            if request.custom and not registered.id:
                raise RegistrationError(request.type, request.name, "was created without an id; a provider must return one")
            outputs = _with_secrets(registered.outputs, inputs, request.additionalSecretOutputs)
            answer = encode(outputs)
        self._record(self._resource(request, urn, registered.id or None, inputs, outputs))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=registered.id, object=answer)

    @override
    def RegisterResourceOutputs(self, request: resource_pb2.RegisterResourceOutputsRequest) -> empty_pb2.Empty:
        outputs = decode_as_sent(request.outputs)
        if (resource := self._recorded[request.urn]) is not None:
            self._recorded[request.urn] = replace(resource, outputs=outputs)
            if resource.type == STACK_TYPE:
                self._exports = outputs
        return empty_pb2.Empty()

    @override
    def RegisterResourceHook(self, request: resource_pb2.RegisterResourceHookRequest) -> empty_pb2.Empty:
        self._hooks.register(request)
        return empty_pb2.Empty()

    @override
    def ReadResource(self, request: resource_pb2.ReadResourceRequest) -> resource_pb2.ReadResourceResponse:
        urn = self.make_urn(request.parent, request.type, request.name)
        inputs = decode_as_sent(request.properties)
        args = MockResourceArgs(request.type, request.name, reveal(inputs), request.provider, request.id, custom=True)
        with _registration_errors(request):
            outputs = self.mocks.read(args)
        self._record(
            Resource(urn, request.type, request.name, request.parent or None, custom=True, id=request.id, inputs=inputs, outputs=outputs)
        )
        return resource_pb2.ReadResourceResponse(urn=urn, properties=encode(outputs))

    @override
    def Invoke(self, request: resource_pb2.ResourceInvokeRequest) -> resource_pb2.ResourceInvokeResponse:
        result, _ = self.mocks.call(MockCallArgs(request.tok, reveal(decode_as_sent(request.args)), request.provider))
        response = resource_pb2.ResourceInvokeResponse()
        getattr(response, "return").CopyFrom(encode(result))
        return response

    @override
    def GetDeploymentInfo(self, request: empty_pb2.Empty) -> resource_pb2.DeploymentInfo:
        return resource_pb2.DeploymentInfo(supportedFeatures=FEATURES)

    def _registration(self, request: resource_pb2.RegisterResourceRequest, urn: str, inputs: Mapping[str, Any]) -> Registration:
        through_inputs = {one for item in request.propertyDependencies.values() for one in item.urns}
        provider = request.provider.rpartition("::")[0]
        return Registration(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent or None,
            custom=request.custom,
            inputs=reveal(inputs),
            provider=self.mocks.provider_inputs(request.provider),
            waits_for=frozenset({*request.dependencies, *through_inputs, request.parent, provider} - {""}),
            protect=request.protect,
            retain_on_delete=request.retainOnDelete,
            ignore_changes=tuple(request.ignoreChanges),
            before_update=self._hooks.before_update(request, urn, inputs),
        )

    def _resource(
        self,
        request: resource_pb2.RegisterResourceRequest,
        urn: str,
        resource_id: str | None,
        inputs: dict[str, Any],
        outputs: Mapping[str, Any],
    ) -> Resource:
        if DynamicProviders.KEY in inputs:
            # The pickle differs between Python versions; the class name is stable and readable.
            inputs[DynamicProviders.KEY] = self._dynamic.class_name(reveal(inputs))
        return Resource(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent or None,
            custom=request.custom,
            id=resource_id,
            inputs=inputs,
            outputs=outputs,
            dependencies=tuple(sorted(request.dependencies)),
            property_dependencies={key: tuple(sorted(item.urns)) for key, item in request.propertyDependencies.items() if item.urns},
            provider=request.provider.rpartition("::")[0] or None,
            protect=request.protect,
            ignore_changes=tuple(request.ignoreChanges),
            additional_secret_outputs=tuple(request.additionalSecretOutputs),
        )

    def _record(self, resource: Resource) -> None:
        self._recorded[resource.urn] = resource
        self._registered_count += 1
        if self._progress is not None:
            self._progress(self._registered_count)


def _set_result(response: Future[T], result: Callable[[], T]) -> None:
    """Set the result of a future, or the exception of the function that computes it."""
    try:
        response.set_result(result())
    except Exception as error:  # noqa: BLE001 the future carries it
        response.set_exception(error)


@contextmanager
def _registration_errors(request: resource_pb2.RegisterResourceRequest | resource_pb2.ReadResourceRequest) -> Iterator[None]:
    """Raise RegistrationError with the resource's type and name for any exception inside the block."""
    try:
        yield
    except RegistrationError:
        raise
    except Exception as cause:
        raise RegistrationError(request.type, request.name, one_line(cause)) from cause


def _with_secrets(outputs: Mapping[str, Any], inputs: Mapping[str, Any], named: Iterable[str]) -> dict[str, Any]:
    """Return the outputs as the engine stores them: secret where the program declares it, or where the input of that name is secret."""
    named = set(named)
    echoed = {key: value for key, value in inputs.items() if key in named}
    secret = named | {key for key, value in inputs.items() if isinstance(value, Secret)}
    return {key: Secret(reveal(value)) if key in secret else value for key, value in (echoed | dict(outputs)).items()}
