"""Stands in for Pulumi's engine while a program runs: gives every resource its URN, has it answered, and records the graph."""

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
from rehearsal.program.error_text import RegistrationError, one_line
from rehearsal.program.graph import Graph, Resource, Secret, reveal
from rehearsal.program.pulumi_values import decode_as_sent, encode
from rehearsal.program.registration_types import Registration, RegistrationResponse, RegistrationResult

T = TypeVar("T")
STACK_TYPE = "pulumi:pulumi:Stack"

FEATURES = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
)
"""What a program may use. Transforms, hooks, remote components and state migrations run in the engine and its plugins: the SDK itself
refuses them where they are not announced, which beats a graph that silently lacks their effect."""


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
        """In the order of registration; None until it is answered, and for good where that is a failure."""
        self._answered = 0
        self._exports: Mapping[str, Any] = {}

    def take_graph(self) -> Graph:
        """The graph recorded so far. The monitor forgets it, because Pulumi's settings keep the monitor alive after the run."""
        graph = Graph(tuple(filter(None, self._recorded.values())), self._exports)
        self._recorded, self._exports = {}, {}
        return graph

    def last_registered(self) -> str:
        """URN of the latest resource, or an empty string before the first."""
        return next(reversed(self._recorded), "")

    @override
    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """The engine's URN: the chain of parent types, the stack's left out."""
        parent_types = parent.removeprefix(self._urn_prefix).partition("::")[0]
        chain = type_ if parent_types in ("", STACK_TYPE) else f"{parent_types}${type_}"
        return f"{self._urn_prefix}{chain}::{name}"

    @override
    def RegisterResource(
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse | Future[resource_pb2.RegisterResourceResponse]:
        """The answer, or where the cloud takes its time the promise of one, which the event loop awaits in its place."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if urn in self._recorded:
            raise RegistrationError(request.type, request.name, f"duplicate resource URN {urn}; give one of the two another name")
        if request.remote:
            raise RegistrationError(request.type, request.name, "is a remote component, whose children no rehearsal can see; use its parts")
        self._recorded[urn] = None
        inputs = decode_as_sent(request.object)
        with _naming(request):
            answered = self.mocks.answer(self._registration(request, urn, inputs))
        if not isinstance(answered, Future):
            return self._respond(request, urn, inputs, answered)
        promised: Future[resource_pb2.RegisterResourceResponse] = Future()
        answered.add_done_callback(lambda done: _pass_on(promised, lambda: self._respond(request, urn, inputs, done.result())))
        return promised

    def _respond(
        self, request: resource_pb2.RegisterResourceRequest, urn: str, inputs: dict[str, Any], answered: RegistrationResponse
    ) -> resource_pb2.RegisterResourceResponse:
        """Record what a resource has become, and tell the program."""
        if answered.result is not RegistrationResult.SUCCESS:
            return resource_pb2.RegisterResourceResponse(urn=urn, result=answered.result.value)
        with _naming(request):
            if request.custom and not answered.id:
                raise RegistrationError(request.type, request.name, "was created without an id; a provider must answer one")
            outputs = _with_secrets(answered.outputs, inputs, request.additionalSecretOutputs)
            answer = encode(outputs)
        self._record(self._resource(request, urn, answered.id or None, inputs, outputs))
        return resource_pb2.RegisterResourceResponse(urn=urn, id=answered.id, object=answer)

    @override
    def RegisterResourceOutputs(self, request: resource_pb2.RegisterResourceOutputsRequest) -> empty_pb2.Empty:
        outputs = decode_as_sent(request.outputs)
        if (resource := self._recorded[request.urn]) is not None:
            self._recorded[request.urn] = replace(resource, outputs=outputs)
            if resource.type == STACK_TYPE:
                self._exports = outputs
        return empty_pb2.Empty()

    @override
    def ReadResource(self, request: resource_pb2.ReadResourceRequest) -> resource_pb2.ReadResourceResponse:
        urn = self.make_urn(request.parent, request.type, request.name)
        inputs = decode_as_sent(request.properties)
        args = MockResourceArgs(request.type, request.name, reveal(inputs), request.provider, request.id, custom=True)
        with _naming(request):
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
            # The pickle differs between Python versions; the class is what a reader wants to see.
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
        self._answered += 1
        if self._progress is not None:
            self._progress(self._answered)


def _pass_on(promised: Future[T], result: Callable[[], T]) -> None:
    """Keeps a promise with a result, or with the exception that there is in its place."""
    try:
        promised.set_result(result())
    except Exception as error:  # noqa: BLE001 it is handed on
        promised.set_exception(error)


@contextmanager
def _naming(request: resource_pb2.RegisterResourceRequest | resource_pb2.ReadResourceRequest) -> Iterator[None]:
    """Puts the resource's type and name before whatever goes wrong in answering for it."""
    try:
        yield
    except RegistrationError:
        raise
    except Exception as cause:
        raise RegistrationError(request.type, request.name, one_line(cause)) from cause


def _with_secrets(outputs: Mapping[str, Any], inputs: Mapping[str, Any], named: Iterable[str]) -> dict[str, Any]:
    """The outputs as the engine keeps them: secret where the program says so, and where the input of that name is."""
    named = set(named)
    echoed = {key: value for key, value in inputs.items() if key in named}
    secret = named | {key for key, value in inputs.items() if isinstance(value, Secret)}
    return {key: Secret(reveal(value)) if key in secret else value for key, value in (echoed | dict(outputs)).items()}
