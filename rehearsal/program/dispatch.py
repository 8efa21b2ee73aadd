"""Dispatch of registrations: to the exports of an earlier stack, to a dynamic provider's code, or to the backend."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from pulumi.runtime.mocks import MockCallArgs, MockResourceArgs, Mocks

from components.errors import GpufleetError
from rehearsal.program.dynamic_providers import DynamicProviders
from rehearsal.program.pulumi_values import has_secret
from rehearsal.program.registration import Registration, RegistrationResponse, RegistrationResult

STACK_REFERENCE = "pulumi:pulumi:StackReference"
PROVIDER_PREFIX = "pulumi:providers:"


class CreatedResource(NamedTuple):
    """A resource that a backend created: the provider's id, never empty, and the outputs that it computed beyond the inputs."""

    id: str
    outputs: Mapping[str, Any]


class CloudBackend(Protocol):
    """A backend that answers every request at once.

    Inputs and arguments come with plaintext secrets and the provider's names. `provider` holds the inputs of the explicit provider
    resource that was given to the resource or call (for azure-native among others `subscriptionId`), and is empty without one.
    Outputs are JSON-like; a `Secret` in them remains secret. A refusal is an exception with a one-line message.
    """

    def create(self, resource_type: str, name: str, inputs: Mapping[str, Any], provider: Mapping[str, Any], /) -> CreatedResource:
        """Create one resource; `name` is Pulumi's logical name."""

    def invoke(self, token: str, args: Mapping[str, Any], provider: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return the result of a provider function, such as `azure-native:authorization:getClientConfig`."""


class LiveBackend(ABC):
    """A backend whose operations take time and may fail; the program continues while they run."""

    @abstractmethod
    def declare(self, registration: Registration, /) -> RegistrationResult:
        """Note a resource, component or provider; return SKIP where something that it depends on has failed."""

    @abstractmethod
    def put(self, registration: Registration, dynamic: DynamicProviders, /) -> Future[RegistrationResponse]:
        """Create or update a resource; the future has its response when the operation ends."""

    @abstractmethod
    def invoke(self, token: str, args: Mapping[str, Any], provider: Mapping[str, Any], /) -> Mapping[str, Any]:
        """Return the result of a provider function, as CloudBackend.invoke does."""

    @abstractmethod
    def advance(self) -> bool:
        """Advance the clock to the next awaited event; return False where there is none."""


class UnknownStackError(GpufleetError):
    """A StackReference to a stack that was not rehearsed before."""

    def __init__(self, stack: str, rehearsed: Mapping[str, Any]) -> None:
        self.stack = stack
        known = ", ".join(sorted(rehearsed)) or "none"
        super().__init__(f"stack {stack!r} has not been rehearsed (rehearsed: {known}); rehearse it first and pass its outputs on")


class ReadUnsupportedError(GpufleetError):
    """A lookup of an existing resource by id; a rehearsal starts from an empty cloud."""

    def __init__(self, resource_type: str, resource_id: str) -> None:
        self.resource_type, self.resource_id = resource_type, resource_id
        super().__init__(f"reads existing resource {resource_id}, but a rehearsal starts from an empty cloud; compute its id instead")


class BackendMocks(Mocks):
    """Pulumi's interface for a mocked cloud, implemented by a backend."""

    def __init__(
        self, backend: CloudBackend | LiveBackend, stack_outputs: Mapping[str, Mapping[str, Any]], dynamic: DynamicProviders
    ) -> None:
        self._backend = backend
        self._stack_outputs = stack_outputs
        self._dynamic = dynamic
        self._provider_inputs: dict[str, Mapping[str, Any]] = {}

    def answer(self, registration: Registration) -> RegistrationResponse | Future[RegistrationResponse]:
        """Return id and outputs of a resource, or a future of them; a refusal is raised."""
        if isinstance(self._backend, LiveBackend) and (result := self._backend.declare(registration)) is not RegistrationResult.SUCCESS:
            return RegistrationResponse("", {}, result)
        if not registration.custom:
            return RegistrationResponse("", {})
        if registration.type.startswith(PROVIDER_PREFIX):
            return RegistrationResponse(self._provider(registration.type, registration.name, registration.inputs), {})
        if isinstance(self._backend, LiveBackend):
            return self._backend.put(registration, self._dynamic)
        if self._dynamic.answers(registration.type, registration.inputs):
            return RegistrationResponse(*self._dynamic.create(registration.inputs))
        inputs = {key: value for key, value in registration.inputs.items() if key != DynamicProviders.KEY}
        return RegistrationResponse(*self._backend.create(registration.type, registration.name, inputs, registration.provider))

    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """Raise NotImplementedError: the monitor calls `answer`, which has more details of a resource."""
        raise NotImplementedError(f"{args.typ} was registered without the monitor")

    def call(self, args: MockCallArgs) -> tuple[dict[str, Any], None]:
        """Return the backend's result of a provider function."""
        return dict(self._backend.invoke(args.token, args.args, self.provider_inputs(args.provider))), None

    def read(self, args: MockResourceArgs) -> dict[str, Any]:
        """Return the properties of a StackReference; raise ReadUnsupportedError for another type, or UnknownStackError."""
        if args.typ != STACK_REFERENCE:
            raise ReadUnsupportedError(args.typ, args.resource_id or "")
        stack = args.inputs["name"]
        # Pulumi Cloud and the file backend use `organization/project/stack` as the full name.
        outputs = self._stack_outputs.get(stack, self._stack_outputs.get(stack.rpartition("/")[2]))
        if outputs is None:
            raise UnknownStackError(stack, self._stack_outputs)
        secret = sorted(name for name, value in outputs.items() if has_secret(value))
        return {"name": stack, "outputs": dict(outputs), "secretOutputNames": secret}

    def _provider(self, provider_type: str, name: str, inputs: Mapping[str, Any]) -> str:
        # Pulumi's engine assigns ids to providers; the count distinguishes providers of one name under different parents.
        provider_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{provider_type}/{name}/{len(self._provider_inputs)}"))
        self._provider_inputs[provider_id] = inputs
        return provider_id

    def provider_inputs(self, provider: str | None) -> Mapping[str, Any]:
        """Return the inputs of the explicit provider of a request; empty without one, and for a provider that was skipped."""
        return self._provider_inputs.get(provider.rpartition("::")[2], {}) if provider else {}
