"""Interface of a provider: requests and results of the engine's calls as Python values, errors, and the abstract class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

import grpc  # type: ignore[import-untyped]

from components.errors import GpufleetError
from rehearsal.program.pulumi_values import Json
from rehearsal.pulumi_cli.providers.engine_client import EngineClient


@dataclass(frozen=True, slots=True)
class CheckFailure:
    """One error in inputs: the path of the property, "" for the whole, and the reason."""

    property: str
    reason: str


class ProviderError(GpufleetError):
    """A failed call, with the message for the user."""

    def __init__(self, message: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> None:
        self.message, self.code = message, code
        super().__init__(message)


class InitializationError(GpufleetError):
    """A resource that exists although its creation or update failed. The engine records it in its state and continues with it next time.

    properties are its outputs, inputs the inputs to record, reasons a sentence each.
    """

    def __init__(self, resource_id: str, properties: Mapping[str, Any], inputs: Mapping[str, Any], reasons: Sequence[str]) -> None:
        self.id, self.properties, self.inputs, self.reasons = resource_id, properties, inputs, list(reasons)
        super().__init__("; ".join(self.reasons))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest:
    """The resource of a call: URN, type token and logical name."""

    urn: str
    type: str
    name: str


@dataclass(frozen=True, slots=True)
class ProposedName:
    """A name that the engine's configuration proposes; mode is PROPOSE, ENFORCE or DISABLE."""

    proposed: str
    mode: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest(ResourceRequest):
    """Check new inputs; old is None for a new resource. seed makes generated names reproducible."""

    old: Json | None
    new: Json
    seed: bytes = b""
    naming: ProposedName | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRequest(ResourceRequest):
    """Compare the inputs of the last update with new ones."""

    id: str
    old_inputs: Json
    old_outputs: Json
    new: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest(ResourceRequest):
    """Create a resource. timeout in seconds, 0 for the provider's default."""

    inputs: Json
    timeout: float = 0.0
    preview: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest(ResourceRequest):
    """Read a resource; inputs is None where only its id is known, as in an import."""

    id: str
    outputs: Json
    inputs: Json | None
    timeout: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRequest(ResourceRequest):
    """Update a resource."""

    id: str
    old_inputs: Json
    old_outputs: Json
    new: Json
    timeout: float = 0.0
    preview: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRequest(ResourceRequest):
    """Delete a resource."""

    id: str
    inputs: Json
    outputs: Json
    timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Inputs with defaults, and the errors in them."""

    inputs: Mapping[str, Any]
    failures: Sequence[CheckFailure] = ()


class ChangeKind(Enum):
    """Kind of change of a property."""

    ADD = "ADD"
    DELETE = "DELETE"
    UPDATE = "UPDATE"


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """Change of one property; replace is True where it forces a replacement."""

    kind: ChangeKind
    replace: bool = False
    input: bool = True


@dataclass(frozen=True, slots=True)
class DiffResult:
    """Changed properties by path (`tags.owner`, `subnets[0].name`).

    delete_first is True where a replacement cannot exist beside the old resource; stables are outputs that no update changes.
    """

    changed: Mapping[str, PropertyChange] = field(default_factory=dict)
    delete_first: bool = False
    stables: Sequence[str] = ()

    @classmethod
    def of_settings(cls, old: Json, new: Json, replacing: Collection[str] = ()) -> Self:
        """Compare two configurations; a change of a setting in `replacing` replaces every resource."""
        differing = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        kinds = ((key, ChangeKind.ADD if key not in old else ChangeKind.UPDATE if key in new else ChangeKind.DELETE) for key in differing)
        return cls({key: PropertyChange(kind, replace=key in replacing) for key, kind in kinds})


@dataclass(frozen=True, slots=True)
class CreateResult:
    """A created resource: its id, "" in a preview, and its outputs."""

    id: str
    outputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A resource that was read: id, outputs, and the inputs that would create it."""

    id: str
    outputs: Mapping[str, Any]
    inputs: Mapping[str, Any]


class Provider(ABC):
    """One provider in one process, for one provider resource of the program. Calls run concurrently in one event loop.

    Every method may raise ProviderError, and ValueFormatError for unsupported values. create, update and read may raise
    InitializationError.
    """

    package: str
    """Name of the package, such as kubernetes."""
    version: str
    """Version of the package that this provider replaces."""
    autonaming = False
    """True where the provider follows the engine's configuration of names."""

    def __init__(self, engine: EngineClient) -> None:
        self.engine = engine

    @abstractmethod
    async def configure(self, config: Json) -> None:
        """Apply the configuration of the provider resource; ProviderError where the provider cannot serve it."""

    async def check_config(self, config: Json) -> CheckResult:
        """Check a configuration before it is applied."""
        return CheckResult(config)

    def diff_config(self, old: Json, new: Json) -> DiffResult:
        """Compare two configurations."""
        return DiffResult.of_settings(old, new)

    @abstractmethod
    async def check(self, request: CheckRequest) -> CheckResult:
        """Add defaults to new inputs and report errors; unknown and secret values remain as they are."""

    @abstractmethod
    async def diff(self, request: DiffRequest) -> DiffResult:
        """Compare inputs; return the properties that an update would change or replace."""

    @abstractmethod
    async def create(self, request: CreateRequest) -> CreateResult:
        """Create a resource; in a preview only return its expected outputs."""

    @abstractmethod
    async def read(self, request: ReadRequest) -> ReadResult | None:
        """Read a resource; None where it does not exist."""

    @abstractmethod
    async def update(self, request: UpdateRequest) -> Mapping[str, Any]:
        """Update a resource and return its outputs; in a preview only return the expected ones."""

    @abstractmethod
    async def delete(self, request: DeleteRequest) -> None:
        """Delete a resource; a resource that does not exist counts as deleted."""

    @abstractmethod
    async def invoke(self, token: str, arguments: Json) -> Mapping[str, Any]:
        """Call a function; ProviderError where it does not exist."""

    @abstractmethod
    async def cancel(self) -> None:
        """End all calls soon, each with a sentence on its progress; a second call does nothing."""

    async def close(self) -> None:
        """Release all connections when the process ends."""
        await self.engine.close()
