"""Decides who answers for a resource: a stack rehearsed earlier, a dynamic provider's own code, or else the cloud."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from pulumi.runtime.mocks import MockCallArgs, MockResourceArgs, Mocks

from components.errors import GpufleetError
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.pulumi_values import has_secret
from rehearsal.program.registration_types import Registration, RegistrationResponse, RegistrationResult

STACK_REFERENCE = "pulumi:pulumi:StackReference"
PROVIDER_PREFIX = "pulumi:providers:"


class CreatedResource(NamedTuple):
    """A cloud's answer to a create: the provider's id, never empty, and the outputs it computed beyond the inputs."""

    id: str
    outputs: Mapping[str, Any]


class CloudBackend(Protocol):
    """The cloud that a program meets in a rehearsal.

    Inputs and arguments come with plaintext secrets and the provider's names. `provider` holds the inputs of the explicit provider
    resource that was given to the resource or call (for azure-native among others `subscriptionId`), and is empty without one.
    Outputs are JSON-like; a `Secret` in them stays secret. What the cloud does not know or allow it raises, in one line.
    """

    def create(self, resource_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any], /) -> CreatedResource:
        """Puts one resource; `name` is Pulumi's logical name."""

    def invoke(self, token: str, args: Mapping[str, Any], provider: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Answers a provider function, such as `azure-native:authorization:getClientConfig`."""


class LiveBackend(ABC):
    """A cloud in which things take time and may fail: it answers when they have happened, and the program goes on meanwhile."""

    @abstractmethod
    def declare(self, registration: Registration, /) -> RegistrationResult:
        """Hears of every resource, components and providers included, and says whether to go on with it: SKIP where it waits in vain."""

    @abstractmethod
    def put(self, registration: Registration, dynamic: DynamicProviders, /) -> Future[RegistrationResponse]:
        """Makes a resource what the program wants it to be; the future has its result once that has happened."""

    @abstractmethod
    def invoke(self, token: str, args: Mapping[str, Any], provider: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Answers a provider function, as a CloudBackend does."""

    @abstractmethod
    def advance(self) -> bool:
        """Lets the next thing happen for which somebody waits; False where nothing will."""


class UnknownStackError(GpufleetError):
    """A StackReference names a stack that was not rehearsed before."""

    def __init__(self, stack: str, rehearsed: Mapping[str, Any]) -> None:
        self.stack = stack
        known = ", ".join(sorted(rehearsed)) or "none"
        super().__init__(f"stack {stack!r} has not been rehearsed (rehearsed: {known}); rehearse it first and pass its outputs on")


class ReadUnsupportedError(GpufleetError):
    """A program looks up an existing resource by id; a rehearsal starts from an empty cloud."""

    def __init__(self, resource_type: str, resource_id: str) -> None:
        self.resource_type, self.resource_id = resource_type, resource_id
        super().__init__(f"reads existing resource {resource_id}, but a rehearsal starts from an empty cloud; compute its id instead")


class BackendMocks(Mocks):
    """Pulumi's interface to a mocked cloud, with a backend behind it."""

    def __init__(
        self, backend: CloudBackend | LiveBackend, stack_outputs: Mapping[str, Mapping[str, Any]], dynamic: DynamicProviders
    ) -> None:
        self._backend = backend
        self._stack_outputs = stack_outputs
        self._dynamic = dynamic
        self._provider_inputs: dict[str, Mapping[str, Any]] = {}

    def answer(self, asked: Registration) -> RegistrationResponse | Future[RegistrationResponse]:
        """Id and outputs of a resource, at once or when it is there; whatever refuses it raises."""
        if isinstance(self._backend, LiveBackend) and (result := self._backend.declare(asked)) is not RegistrationResult.SUCCESS:
            return RegistrationResponse("", {}, result)
        if not asked.custom:
            return RegistrationResponse("", {})
        if asked.type.startswith(PROVIDER_PREFIX):
            return RegistrationResponse(self._provider(asked.type, asked.name, asked.inputs), {})
        if isinstance(self._backend, LiveBackend):
            return self._backend.put(asked, self._dynamic)
        if self._dynamic.answers(asked.type, asked.inputs):
            return RegistrationResponse(*self._dynamic.create(asked.inputs))
        inputs = {key: value for key, value in asked.inputs.items() if key != DynamicProviders.KEY}
        return RegistrationResponse(*self._backend.create(asked.type, asked.name, inputs, asked.provider))

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """Not asked: the monitor registers by answer, which knows more of a resource."""
        raise NotImplementedError(f"{args.typ} was registered past the monitor")

    def call(self, args: MockCallArgs) -> tuple[dict[str, Any], None]:
        """Answers a provider function with the cloud's result."""
        return dict(self._backend.invoke(args.token, args.args, self.provider_inputs(args.provider))), None

    def read(self, args: MockResourceArgs) -> dict[str, Any]:
        """Properties of a resource looked up by id, which only a StackReference can be; else ReadUnsupported, or UnknownStack."""
        if args.typ != STACK_REFERENCE:
            raise ReadUnsupportedError(args.typ, args.resource_id or "")
        stack = args.inputs["name"]
        # `organization/project/stack` is how Pulumi Cloud and the file backend name a stack in full.
        outputs = self._stack_outputs.get(stack, self._stack_outputs.get(stack.rpartition("/")[2]))
        if outputs is None:
            raise UnknownStackError(stack, self._stack_outputs)
        secret = sorted(name for name, value in outputs.items() if has_secret(value))
        return {"name": stack, "outputs": dict(outputs), "secretOutputNames": secret}

    def _provider(self, provider_type: str, name: str, inputs: Mapping[str, Any]) -> str:
        # The engine itself gives providers their ids; counting keeps two of one name under different parents apart.
        provider_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{provider_type}/{name}/{len(self._provider_inputs)}"))
        self._provider_inputs[provider_id] = inputs
        return provider_id

    def provider_inputs(self, provider: str | None) -> Mapping[str, Any]:
        """Inputs of an explicit provider, given as a request refers to it; empty without one, and for one that was skipped itself."""
        return self._provider_inputs.get(provider.rpartition("::")[2], {}) if provider else {}
